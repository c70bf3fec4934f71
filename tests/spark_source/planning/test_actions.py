"""What a batch query logs about a DataFrame that is acted on twice: PySpark plans it once. No Spark in it."""

from __future__ import annotations

import logging

import pytest
from own_log import own_log

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from loadwise.spark_source import source as module
from loadwise.spark_source.source import LoadwiseDataSource

SAID = "all actions on a DataFrame read the same offsets as the first"


@pytest.fixture(autouse=True)
def _nothing_said_yet():
    module._say_how_long_a_plan_lasts.cache_clear()


def said(caplog):
    return [record for record in caplog.records if SAID in record.message]


@pytest.mark.parametrize(
    ("ending", "lines"),
    [({}, 1), ({"endingOffsets": "latest"}, 1), ({"endingOffsets": '{"TOPIC": {"0": 3}}'}, 0)],
    ids=["no end", "the latest", "an end of its own"],
)
def test_that_later_actions_read_the_same_offsets_is_said_once_a_process_and_warns_nobody(topic, caplog, ending, lines):
    written = topic([5])
    source = LoadwiseDataSource(
        written.options(**{name: value.replace("TOPIC", written.name) for name, value in ending.items()})
    )
    for _ in range(2):
        with caplog.at_level(logging.INFO, logger="loadwise.spark_source"):
            assert len(source.reader(source.schema()).partitions()) == 1
    assert len(said(caplog)) == lines
    assert all(record.levelno == logging.INFO and "call load()" in record.message for record in said(caplog))
    assert [record.message for record in own_log(caplog) if record.levelno > logging.INFO] == []
