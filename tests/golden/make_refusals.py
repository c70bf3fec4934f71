"""Make the golden refusals: requests of every API and version served here, and how the real kafka-clients refuse them.

    python tests/golden/make_refusals.py --libs FOLDER_OF_KAFKAS_JARS > tests/golden/kafka-clients-4.3.1-refusals.jsonl

Needs a JDK 17; CONTRIBUTING.md says where the jars are.

In each request every list has one item. The error is REBALANCE_IN_PROGRESS.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.append(str(Path(__file__).resolve().parents[1] / "support"))  # no package: pytest has it as a path

from client_messages import client_message

from loadwise.coordinator.routing.services import services

_VALUES: dict[str, Any] = {"string": "name", "bytes": b"", "records": b"", "uuid": UUID(int=7), "bool": False}
_FIXED = {"key_type": 0, "acks": 1, "resource_type": 2, "session_id": 0}


def _filled(fields: Any, version: int) -> dict[str, Any]:
    values = {}
    for field in fields:
        if not field.for_version_q(version) or field.tag is not None:
            continue
        if field.is_struct_array():
            values[field.name] = [field.data_class(version=version, **_filled(field.fields.values(), version))]
        elif field.is_array():
            values[field.name] = [_VALUES.get(field.type_str.removeprefix("[]"), 3)]
        elif field.nullable_for_version_q(version) and field.name not in {"name", "records"}:
            values[field.name] = None
        else:
            values[field.name] = _FIXED.get(field.name, _VALUES.get(field.type_str, 3))
    return values


def main() -> None:
    """Write the vectors to standard output."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--libs", required=True, help="folder with the jars of org.apache.kafka:kafka_2.13:4.3.1")
    asked = []
    for _, service in sorted(services().items()):
        for version in range(service.api.min_version, service.api.max_version + 1):
            schema = client_message(service.api.request.__name__)
            request = schema(version=version, **_filled(schema.fields.values(), version))
            request.with_header(7, "client")
            asked.append((service.api.name, version, bytes(request.encode(header=True)).hex()))
    java = ["java", "-cp", f"{options.parse_args().libs}/*", str(Path(__file__).with_name("Refusals.java"))]
    lines = "".join(f"{frame}\n" for _, _, frame in asked)
    answered = subprocess.run(java, input=lines, capture_output=True, text=True, check=False)
    sys.stderr.write(answered.stderr)
    for (api, version, request), response in zip(asked, answered.stdout.splitlines(), strict=True):
        line = {"api": api, "version": version, "request": request, "response": response}
        sys.stdout.write(json.dumps(line, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
