"""How many slots Spark has, out of the command line of the driver's JVM."""

from __future__ import annotations

from pathlib import Path

import pytest

from loadwise.spark_source.planning import slots as module
from loadwise.spark_source.planning.slots import SUBMIT, settings_of, slots_of

# As Spark 4.3 starts it: `ps -ww -o args` of the JVM of a PySpark program, of spark-submit and of YARN's cluster mode.
JAVA = ["/usr/lib/jvm/java-17/bin/java", "-cp", "/opt/spark/conf:/opt/spark/jars/*", "-Xmx2g", "-XX:+UseG1GC"]
PYSPARK = [*JAVA, SUBMIT, "--conf", "spark.master=local[3]", "--conf", "spark.app.name=a b --master x", "pyspark-shell"]
ON_YARN = [
    *["/usr/bin/java", "-server", "-Xmx1024m", "org.apache.spark.deploy.yarn.ApplicationMaster"],
    *["--class", "org.apache.spark.deploy.PythonRunner", "--primary-py-file", "job.py", "--arg", "7"],
    *["--properties-file", "/yarn/__spark_conf__/__spark_conf__.properties"],
]


def settings(command, files=None, environment=None):
    texts = {Path(name): text for name, text in (files or {}).items()}
    return settings_of(command, environment or {}, lambda path: texts.get(path, ""))


@pytest.mark.parametrize("command", [["python3", "-m", "pyspark.daemon"], ["bash", "-c", SUBMIT + " x"], [""], []])
def test_other_processes_are_no_driver(command):
    assert settings(command) is None


def test_what_a_session_was_built_with_stands_on_the_command_line():
    assert settings(PYSPARK) == {"spark.master": "local[3]", "spark.app.name": "a b --master x"}


def test_arguments_of_the_program_are_not_sparks():
    found = settings([*JAVA, SUBMIT, "--verbose", "--master", "local[4]", "job.py", "--master", "local[9]"])
    assert found == {"spark.master": "local[4]"}


def test_a_setting_goes_before_one_in_a_file_and_an_argument_before_both():
    defaults = "# local ones\nspark.master   yarn\nspark.executor.cores=4\nspark.executor.instances: 3\nother 1\n"
    files = {"/opt/spark/conf/spark-defaults.conf": defaults, "/etc/spark/spark-defaults.conf": "spark.task.cpus 2"}
    home = {"SPARK_HOME": "/opt/spark"}
    command = [*JAVA, "-Dspark.task.cpus=1", SUBMIT, "--conf", "spark.executor.cores=8", "--num-executors", "5", "x.py"]
    assert settings(command, files, home) == {
        "spark.master": "yarn",
        "spark.executor.cores": "8",
        "spark.executor.instances": "5",
        "spark.task.cpus": "1",
    }
    elsewhere = home | {"SPARK_CONF_DIR": "/etc/spark"}
    assert settings([*JAVA, SUBMIT, "x.py"], files, elsewhere) == {"spark.task.cpus": "2"}


def test_a_properties_file_takes_the_place_of_the_defaults():
    files = {
        "/yarn/__spark_conf__/__spark_conf__.properties": "spark.master=yarn\nspark.executor.instances=6\n",
        "/opt/spark/conf/spark-defaults.conf": "spark.executor.cores 9",
    }
    found = settings(ON_YARN, files, {"SPARK_HOME": "/opt/spark"})
    assert found == {"spark.master": "yarn", "spark.executor.instances": "6"}


@pytest.mark.parametrize(
    ("master", "more", "slots"),
    [
        ("local", {}, 1),
        ("local[2]", {}, 2),
        ("local[ 6 , 3 ]", {}, 6),
        ("local[12]", {}, 7),
        ("local[*]", {}, 7),
        (None, {}, 7),
        ("local[4]", {"task.cpus": "2"}, 2),
        ("local[1]", {"task.cpus": "2"}, 1),
        ("local-cluster[3,2,1024]", {}, 6),
        ("spark://host:7077", {"cores.max": "24"}, 24),
        ("spark://host:7077", {}, None),
        ("yarn", {"executor.instances": "10"}, 10),
        ("yarn", {"executor.instances": "10", "executor.cores": "4"}, 40),
        ("yarn", {"executor.instances": "10", "dynamicAllocation.enabled": "True"}, None),
        ("k8s://https://host", {"executor.instances": "5", "executor.cores": "4", "task.cpus": "2"}, 10),
        ("yarn", {"executor.cores": "4"}, None),
        ("yarn", {"executor.instances": "many"}, None),
        ("local[2]", {"task.cpus": "0"}, None),
        ("local[two]", {}, None),
    ],
)
def test_slots_by_master(master, more, slots):
    given = {f"spark.{name}": value for name, value in more.items()} | ({"spark.master": master} if master else {})
    assert slots_of(given, cpus=7) == slots


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("900000 100000\n", 8),
        ("max 100000\n", 8),
        ("150000 max\n", 8),
        ("", 8),
    ],
)
def test_a_containers_quota_of_cpus_is_rounded_up_as_in_java(quota, cpus, monkeypatch):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(module, "_text", {Path("/sys/fs/cgroup/cpu.max"): quota}.__getitem__)
    assert module._cpus() == cpus
