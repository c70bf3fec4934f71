"""Reads the answers of kafka-python's ``describe_log_dirs`` (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class LogDirError(Exception):
    """A broker does not describe one of its log directories."""


def replica_sizes(answers: Iterable[Mapping[str, Any]]) -> dict[tuple[tuple[str, int], int], int]:
    """Return the bytes of each replica, by topic and partition, and by broker. Raises `LogDirError`."""
    sizes: dict[tuple[tuple[str, int], int], int] = {}
    for answer in answers:
        for directory in answer["log_dirs"]:
            if directory["error_code"]:
                raise LogDirError(
                    f"broker {answer['broker']} does not describe its log directory {directory['log_dir']} (error"
                    f" {directory['error_code']}); it needs the right to DESCRIBE the cluster, and a disk that works"
                )
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    if not partition["is_future_key"]:  # the copy of a replica that moves to another disk
                        name = (topic["name"], partition["partition_index"])
                        sizes[name, answer["broker"]] = partition["partition_size"]
    return sizes
