"""Reads the answers of kafka-python's ``describe_log_dirs`` (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class LogDirError(Exception):
    """A log directory is offline. Without the right to DESCRIBE the cluster, brokers describe no directories at all."""


def replica_sizes(answers: Iterable[Mapping[str, Any]]) -> dict[tuple[tuple[str, int], int], int]:
    """Return the bytes of each replica, by topic and partition, and by broker. Raises `LogDirError`."""
    sizes: dict[tuple[tuple[str, int], int], int] = {}
    for answer in answers:
        for directory in answer["log_dirs"]:
            if directory["error_code"]:
                raise LogDirError(
                    f"log directory {directory['log_dir']} of broker {answer['broker']} is offline (error"
                    f" {directory['error_code']}); repair its disk and start the broker again"
                )
            for topic in directory["topics"]:
                for partition in topic["partitions"]:
                    if not partition["is_future_key"]:  # the copy of a replica that moves to another disk
                        name = (topic["name"], partition["partition_index"])
                        sizes[name, answer["broker"]] = partition["partition_size"]
    return sizes
