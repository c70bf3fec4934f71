"""Finds out how many tasks Spark runs at a time, from the command line of the driver's JVM.

PySpark (4.2, 4.3) passes a data source neither the session nor its configuration. But the driver's JVM is an ancestor
of the process that plans, and its command line has the settings at its start: ``--master``, ``--conf``,
``--properties-file``, and those of ``SparkSession.builder`` if that started the JVM. Settings of a running JVM are
missing. So this is only a default, which an option overrides.

Spark's classes: ``SparkSubmitArguments`` for the command line, ``SparkContext.createTaskScheduler`` for masters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

SUBMIT = "org.apache.spark.deploy.SparkSubmit"
MAINS = (SUBMIT, "org.apache.spark.deploy.yarn.ApplicationMaster")
"""Main classes of a driver's JVM."""
STAND_FOR = {
    "--master": "spark.master",
    "--executor-cores": "spark.executor.cores",
    "--num-executors": "spark.executor.instances",
    "--total-executor-cores": "spark.cores.max",
}
"""Arguments for a setting; they win over it."""
WITHOUT_VALUE = frozenset(("--help", "-h", "--supervise", "--usage-error", "--verbose", "-v", "--version"))
MOST_ABOVE = 5
"""The most ancestors to look at: PySpark's daemon is between, and a wrapper may be."""

_LOCAL = re.compile(r"local\[\s*([0-9]+|\*)\s*(?:,\s*[0-9]+\s*)?\]")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*([0-9]+)\s*,\s*([0-9]+)\s*,\s*[0-9]+\s*\]")
_PROPERTY = re.compile(r"\s*(spark\.[^\s=:]+)\s*[\s=:]\s*(.*?)\s*")


def slots_of_driver() -> int | None:
    """Return the task slots of the Spark that started this process; None if unknown. Reads ``/proc`` of Linux."""
    for command in _commands_above():
        settings = settings_of(command, os.environ, _text)
        if settings is not None:
            return slots_of(settings, _cpus())
    return None


def settings_of(
    command: Sequence[str], environment: Mapping[str, str], text: Callable[[Path], str]
) -> dict[str, str] | None:
    """Return the settings at the start of a driver's JVM; None for another command. Pure.

    ``text`` returns the text of a file, empty if it cannot be read.
    """
    main = next((index for index, word in enumerate(command) if word in MAINS), None)
    if main is None:
        return None
    of_java = [word.removeprefix("-D").partition("=") for word in command[:main] if word.startswith("-Dspark.")]
    settings: dict[str, str] = {}
    short: dict[str, str] = {}
    file = ""
    words = iter(command[main + 1 :])
    for word in words:
        if not word.startswith("-"):
            break  # the program, and its own arguments
        value = "" if word in WITHOUT_VALUE else next(words, "")
        if word in ("--conf", "-c"):
            name, _, of_name = value.partition("=")
            settings[name.strip()] = of_name.strip()
        elif word in STAND_FOR:
            short[STAND_FOR[word]] = value
        elif word == "--properties-file":
            file = value
    if file:
        path = Path(file)
    else:
        home = environment.get("SPARK_HOME", "")
        path = Path(environment.get("SPARK_CONF_DIR") or Path(home, "conf"), "spark-defaults.conf")
    found = {match[1]: match[2] for line in text(path).splitlines() if (match := _PROPERTY.fullmatch(line))}
    return found | {name: value for name, _, value in of_java} | settings | short


def slots_of(settings: Mapping[str, str], cpus: int) -> int | None:
    """Return how many tasks run at a time with these settings and this number of CPUs at the driver. Pure.

    In local mode these are at most the CPUs: more tasks would share them, and each costs its start. None with dynamic
    allocation, with an open number of executors, and for a setting that is no number.
    """
    master = settings.get("spark.master", "local[*]").strip()
    cores: int | None
    if master == "local":
        cores = 1
    elif local := _LOCAL.fullmatch(master):
        cores = cpus if local[1] == "*" else min(cpus, int(local[1]))
    elif cluster := _LOCAL_CLUSTER.fullmatch(master):
        cores = int(cluster[1]) * int(cluster[2])
    elif settings.get("spark.dynamicAllocation.enabled", "").strip().lower() == "true":
        cores = None
    elif master.startswith("spark://"):
        cores = _number(settings, "spark.cores.max")
    else:
        executors = _number(settings, "spark.executor.instances")
        each = _number(settings, "spark.executor.cores", default=1)
        cores = executors * each if executors and each else None
    for_each = _number(settings, "spark.task.cpus", default=1)
    return max(1, cores // for_each) if cores and for_each else None


def _number(settings: Mapping[str, str], name: str, *, default: int | None = None) -> int | None:
    value = settings.get(name, "").strip()
    if not value:
        return default
    return int(value) if value.isascii() and value.isdecimal() else None


def _commands_above() -> Iterator[list[str]]:
    """Yield the command lines of this process's ancestors, the nearest first; none without ``/proc``."""
    process = os.getppid()
    for _ in range(MOST_ABOVE):
        folder = Path("/proc", str(process))
        try:
            yield (folder / "cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            # The second field, the name, may hold spaces and brackets; the parent is the second one behind it.
            process = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # another user's process, or one that has ended
            return


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:  # mostly there is no file of defaults
        return ""


def _cpus() -> int:
    """Return the CPUs of this process as Java counts them, with a container's quota rounded up."""
    cpus = len(os.sched_getaffinity(0))
    quota, _, period = _text(Path("/sys/fs/cgroup/cpu.max")).strip().partition(" ")
    if quota.isdecimal() and period.isdecimal():
        cpus = min(cpus, -(-int(quota) // int(period)))
    return max(1, cpus)
