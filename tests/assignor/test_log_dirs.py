"""The sizes of replicas, from answers of DescribeLogDirs as kafka-python gives them."""

from __future__ import annotations

from typing import Any

import pytest

from loadwise.assignor.load.log_dirs import LogDirError, replica_sizes


def _answer(broker: int, error_code: int = 0, *, size: int = 0) -> dict[str, Any]:
    partitions = [
        {"partition_index": 0, "partition_size": size, "offset_lag": 0, "is_future_key": False},
        {"partition_index": 0, "partition_size": size // 2, "offset_lag": size // 2, "is_future_key": True},
    ]
    directory = {"error_code": error_code, "log_dir": "/d", "topics": [{"name": "t", "partitions": partitions}]}
    return {"broker": broker, "log_dirs": [directory]}


def test_the_copy_of_a_replica_that_moves_to_another_disk_does_not_count() -> None:
    assert replica_sizes([_answer(1, size=10), _answer(2, size=20)]) == {(("t", 0), 1): 10, (("t", 0), 2): 20}


def test_a_directory_that_is_offline_is_named() -> None:
    with pytest.raises(LogDirError, match=r"log directory /d of broker 2 is offline \(error 56\)"):
        replica_sizes([_answer(1), _answer(2, error_code=56)])
