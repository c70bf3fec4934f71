"""The reference pages that are made from the code: commands, settings, metrics, fixtures, errors, log messages.

They are written to ``docs/reference/generated`` before a build. Sphinx's autodoc makes the pages of the Python API.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # a test reads the messages without Sphinx
    from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = {
    "assignor": "assignor",
    "coordinator": "coordinator",
    "spark_source": "spark_source",
    "commands": "src/loadwise",
}
_LEVELS = ("warning", "error", "exception", "critical")


@dataclass(frozen=True, slots=True)
class Message:
    """A message that the product logs at WARNING or above."""

    part: str
    module: str
    level: str
    text: str


def messages() -> Iterator[Message]:
    """Every such message, in the order of the files."""
    for part, folder in PARTS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.relative_to(ROOT / folder).parts[0] in PARTS and part == "commands":
                continue  # a link to another part
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                if node.func.attr not in _LEVELS or "log" not in ast.unparse(node.func.value).lower():
                    continue
                text = node.args[0] if node.args else None
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    level = "error" if node.func.attr == "exception" else node.func.attr
                    yield Message(part, str(path.relative_to(ROOT / folder)), level.upper(), text.value)


def _commands() -> str:
    from loadwise.cli import COMMANDS, parser_of, top_parser

    os.environ["COLUMNS"] = "100"
    pages = [
        "# Options of the commands\n\nWhat `--help` of each command prints.\n",
        f"```text\n{top_parser().format_help()}```\n",
    ]
    pages += [f"## loadwise {name}\n\n```text\n{parser_of(name).format_help()}```\n" for name in COMMANDS]
    return "\n".join(pages)


def _errors() -> str:
    pages = [
        "# Errors\n\nEvery error that loadwise raises, by package. Each message names the culprit and the remedy.\n"
    ]
    for name in (
        *("loadwise.assignor", "loadwise.coordinator", "loadwise.spark_source", "loadwise.protocol"),
        *("loadwise.running_group", "loadwise.compare", "loadwise.balance", "loadwise.demo"),
    ):
        module = importlib.import_module(f"{name}.errors")
        classes = [
            each
            for each in vars(module).values()
            if inspect.isclass(each) and issubclass(each, Exception) and each.__module__ == module.__name__
        ]
        rows = [
            f"| `{each.__name__}` | {', '.join(f'`{base.__name__}`' for base in each.__bases__)} | {_cell(each)} |"
            for each in classes
        ]
        pages.append(f"## {name}\n\n| error | is a | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(pages)


def _metrics() -> str:
    """The metrics by the calls that make them, so that each is listed whether or not it has a value now."""
    tree = ast.parse((ROOT / "assignor" / "prometheus.py").read_text(encoding="utf-8"))
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("MetricFamily"):
            kind, given = node.func.id.removesuffix("MetricFamily").lower(), node.args
        elif isinstance(node, ast.Tuple):
            kind, given = "gauge", node.elts
        else:
            continue
        texts = [each.value for each in given[:2] if isinstance(each, ast.Constant)]
        if len(texts) == 2 and str(texts[0]).startswith("loadwise_"):
            found[str(texts[0])] = kind, str(texts[1])
    rows = [f"| `{name}{'_total' * (kind == 'counter')}` | {kind} | {text} |" for name, (kind, text) in found.items()]
    return (
        "# Metrics\n\n`loadwise.GroupCollector` exports them; [Metrics](../../live.md#metrics)"
        " shows how.\n\n| metric | kind | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _log() -> str:
    pages = [
        "# Log messages\n\nAll messages at WARNING and above; `%s` stands for a value. [Troubleshooting]"
        "(../../troubleshooting.md) says what to do about each.\n"
    ]
    for part in PARTS:
        rows = [f"| {each.level} | {_escaped(each.text)} |" for each in messages() if each.part == part]
        pages.append(f"## {part}\n\n| level | message |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(pages)


def _settings() -> str:
    """The fields of the classes that users make, with the text below each."""
    pages = ["# Settings\n\nFields of the objects that are passed to loadwise, with their defaults.\n"]
    for module, name in (
        ("loadwise.assignor.live.settings", "LiveSettings"),
        ("loadwise.coordinator", "BrokerSettings"),
        ("loadwise.coordinator", "GroupLimits"),
        ("loadwise.coordinator", "HttpOptions"),
    ):
        each = getattr(importlib.import_module(module), name)
        texts = _field_texts(each)
        rows = [
            f"| `{field.name}` | `{_default(field)}` | {_escaped(texts.get(field.name, ''))} |"
            for field in dataclasses.fields(each)
        ]
        pages.append(
            f"## {name}\n\n{_plain(each)}\n\n| field | default | meaning |\n|---|---|---|\n" + "\n".join(rows) + "\n"
        )
    return "\n".join(pages)


def _spark_options() -> str:
    from loadwise.spark_source.options.client_config import REFUSED
    from loadwise.spark_source.options.declared import guide
    from loadwise.spark_source.options.settings import SETTINGS

    rows = [
        f"| `{row.java}` | {'the same' if row.librdkafka == '=' else _becomes(row.librdkafka)} | {row.batches} |"
        for row in SETTINGS
        if row.java != "."
    ] + [f"| `{name}` | refused: {_escaped(why)} | |" for name, why in REFUSED.items()]
    return (
        "# Options of the Spark source\n\nNames are not case-sensitive."
        " [Reading Kafka from Spark in even tasks](../../spark.md) explains the options.\n\n"
        + guide().replace("](#", "](../../spark.md#")
        + "\n## Settings of the Kafka client\n\n`kafka.*` options, named here without that prefix.\n\n"
        + "| setting | in librdkafka | with `reader=batches` |\n|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def _becomes(target: str) -> str:
    kinds = {"(ours)": "kept by this source", "(translated)": "translated"}
    return kinds.get(target) or (f"no effect {target}" if target.startswith("(") else f"`{target}`")


def _fixtures() -> str:
    import loadwise.pytest_plugin as plugin

    rows = []
    for node in ast.parse(inspect.getsource(plugin)).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("kafka_") and node.decorator_list:
            scope = "session" if "session" in ast.unparse(node.decorator_list[0]) else "test"
            rows.append(f"| `{node.name}` | {scope} | {_escaped(ast.get_docstring(node) or '')} |")
    return (
        "# pytest fixtures\n\nThe plugin comes with loadwise; nothing needs to be imported.\n\n"
        "| fixture | scope | what it gives |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _field_texts(cls: type) -> dict[str, str]:
    """The string below each field."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            texts[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return texts


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default)
    if field.default_factory is not dataclasses.MISSING:
        made = field.default_factory()
        return repr(made) if isinstance(made, (dict, tuple, list)) else f"{type(made).__name__}()"
    return "required"


def _plain(thing: object) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def _cell(thing: object) -> str:
    return _escaped(inspect.getdoc(thing) or "")


def _escaped(text: str) -> str:
    joined = " ".join(re.sub(r"``([^`]+)``", r"`\1`", text).split())
    return joined.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


PAGES = {
    "commands": _commands,
    "settings": _settings,
    "fixtures": _fixtures,
    "spark-options": _spark_options,
    "metrics": _metrics,
    "errors": _errors,
    "log-messages": _log,
}


def write(app: Sphinx) -> None:
    """Write all pages, but leave a file alone that has not changed: then Sphinx need not read it again."""
    from sphinx.ext.autodoc.mock import mock

    folder = Path(app.srcdir) / "reference" / "generated"
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        with mock(app.config.autodoc_mock_imports):
            page, text = folder / f"{name}.md", make()
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
