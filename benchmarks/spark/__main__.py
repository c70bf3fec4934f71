"""``python -m benchmarks.spark``: this source beside Spark's own Kafka source, in one session and on the same topics.

It measures batches with all columns, of a uniform and of a skewed topic (half of all records in one partition). It
needs a JDK 17, and Maven for the connector and for Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext

from kafka_process import running_kafka
from spark_connector import VERSION, JarsMissingError, shortfall, spark_jars

from benchmarks.markdown import markdown
from benchmarks.records import PARTITIONS, VALUE, publish
from benchmarks.spark.batches import measure_batches, readers
from benchmarks.spark.environment import fitting_python

KINDS = ("uniform", "skewed")
WARM_UP = 3
"""Rounds of a session's first topic that do not count: a new JVM gets faster with each."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the measurements, and print a table."""
    chosen = _arguments(arguments)
    if chosen.connector:
        python = fitting_python()
        if python != sys.executable:
            again = [python, "-m", "benchmarks.spark", *(sys.argv[1:] if arguments is None else arguments)]
            raise SystemExit(subprocess.run(again, check=False).returncode)
    load = os.getloadavg()[0]
    jars = _jars() if chosen.connector else ""
    with nullcontext(chosen.brokers) if chosen.brokers else running_kafka(jvm=()) as brokers:
        rows = list(_measured(chosen, brokers, jars))
    print(f"\n{markdown(['', *(reader.name for reader in readers(1, 1, connector=bool(jars)))], rows)}\n")
    print(
        f"{chosen.records:,} records of {len(VALUE)} bytes in {PARTITIONS} partitions, wall / CPU s,"
        f" medians of {chosen.rounds} rounds, {os.cpu_count()} CPUs,"
        f" load average {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    )


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of 100 bytes in each topic")
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 8], help="task slots; each has its session")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count, after those that warm up")
    parser.add_argument("--brokers", help="a running Kafka; default: starts Apache Kafka")
    parser.add_argument("--no-connector", dest="connector", action="store_false", help="leave Spark's own source out")
    return parser.parse_args(arguments)


def _jars() -> str:
    try:
        jars: str = spark_jars()
        older = shortfall()
    except JarsMissingError as error:
        raise SystemExit(f"cannot get Spark's own source (--no-connector leaves it out): {error}") from error
    if older is not None:
        print(older)
    return jars


def _measured(chosen: argparse.Namespace, brokers: str, jars: str) -> Iterator[list[str]]:
    """A row of the table for each number of slots and each topic."""
    from benchmarks.spark.session import session

    topics = {kind: publish(brokers, kind, chosen.records) for kind in KINDS}
    for slots in chosen.slots:
        with session(slots, jars=jars) as spark:
            beside = f"beside the connector {VERSION}" if jars else "without the connector"
            print(f"Spark {spark.version}, {slots} slots, {beside}", flush=True)
            for kind, topic in topics.items():
                options = {"kafka.bootstrap.servers": brokers, "subscribe": topic}
                each = readers(slots, chosen.records, connector=bool(jars))
                warm_up = WARM_UP if kind == KINDS[0] else 1
                found = measure_batches(spark, options, each, rounds=chosen.rounds, warm_up=warm_up)
                yield [f"{slots} slots, {kind}", *(f"{wall_s:.2f} / {cpu_s:.2f}" for wall_s, cpu_s in found)]


if __name__ == "__main__":
    main()
