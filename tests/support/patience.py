"""Lets consumers wait for their first reading of the lag however slow the machine is: none joins without.

``python patience.py PROGRAM ARGUMENTS...`` runs a program so.
"""

from __future__ import annotations

import runpy
import sys
from importlib import import_module
from pathlib import Path

from topics import WAIT_S

_CLIENTS = "loadwise.assignor.clients"
LIMITS: dict[str, float] = {
    f"{_CLIENTS}.watch.FIRST_READING_S": WAIT_S,
    f"{_CLIENTS}.watch._OF_SESSION": WAIT_S,
    f"{_CLIENTS}.kafka_python.consumer.FIRST_READING_S": WAIT_S,
    f"{_CLIENTS}.kafka_python.lag._TIMEOUT_MS": int(1000 * WAIT_S),
    f"{_CLIENTS}.aiokafka.consumer.FIRST_READING_S": WAIT_S,
    f"{_CLIENTS}.aiokafka.lag._TIMEOUT_S": WAIT_S,
}

if __name__ == "__main__":
    for place, limit in LIMITS.items():
        module, _, name = place.rpartition(".")
        setattr(import_module(module), name, limit)
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
