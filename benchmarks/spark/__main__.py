"""``python -m benchmarks.spark``: this source beside Spark's own Kafka source, in one session and on the same topics.

It measures batches, uniform and skewed (half of all records in one partition), with a count, all columns or work for
each record; near-empty and small micro-batches; and batches from a Kafka that is 20 ms away. It needs a JDK 17, and
Maven for the connector and for Apache Kafka.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path

from benchmarks.spark.batches import WORKS, measure_batches, publish
from benchmarks.spark.delay import delay_proxy
from benchmarks.spark.environment import (
    VERSION,
    JarsMissingError,
    fitting_python,
    kafka_from_jars,
    running_kafka,
    shortfall,
    spark_jars,
)
from benchmarks.spark.results import Measured, Scenario, all_columns_table, table

KINDS = ["uniform", "skewed"]
NEAR_EMPTY, SMALL = 1, 500
"""Records a partition and micro-batch."""
WARM_UP = 3
"""Rounds of a session's first scenario that do not count: a new JVM gets faster with each."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the chosen measurements, and print tables."""
    chosen = _arguments(arguments)
    if chosen.connector:
        python = fitting_python()
        if python != sys.executable:
            again = [python, "-m", "benchmarks.spark", *(sys.argv[1:] if arguments is None else arguments)]
            raise SystemExit(subprocess.run(again, check=False).returncode)
    results: dict[Scenario, dict[str, Measured]] = {}
    load = os.getloadavg()[0]
    jars = _jars() if chosen.connector else ""
    chosen.log.write_bytes(b"")
    for delay_ms in chosen.delays_ms:
        with _kafka(chosen, delay_ms) as brokers:
            for scenario, readers in measured(chosen, brokers, jars, delay_ms):
                results[scenario] = readers
                print(f"\n{table(scenario, readers)}", flush=True)
    print(f"\n{all_columns_table(results)}\n")
    print(
        f"{chosen.records:,} records of 100 bytes in 12 partitions, {chosen.far_records:,} where Kafka is far away,"
        f" medians of {chosen.rounds} rounds, {os.cpu_count()} CPUs,"
        f" load average {load:.1f} before and {os.getloadavg()[0]:.1f} after"
    )
    print(f"Spark's log: {chosen.log.resolve()}")


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records of 100 bytes in each topic of a batch")
    parser.add_argument("--far-records", type=int, default=300_000, help="the same with a distant Kafka")
    parser.add_argument("--slots", type=int, nargs="+", default=[2, 8], help="task slots; each has its session")
    parser.add_argument("--rounds", type=int, default=5, help="rounds that count, after those that warm up")
    parser.add_argument("--micro-batches", type=int, default=10, help="micro-batches in a round")
    parser.add_argument("--only", choices=["batches", "micro-batches"], help="measure only these")
    parser.add_argument("--kinds", choices=KINDS, nargs="+", default=KINDS, help="topics of batches")
    parser.add_argument(
        "--works",
        choices=list(WORKS),
        nargs="+",
        default=["count", "all columns"],
        help="work of batches; default: %(default)s",
    )
    parser.add_argument("--brokers", help="a running Kafka; default: starts Apache Kafka")
    parser.add_argument(
        "--delays-ms",
        type=float,
        nargs="+",
        default=[0, 20],
        help="added to each round trip to Kafka; micro-batches run only without a delay",
    )
    parser.add_argument("--no-connector", dest="connector", action="store_false", help="leave Spark's own source out")
    parser.add_argument(
        "--log", type=Path, default=Path("benchmark-spark.log"), help="Spark's log; default: %(default)s"
    )
    return parser.parse_args(arguments)


@contextmanager
def _kafka(chosen: argparse.Namespace, delay_ms: float) -> Iterator[str]:
    """Yield the address to read from. A Kafka of the user's gets no delay."""
    if chosen.brokers:
        yield chosen.brokers
    elif not delay_ms:
        with running_kafka(jvm=()) as brokers:
            yield brokers
    else:
        with (
            delay_proxy(delay_ms) as proxy,
            kafka_from_jars(proxied={"FAR": proxy.address}, jvm=()) as addresses,
        ):
            proxy.lead_to(addresses["FAR"])
            yield proxy.address


def _jars() -> str:
    try:
        jars: str = spark_jars()
        older = shortfall()
    except JarsMissingError as error:
        raise SystemExit(f"cannot get Spark's own source (--no-connector leaves it out): {error}") from error
    if older is not None:
        print(older)
    return jars


def measured(
    chosen: argparse.Namespace, brokers: str, jars: str, delay_ms: float
) -> Iterator[tuple[Scenario, dict[str, Measured]]]:
    """Measure one scenario after the other."""
    from benchmarks.spark.memory import idle_mb
    from benchmarks.spark.micro_batches import measure_micro_batches
    from benchmarks.spark.readers import batch_readers, stream_readers
    from benchmarks.spark.session import session

    kinds = [] if chosen.only == "micro-batches" else chosen.kinds
    records = chosen.far_records if delay_ms else chosen.records
    topics = {kind: publish(brokers, kind, records) for kind in kinds}
    for slots in chosen.slots:
        with session(slots, jars=jars, log=chosen.log) as spark:
            spark.sparkContext.setLogLevel("ERROR")
            beside = f"beside the connector {VERSION}" if jars else "without the connector"
            print(f"\nSpark {spark.version}, {slots} slots, {os.cpu_count()} CPUs, {beside}")
            idle = idle_mb(spark)
            for number, (kind, work) in enumerate(product(topics, chosen.works)):
                options = {"kafka.bootstrap.servers": brokers, "subscribe": topics[kind]}
                scenario = Scenario(f"{kind}, {work}", slots, delay_ms=delay_ms)
                everybody = batch_readers(slots, records, connector=bool(jars))
                warm_up = 1 if number else WARM_UP
                yield (
                    scenario,
                    measure_batches(
                        spark, options, everybody, work=work, rounds=chosen.rounds, idle_mb=idle, warm_up=warm_up
                    ),
                )
            if chosen.only == "batches" or delay_ms:
                continue
            for name, each in (("near-empty", NEAR_EMPTY), ("small", SMALL)):
                scenario = Scenario(f"{name} micro-batches, {each} a partition", slots, micro=True)
                yield (
                    scenario,
                    measure_micro_batches(
                        spark,
                        brokers,
                        stream_readers(slots, connector=bool(jars)),
                        records=each,
                        count=chosen.micro_batches,
                        rounds=chosen.rounds,
                    ),
                )


if __name__ == "__main__":
    main()
