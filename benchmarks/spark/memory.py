"""The peak memory of tasks' Python workers. Reads ``/proc``, so it is for Linux."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.spark.readers import READY, RECORDS, TASKS

_RESET_PEAK = "5"
"""Written to ``/proc/PID/clear_refs`` to reset the peak: see ``man proc_pid_clear_refs``."""
_DAEMON = b"pyspark.daemon\0pyspark.worker"
_MEGABYTE = 1 << 20


def idle_mb(spark: Any) -> float:
    """The memory of a worker that has read nothing, with Arrow loaded like each worker of a source."""
    slots = str(spark.sparkContext.defaultParallelism)
    ready = spark.read.format(READY).options(**{RECORDS: slots, TASKS: slots})
    ready.load().write.format("noop").mode("overwrite").save()
    return median(_status_mb(worker, "VmRSS") for worker in _workers(spark))


def forget_peaks(spark: Any) -> None:
    """Count from the workers' present memory."""
    for worker in _workers(spark):
        with suppress(OSError):  # it has ended
            (worker / "clear_refs").write_text(_RESET_PEAK)


def peak_mb(spark: Any) -> float:
    """The peak of any worker since then."""
    return max(_status_mb(worker, "VmHWM") for worker in _workers(spark))


def _workers(spark: Any) -> list[Path]:
    """PySpark's daemon for tasks forks them; planning processes come from other daemons."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if _DAEMON in (process / "cmdline").read_bytes() and _DAEMON in (_parent(process) / "cmdline").read_bytes():
                found.append(process)
    ours = spark.sparkContext._gateway.proc.pid
    return [process for process in found if int(_parent(_parent(process)).name) == ours]


def _parent(process: Path) -> Path:
    return process.with_name((process / "stat").read_text().rpartition(") ")[2].split()[1])


def _status_mb(process: Path, name: str) -> float:
    for line in (process / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024 / _MEGABYTE
    return 0.0
