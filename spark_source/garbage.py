"""Spares a Python process of Spark's to look for garbage among what it has loaded, after each task.

PySpark's workers run ``gc.collect()`` after each task, and those that plan do it after each query. With PySpark, Arrow
and this source loaded that takes 37 ms of CPU each time, five times what reading a few records takes.
"""

from __future__ import annotations

import gc
import os
from functools import cache

from loadwise.spark_source.cluster.kept import REUSED


@cache
def exclude_what_is_loaded() -> None:
    """Let no later collection look at what there is by now: modules, which stay. Only the first call does anything.

    And only in a process that others use after this task. What is made later is collected as ever, and what is there
    already is freed as ever once nobody refers to it (``gc.freeze``).
    """
    if os.environ.get(REUSED):
        gc.freeze()
