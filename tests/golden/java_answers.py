"""What a Java program of this folder answers to cases made at random: how golden files of decisions are made."""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def write(description: str | None, program: str, case: Callable[[random.Random], str], count: int, seed: int) -> None:
    """Write so many cases, each with the program's answer behind a semicolon, to standard output."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--libs", required=True, help="folder with the jars of org.apache.kafka:kafka_2.13:4.3.1")
    draw = random.Random(seed)
    cases = [case(draw) for _ in range(count)]
    java = ["java", "-cp", f"{options.parse_args().libs}/*", str(Path(__file__).with_name(program))]
    lines = "".join(f"{each}\n" for each in cases)
    answered = subprocess.run(java, input=lines, capture_output=True, text=True, check=False)
    sys.stderr.write(answered.stderr)
    for each, answer in zip(cases, answered.stdout.splitlines(), strict=True):
        sys.stdout.write(f"{each};{answer}\n")
