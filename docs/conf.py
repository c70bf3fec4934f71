"""The documentation site: ``make docs`` builds it into build/docs; warnings are errors."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]

import loadwise  # noqa: E402
from loadwise.assignor.clients import versions  # noqa: E402

project = "loadwise"
author = "The loadwise developers"
copyright = "The loadwise developers, Apache-2.0"  # noqa: A001
version = release = loadwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "generated",
    "repository_links",
]
exclude_patterns = ["lab", "_ext"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nitpicky = False
default_role = "code"
# The pages are made of docstrings and signatures: neither Spark nor a client is installed for them.
autodoc_mock_imports = [
    "aiokafka",
    "confluent_kafka",
    "cramjam",
    "crc32c",
    "h11",
    "kafka",
    "prometheus_client",
    "pyarrow",
    "pyspark",
    "rich",
]
# The plug-ins ask for a client's version and for the parameters of its classes, and a mock has neither.
versions.require = lambda _client, _package, *, oldest, **_: ".".join(map(str, oldest))
_MockObject.__signature__ = inspect.Signature()
# Signatures have types and defaults, a parameter a line where they are long.
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
highlight_language = "text"

html_theme = "furo"
html_title = f"loadwise {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": "https://github.com/loadwise/loadwise", "source_branch": "main"}
