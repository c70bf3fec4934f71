"""``python -m loadwise.protocol.make_schemas kafka-clients-4.3.1.jar``: rewrites ``messages.txt`` from that release.

Run `loadwise.protocol.make_stubs` afterwards. The file has the messages that are there already, and those of APIs named
by ``--add``. Of an unstable newest version nothing is taken. Kafka's descriptions of the fields stay behind.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from loadwise.protocol.schemas import names

FILE = Path(__file__).with_name("messages.txt")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the JAR, and write the file."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("jar", type=Path, help="kafka-clients of the release")
    options.add_argument("--add", nargs="*", default=(), metavar="API", help="more APIs, as JoinGroup")
    given = options.parse_args(arguments)
    added = [api + kind for api in given.add for kind in ("Request", "Response")]
    FILE.write_text(text(given.jar, sorted({*names(), *added})), "utf-8")


def text(jar: Path, messages: Sequence[str]) -> str:
    """What the file has for these messages of a release."""
    lines = [f"# The messages of {jar.stem}, made by loadwise.protocol.make_schemas."]
    with ZipFile(jar) as release:
        for name in messages:
            lines += _message(json.loads(_COMMENT.sub("", release.read(f"common/message/{name}.json").decode())))
    return "\n".join(lines) + "\n"


def _message(message: Mapping[str, Any]) -> Iterator[str]:
    versions = message["validVersions"]
    if message.get("latestVersionUnstable"):
        first, _, last = versions.partition("-")
        versions = f"{first}-{int(last) - 1}"
    yield f"{message['name']} {message['apiKey']} {versions} flexible {message['flexibleVersions']}"
    yield from _fields(message["fields"], "  ")
    for struct in message.get("commonStructs", ()):
        yield f"  struct {struct['name']}"
        yield from _fields(struct["fields"], "    ")


def _fields(fields: Sequence[Mapping[str, Any]], indent: str) -> Iterator[str]:
    for field in fields:
        words = [field["name"], field["type"], field["versions"]]
        for word, fact in (
            ("nullable", "nullableVersions"), ("tagged", "taggedVersions"), ("tag", "tag"), ("default", "default")
        ):  # fmt: skip
            if field.get(fact) not in (None, ""):
                words += [word, str(field[fact]).replace(" ", "")]
        yield indent + " ".join(words)
        yield from _fields(field.get("fields", ()), indent + "  ")


if __name__ == "__main__":
    main()
