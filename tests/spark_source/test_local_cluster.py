"""Executors in processes of their own that have the package from an archive only: ``spark-submit --archives``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import pyspark
from topics import fill, make_topic

import loadwise

SIZES = [400, 30, 0, 20]
JOB = Path(__file__).with_name("packed_job.py")
OF_AIOKAFKA = ("async-timeout", "packaging", "typing_extensions")
PACKED = ("aiokafka", *OF_AIOKAFKA, "confluent-kafka", "crc32c", "cramjam", "numpy", "pyarrow")

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def make_environment(folder):
    """What ``pip install`` of what the documentation names leaves in a new virtual environment."""
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in PACKED:
        for file in distribution(name).files:
            # What nobody imports is a third of it; scripts (../) are of no use.
            if file.parts[0] != ".." and not {"include", "tests"} & set(file.parts):
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), site / file)
    source = Path(loadwise.__file__).parent
    shutil.copytree(source, site / "loadwise", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(source.with_name("pyspark_loadwise.py"), site)


@pytest.fixture
def folder(tmp_path):
    """Where the driver runs: beside the environment, its archive, and a SPARK_HOME that workers may write to."""
    make_environment(tmp_path / "environment")
    with tarfile.open(tmp_path / "environment.tar.gz", "w:gz", compresslevel=0) as archive:
        archive.add(tmp_path / "environment", arcname=".")
    (tmp_path / "spark").mkdir()
    for name in ("bin", "jars", "python"):
        (tmp_path / "spark" / name).symlink_to(Path(pyspark.__file__).parent / name)
    yield tmp_path
    for large in ("environment", "spark"):
        shutil.rmtree(tmp_path / large)
    (tmp_path / "environment.tar.gz").unlink()


@pytest.mark.skipif(sys.platform == "win32", reason="the archive's bin/python is a symbolic link")
def test_executors_have_the_package_from_the_archive(apache_kafka, topic_name, folder):
    make_topic(apache_kafka, topic_name, len(SIZES))
    fill(apache_kafka, topic_name, SIZES)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PYSPARK_PYTHON": "./environment/bin/python", "SPARK_HOME": str(folder / "spark")}
    settings = {
        "spark.cores.max": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        # No task begins before both executors are there, so that both have some.
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.ui.enabled": "false",
    }
    command = [folder / "spark" / "bin" / "spark-submit", "--master", "local-cluster[2,1,1024]"]
    command += ["--driver-memory", "512m", "--archives", "environment.tar.gz#environment"]
    command += [word for pair in settings.items() for word in ("--conf", "=".join(pair))]
    command += [JOB, apache_kafka, topic_name, "4", folder / "answer.json"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | {"SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    answer = json.loads((folder / "answer.json").read_text())
    assert answer["by default"] == 2, "two executors of a core"
    tasks = answer["tasks"]
    assert sorted(tuple(place) for task in tasks for place in task["read"]) == [
        (partition, offset) for partition, size in enumerate(SIZES) for offset in range(size)
    ]
    assert max(len(task["read"]) for task in tasks) < 200, "the hot partition was cut"
    work = folder / "spark" / "work"
    assert len({task["folder"] for task in tasks}) == 2
    for task in tasks:
        assert work in Path(task["folder"]).parents
        unpacked = Path(task["folder"], "environment")
        assert all(unpacked in Path(module).parents for module in (task["python"], *task["modules"])), task
