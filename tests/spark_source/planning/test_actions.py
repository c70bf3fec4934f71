"""What a batch query tells who acts on one DataFrame twice: PySpark plans it once. No Spark in it."""

from __future__ import annotations

import logging

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from loadwise.spark_source.source import LoadwiseDataSource


@pytest.mark.parametrize(
    ("ending", "warnings"),
    [({}, 1), ({"endingOffsets": "latest"}, 1), ({"endingOffsets": '{"TOPIC": {"0": 3}}'}, 0)],
    ids=["no end", "the latest", "an end of its own"],
)
def test_later_actions_read_the_same_offsets_and_a_warning_tells_so(topic, caplog, ending, warnings):
    written = topic([5])
    source = LoadwiseDataSource(
        written.options(**{name: value.replace("TOPIC", written.name) for name, value in ending.items()})
    )
    with caplog.at_level(logging.WARNING, logger="loadwise.spark_source"):
        assert len(source.reader(source.schema()).partitions()) == 1
    told = [record.message for record in caplog.records if "every action on this DataFrame" in record.message]
    assert len(told) == warnings
    assert all("call load() again" in message for message in told)
