"""loadwise: load-aware partition assignment for Kafka consumers.

The four parts are ``loadwise.assignor`` (partition assignment), ``loadwise.coordinator`` (a group coordinator for
tests and demos), ``loadwise.protocol`` (the wire protocol under both) and ``loadwise.spark_source`` (a PySpark data
source that honours the assignments). ``docs/architecture.md`` in the repository has the map.

The names that users need can be imported from here; ``__init__.pyi`` lists them. Each is loaded when it is first used,
and needs the extra of its part: without it, an ImportError names the extra.
"""

from __future__ import annotations

from loadwise.public_names import PublicNames
from loadwise.version import __version__ as __version__

_names = PublicNames(__name__)
__getattr__, __dir__ = _names.get, _names.dir
