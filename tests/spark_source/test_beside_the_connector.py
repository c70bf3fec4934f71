"""What puts this source beside Spark's own runs: the benchmark's queries, and the example as it stands.

How fast either is is no test's business.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from missing import skipped_where_missing

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

from spark_connector import spark_jars

from benchmarks.records import publish
from benchmarks.spark.batches import WORKS, measure_batches, readers
from benchmarks.spark.micro_batches import measure_micro_batches
from benchmarks.spark.ready import ReadySource

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.spark]


@pytest.mark.long
@pytest.mark.parametrize("work", WORKS)
def test_the_benchmark_measures_batches(spark, coordinator, work) -> None:
    spark.dataSource.register(ReadySource)
    topic = publish(coordinator.bootstrap_servers, "skewed", 24)
    options = {"kafka.bootstrap.servers": coordinator.bootstrap_servers, "subscribe": topic}
    found = measure_batches(spark, options, readers(2, 24, connector=False), work=work, rounds=1, warm_up=0)
    assert len(found) == 2
    assert all(wall_s > 0 and cpu_s >= 0 for wall_s, cpu_s in found)


@pytest.mark.long
def test_the_benchmark_measures_micro_batches(spark, coordinator) -> None:
    spark.dataSource.register(ReadySource)
    each = readers(2, 24, connector=False)
    found = measure_micro_batches(spark, coordinator.bootstrap_servers, each, count=1, rounds=1, warm_up=0)
    assert len(found) == 2
    assert all(wall_s > 0 and cpu_s >= 0 for wall_s, cpu_s in found)


@pytest.mark.long
def test_a_source_of_ready_made_batches_has_as_many_records_as_it_is_told(spark) -> None:
    spark.dataSource.register(ReadySource)
    _, ready = readers(2, 25_001, connector=False)
    frame = ready.frame(spark, {})
    assert frame.count() == 25_001
    assert frame.rdd.getNumPartitions() == min(2, os.cpu_count() or 2)
    [row] = frame.selectExpr("min(length(value)) as least", "max(length(value)) as most").collect()
    assert (row.least, row.most) == (100, 100)


@pytest.mark.kafka
def test_the_example_draws_the_connectors_tasks_beside_ours(tmp_path: Path) -> None:
    with skipped_where_missing():
        jars = spark_jars()
    environment = os.environ | {"PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell", "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spark_task_times.py")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    names = [line.split(": ")[0] for line in done.stdout.splitlines() if "times the mean" in line]
    assert names == ["loadwise, split=false", "loadwise, split=true", "kafka"]
    html = (tmp_path / "spark-task-times.html").read_text(encoding="utf-8")
    assert html.count('role="img"') == 3
