"""Exclude loaded modules from garbage collection in Spark's Python processes.

PySpark's workers run ``gc.collect()`` after each task, and planning processes after each query. With PySpark, Arrow and
this source loaded, that takes 37 ms of CPU each time, five times the cost of reading a few records.
"""

from __future__ import annotations

import gc
import os
from functools import cache

from loadwise.spark_source.cluster.kept import REUSED


@cache
def exclude_what_is_loaded() -> None:
    """Exclude all current objects, mostly modules, from later collections. Only the first call has an effect.

    It acts only in a process that is reused. Later objects are collected as usual. Current objects are still freed
    once they have no references (``gc.freeze``).
    """
    if os.environ.get(REUSED):
        gc.freeze()
