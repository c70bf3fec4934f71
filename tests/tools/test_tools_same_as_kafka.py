"""Kafka's command-line programs write the same on Apache Kafka and on ours, line by line.

The files beside this one are what is run, in the order in which it is run: ``{s}`` is the broker, ``{d}`` a folder with
the files that programs read, and what comes after ``<`` is what a program is given to read.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_tools import Tools
from topics import WAIT_S, delete_topic, make_topic

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka

HERE = Path(__file__).resolve().parent
_MOVED = {"version": 1, "partitions": [{"topic": "two", "partition": 0, "replicas": [1], "log_dirs": ["any"]}]}
_FILES = {
    "delete.json": {"partitions": [{"topic": "two", "partition": 0, "offset": 1}], "version": 1},
    "delete-twice.json": {"partitions": [{"topic": "two", "partition": 0, "offset": n} for n in (1, 2)], "version": 1},
    "elect.json": {"partitions": [{"topic": "one", "partition": n} for n in (0, 1)]},
    "move.json": {"topics": [{"topic": "two"}], "version": 1},
    "reassign.json": _MOVED,
    "reassign-none.json": {"version": 1, "partitions": [{"topic": "none", "partition": 0, "replicas": [1]}]},
    "reassign-away.json": {"version": 1, "partitions": [{"topic": "two", "partition": 0, "replicas": [2]}]},
}
_READS = ("--describe", "--list", "describe", "list", "--verify", "kafka-get-offsets.sh", "kafka-metadata-quorum.sh")
_OF_A_RUN = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"(127\.0\.0\.1|localhost)[: ]\d+", "BROKER"),
    (r"TopicId: \S+", "TopicId: ID"),
    (r"\b1[78]\d{11}\b", "TIME"),
    (r'"(logDir|log_dirs)":\[?"[^"]*"\]?', r'"\1":DIR'),
    (r'"size":[1-9]\d*', '"size":SOME'),  # Kafka deletes whole segments
    (r"(Cluster ?I[dD]: +)\S+", r"\1ID"),
    (r"(HighWatermark: +|Epoch: )\d+$", r"\1NUMBER"),
    (r"records sent, .*", "records sent"),
    (r"\d+\.\d{2,}", "NUMBER"),
    (r"^(Percentiles:).*", r"\1"),
    (r"\b\d+ ms ago", "AGO"),
    (r"\d+\.\d{3,}", "NUMBER"),
)
"""What differs between two runs on one broker."""
_OF_ITS_OWN = frozenset({"ProducerId", "TransactionDurationMs", "LogEndOffset"})
"""Columns of tables whose numbers are those of one broker."""
_NOTHING_RESOLVED = '{"timestamp":TIME,"name":"partitions_assigned","partitions":[]}'
"""Java's consumer reports this first where it has its assignment, topic ids, before the metadata with their names."""


@pytest.mark.parametrize("name", ["topics", "groups", "configs", "cluster", "records"])
def test_programs_write_the_same(
    name: str, tools: Tools, fresh_kafka: str, fresh_coordinator: ThreadedCoordinator, tmp_path: Path
) -> None:
    for file, content in _FILES.items():
        Path(tmp_path, file).write_text(json.dumps(content))
    Path(tmp_path, "topic.properties").write_text("retention.ms=80000000\n")
    Path(tmp_path, "offsets.csv").write_text("one,0,1\n")
    differing = []
    for line in Path(HERE, f"{name}.txt").read_text().splitlines():
        command, _, read = line.partition(" < ")
        given = read.replace("\\n", "\n") if read else None

        def written(server: str, command: str = command, given: str | None = given) -> list[str]:
            words = [word.replace("{s}", server).replace("{d}", str(tmp_path)) for word in command.split()]
            return sorted(_comparable(tools.run(*words, read=given)))

        ours = written(fresh_coordinator.bootstrap_servers)
        theirs = written(fresh_kafka)
        if set(_READS) & set(command.split()):
            deadline = time.monotonic() + WAIT_S / 10
            while theirs != ours and time.monotonic() < deadline:  # Kafka tells of groups and transactions later
                theirs = written(fresh_kafka)
        else:
            _wait_until_told(fresh_kafka)
        if command.startswith("kafka-broker-api-versions.sh"):
            theirs, ours = _served(theirs, ours)
        if theirs != ours:
            differing += [line, *(f"  Kafka: {each}" for each in theirs if each not in ours)]
            differing += [f"  ours:  {each}" for each in ours if each not in theirs]
    assert not differing, "\n".join(differing)


def _wait_until_told(kafka: str) -> None:
    """Wait until the broker has heard of all that its controller has decided, in the order of its log.

    Kafka answers a change before; a program that looks first, as one that deletes a topic twice, would not see it.
    """
    make_topic(kafka, "told", 1)
    delete_topic(kafka, "told")


def _comparable(lines: list[str]) -> Iterator[str]:
    dropped: list[int] = []
    for line in lines:
        if re.match(r"\s+(at |\.\.\. )", line):
            continue  # where in Java a problem was
        cells = re.split(r"\s*\t\s*", line)
        if _OF_ITS_OWN & set(cells):
            dropped = [number for number, cell in enumerate(cells) if cell in _OF_ITS_OWN]
        elif len(cells) <= max(dropped, default=0):
            dropped = []
        plain = "\t".join(cell for number, cell in enumerate(cells) if number not in dropped)
        for pattern, word in _OF_A_RUN:
            plain = re.sub(pattern, word, plain)
        if plain != _NOTHING_RESOLVED:
            yield re.sub(r"[ \t]+", " ", plain).strip()


def _served(theirs: list[str], ours: list[str]) -> tuple[list[str], list[str]]:
    """The APIs that ours has: those that it has not, and why, are in docs/apis.md."""
    missing = {line.partition("(")[0] for line in ours if line.endswith("UNSUPPORTED,")}
    kept = [[line for line in lines if line.partition("(")[0] not in missing] for lines in (theirs, ours)]
    return kept[0], kept[1]
