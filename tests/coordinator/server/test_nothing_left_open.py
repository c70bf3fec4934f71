"""In a process of its own, since what other clients leave open would be found here too."""

import subprocess
import sys

PROGRAM = """
import gc, socket, warnings
from loadwise.coordinator import Coordinator

def connect(running):
    host, port = running.bootstrap_servers.split(":")
    return socket.create_connection((host, int(port)))

with Coordinator(topics={"t": 1}).in_thread() as running:
    with connect(running) as half:
        half.sendall(b"\\0\\0\\0")  # a frame of which no more comes
    with connect(running) as asking:
        asking.sendall(bytes.fromhex("0000000e 0012 0000 00000001 0004") + b"test")
        assert asking.recv(4096)
    open_until_the_end = connect(running)
open_until_the_end.close()
gc.collect()
"""


def test_the_coordinator_leaves_neither_sockets_nor_warnings_behind():
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
    assert "ResourceWarning" not in done.stderr


def test_what_is_left_open_would_be_seen():
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning"]
    leak = PROGRAM.replace("open_until_the_end.close()", "del open_until_the_end")
    done = subprocess.run([*command, "-c", leak], capture_output=True, text=True, check=False)
    assert "ResourceWarning: unclosed <socket" in done.stderr
