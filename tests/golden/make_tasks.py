"""Make the golden tasks: groups of Kafka Streams at random, and what the real StickyTaskAssignor gives their members.

    python tests/golden/make_tasks.py --libs FOLDER_OF_KAFKAS_JARS > tests/golden/sticky-task-assignor-4.3.1.txt

Needs a JDK 17; CONTRIBUTING.md says where the jars are. A line has, with semicolons between them: the number of standby
replicas, the subtopologies (id, number of tasks, whether they have state), the members with their processes after each
change, and what they then got: active tasks, a slash, standbys. Each assignment starts from the one before it.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path

_CASES = 300
_CHANGES = 4


def _case(draw: random.Random) -> str:
    topology = [f"{number}:{draw.randint(1, 9)}:{draw.choice('sn')}" for number in range(draw.randint(1, 3))]
    members: dict[str, str] = {}
    changes = []
    for _ in range(draw.randint(1, _CHANGES)):
        for member in [each for each in members if draw.random() < 0.3]:
            del members[member]
        for _ in range(draw.randint(0 if members else 1, 4)):
            members[f"{draw.getrandbits(24):06x}"] = f"p{draw.randint(1, 5)}"
        changes.append(" ".join(f"{member}@{process}" for member, process in members.items()))
    return ";".join((str(draw.choice((0, 1, 1, 2))), ",".join(topology), "|".join(changes)))


def main() -> None:
    """Write the cases with their answers to standard output."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--libs", required=True, help="folder with the jars of org.apache.kafka:kafka_2.13:4.3.1")
    draw = random.Random(1071)
    cases = [_case(draw) for _ in range(_CASES)]
    java = ["java", "-cp", f"{options.parse_args().libs}/*", str(Path(__file__).with_name("StickyTasks.java"))]
    lines = "".join(f"{case}\n" for case in cases)
    answered = subprocess.run(java, input=lines, capture_output=True, text=True, check=False)
    sys.stderr.write(answered.stderr)
    for case, answers in zip(cases, answered.stdout.splitlines(), strict=True):
        sys.stdout.write(f"{case};{answers}\n")


if __name__ == "__main__":
    main()
