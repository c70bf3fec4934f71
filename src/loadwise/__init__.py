"""loadwise: load-aware partition assignment for Kafka consumers.

The four parts are ``loadwise.assignor`` (who reads which partition), ``loadwise.coordinator`` (a group coordinator for
tests and demos), ``loadwise.protocol`` (the wire protocol under both) and ``loadwise.spark_source`` (a PySpark data
source that honours the assignments). ``docs/architecture.md`` in the repository has the map.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
