"""No process outlives the one that started it."""

import os
import signal
import subprocess
import sys
import textwrap

from topics import until

from loadwise.demo.process import child

PARENT = """
import asyncio
from loadwise.demo.process import child

async def main():
    # It says that it runs, and nothing after that: writing to a closed pipe would end it as well.
    sleep = "print('up', flush=True); import time; time.sleep(600)"
    async with child("sleeper", "loadwise.demo.lifeline", "timeit", "-n1", "-r1", sleep) as sleeper:
        await anext(sleeper.lines())
        print(sleeper.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie has ended; only its parent has not asked yet.
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] != "Z"


def test_a_child_ends_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(PARENT)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert alive(pid)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    until(lambda: not alive(pid))


async def test_a_child_that_does_not_listen_is_killed_with_its_own_children() -> None:
    stubborn = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    async with child("stubborn", "timeit", "-n1", "-r1", stubborn) as process:
        grandchild = int(await anext(process.lines()))
        await process.close(grace_s=0.1)
    assert not alive(process.pid)
    until(lambda: not alive(grandchild))
