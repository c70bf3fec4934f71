"""``python -m benchmarks.spark``: this source beside Spark's own Kafka source, in one session and on the same topics.

It measures batches of a uniform and of a skewed topic (half of all records in one partition), with all columns or a
count, and near-empty micro-batches: a record a partition. It needs a JDK 17, and Maven for the connector and for Apache
Kafka.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import product

from kafka_process import running_kafka
from spark_connector import VERSION, JarsMissingError, shortfall, spark_jars

from benchmarks.markdown import markdown
from benchmarks.records import PARTITIONS, VALUE, publish
from benchmarks.spark.batches import WORKS, measure_batches, readers
from benchmarks.spark.environment import fitting_python
from benchmarks.spark.micro_batches import measure_micro_batches

KINDS = ("uniform", "skewed")
WARM_UP = 3
"""Rounds of a session's first row that do not count: a new JVM gets faster with each."""


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
    everybody = readers(1, 1, connector=bool(jars), min_partitions=chosen.min_partitions)
    print(f"\n{markdown(['', *(reader.name for reader in everybody)], rows)}\n")
    print(
        f"batches of {chosen.records:,} records of {len(VALUE)} bytes in {PARTITIONS} partitions, wall / CPU s,"
        f" medians of {chosen.rounds} rounds, {os.cpu_count()} CPUs,"
        f" load average {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    )


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of 100 bytes in each topic")
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 8], help="task slots; each has its session")
    parser.add_argument("--rounds", type=int, default=3, help="rounds that count, after those that warm up")
    parser.add_argument("--micro-batches", type=int, default=10, help="micro-batches in a round")
    parser.add_argument("--only", choices=["batches", "micro-batches"], help="measure only these")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS, help="topics of batches")
    parser.add_argument(
        "--works", choices=list(WORKS), nargs="+", default=["all columns"], help="work of batches; default: %(default)s"
    )
    parser.add_argument("--min-partitions", type=int, help="minPartitions of the tuned connector")
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
    """A row of the table for each number of slots and each topic and work, and for micro-batches."""
    from benchmarks.spark.session import session

    kinds = [] if chosen.only == "micro-batches" else chosen.kinds
    topics = {kind: publish(brokers, kind, chosen.records) for kind in kinds}
    for slots in chosen.slots:
        with session(slots, jars=jars) as spark:
            beside = f"beside the connector {VERSION}" if jars else "without the connector"
            print(f"Spark {spark.version}, {slots} slots, {beside}", flush=True)
            each = readers(slots, chosen.records, connector=bool(jars), min_partitions=chosen.min_partitions)
            for number, (kind, work) in enumerate(product(topics, chosen.works)):
                options = {"kafka.bootstrap.servers": brokers, "subscribe": topics[kind]}
                warm_up = 1 if number else WARM_UP
                found = measure_batches(spark, options, each, work=work, rounds=chosen.rounds, warm_up=warm_up)
                yield [f"{slots} slots, {kind}, {work}", *(f"{wall_s:.2f} / {cpu_s:.2f}" for wall_s, cpu_s in found)]
            if chosen.only != "batches":
                found = measure_micro_batches(spark, brokers, each, count=chosen.micro_batches, rounds=chosen.rounds)
                cells = (f"{1000 * wall_s:.0f} / {1000 * cpu_s:.0f}" for wall_s, cpu_s in found)
                yield [f"{slots} slots, micro-batches of {PARTITIONS} records, ms", *cells]


if __name__ == "__main__":
    main()
