"""Make the golden tasks: groups of Kafka Streams at random, and what the real StickyTaskAssignor gives their members.

    python tests/golden/make_tasks.py --libs FOLDER_OF_KAFKAS_JARS > tests/golden/sticky-task-assignor-4.3.1.txt

Needs a JDK 17; CONTRIBUTING.md says where the jars are. A line has, with semicolons between them: the number of standby
replicas, the subtopologies (id, number of tasks, whether they have state), the members with their processes after each
change, and what they then got: active tasks, a slash, standbys. Each assignment starts from the one before it.
"""

from __future__ import annotations

import random

import java_answers

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


if __name__ == "__main__":
    java_answers.write(__doc__, "StickyTasks.java", _case, _CASES, seed=1071)
