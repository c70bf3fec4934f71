"""Fetches and builds beforehand what tests of the real tier need from Maven, npm and Go's proxy.

A test fetches what is missing too, but its timeout is no measure for a network. Skips what this machine lacks, unless
LOADWISE_REQUIRE_KAFKA is set.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from broker_assignor import broker_assignor
from kafka_process import short_lived_jvm
from maven import jars as fetched_jars
from missing import skipped_where_missing
from programs import built_go, with_npm
from spark_connector import connector_jars

CLIENTS = Path(__file__).resolve().parents[1] / "clients"
STREAMS = Path(__file__).with_name("streams.pom.xml")


def main() -> None:
    for what in (
        short_lived_jvm,
        connector_jars,
        broker_assignor,
        lambda: fetched_jars(STREAMS, "streams"),
        lambda: built_go(CLIENTS / "franz-go", "franz-go"),
        lambda: with_npm(CLIENTS / "kafkajs", "kafkajs"),
    ):
        try:
            with skipped_where_missing():
                what()
        except pytest.skip.Exception as skipped:
            print(f"left out: {skipped}")


if __name__ == "__main__":
    main()
