"""Make the golden vectors: cases, answered by the assignors of the real kafka-clients jar.

    python tests/golden/make.py --libs FOLDER_OF_KAFKAS_JARS > tests/golden/kafka-clients-4.3.1.jsonl

Needs a JDK 17; CONTRIBUTING.md says where the jars are.

Each line is a case in the form of `loadwise assign`, with Java's answer under ``java``: the partitions
of every member in Java's order, the subscription that it would send and the assignment that it is sent, as hex.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")
RACKS = ("a", "b", "c")
Case = dict[str, Any]


def _named_cases() -> list[Case]:
    """Groups whose answer shows one rule each."""
    rules: dict[str, Case] = {
        "one topic, uneven": {"topics": {"t": {"partitions": 7}}, "members": _members("m1 m2 m3", ["t"])},
        "more members than partitions": {"topics": {"t": {"partitions": 2}}, "members": _members("m1 m2 m3", ["t"])},
        "topics in HashMap order": {
            "topics": {name: {"partitions": 3} for name in ("zeta", "topic10", "alpha", "topic9")},
            "members": _members("m1 m2", ["zeta", "topic10", "alpha", "topic9"]),
        },
        "a topic without metadata, and one that nobody reads": {
            "topics": {"t": {"partitions": 4}, "unread": {"partitions": 9}},
            "members": _members("m1 m2", ["t", "not-there-yet"]),
        },
        "static members first, interleaved with dynamic ones": {
            "topics": {"t": {"partitions": 7}},
            "members": [
                {"id": "m1", "topics": ["t"]},
                {"id": "m2", "topics": ["t"], "group_instance_id": "z"},
                {"id": "m3", "topics": ["t"]},
                {"id": "m4", "topics": ["t"], "group_instance_id": "a"},
            ],
        },
        "ids ordered by UTF-16 unit": {
            "topics": {"t": {"partitions": 5}},
            "members": _members("\uff5e \U0001f600 m", ["t"]),
        },
        "differing subscriptions": {
            "topics": {"t0": {"partitions": 1}, "t1": {"partitions": 2}, "t2": {"partitions": 3}},
            "members": [
                {"id": "c0", "topics": ["t0"]},
                {"id": "c1", "topics": ["t0", "t1"]},
                {"id": "c2", "topics": ["t0", "t1", "t2"]},
            ],
        },
        "one left": {
            "topics": {"t": {"partitions": 6}},
            "members": [
                {"id": "m1", "topics": ["t"], "owned": [["t", 0], ["t", 3]], "generation": 4},
                {"id": "m2", "topics": ["t"], "owned": [["t", 1], ["t", 4]], "generation": 4},
            ],
        },
        "one joined": {
            "topics": {"t": {"partitions": 6}},
            "members": [
                {"id": "m1", "topics": ["t"], "owned": [["t", 0], ["t", 2], ["t", 4]], "generation": 4},
                {"id": "m2", "topics": ["t"], "owned": [["t", 1], ["t", 3], ["t", 5]], "generation": 4},
                {"id": "m3", "topics": ["t"]},
            ],
        },
        "a stale claim loses": {
            "topics": {"t": {"partitions": 4}},
            "members": [
                {"id": "m1", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 3},
                {"id": "m2", "topics": ["t"], "owned": [["t", 1], ["t", 2]], "generation": 5},
            ],
        },
        "racks that matter": {
            "topics": {"t": {"partitions": 6, "racks": [["a"], ["b"], ["c"], ["a"], ["b"], ["c"]]}},
            "members": [
                {"id": f"m{number}", "topics": ["t"], "rack": rack} for number, rack in enumerate(("c", "b", "a"))
            ],
        },
    }
    return [
        {"id": f"{rule} / {strategy}", "strategy": strategy} | rules[rule] for rule in rules for strategy in STRATEGIES
    ]


def _members(ids: str, topics: list[str]) -> list[Case]:
    return [{"id": member, "topics": topics} for member in ids.split()]


def _random_cases(count: int) -> list[Case]:
    """Groups of every shape: differing subscriptions, racks, static members, what an earlier assignment left."""
    draw = random.Random(20240229)
    cases = []
    for number in range(count):
        names = [f"t{index}" for index in range(draw.randint(1, 5))]
        racked = draw.random() < 0.3
        topics: dict[str, Case] = {}
        for name in names:
            topics[name] = {"partitions": draw.randint(1, 9)}
            if racked:
                topics[name]["racks"] = [draw.sample(RACKS, 2) for _ in range(topics[name]["partitions"])]
        equal = draw.random() < 0.5
        members: list[Case] = []
        free = [[name, partition] for name in names for partition in range(topics[name]["partitions"])]
        draw.shuffle(free)
        for index in range(draw.randint(1, 7)):
            read = names if equal else sorted(draw.sample(names, draw.randint(1, len(names))))
            member: Case = {"id": f"member-{draw.randrange(1000)}-{index}", "topics": read}
            if draw.random() < 0.3:
                member["group_instance_id"] = f"instance-{draw.randrange(1000)}-{index}"
            if racked and draw.random() < 0.8:
                member["rack"] = draw.choice(RACKS)
            if draw.random() < 0.6:
                mine = [claim for claim in free[: draw.randint(0, 6)] if claim[0] in read]
                free = [claim for claim in free if claim not in mine]
                member |= {"owned": sorted(mine), "generation": 7}
            members.append(member)
        group: Case = {"topics": topics, "members": members}
        cases += [{"id": f"random {number} / {strategy}", "strategy": strategy} | group for strategy in STRATEGIES]
    return cases


def _equal_cases(count: int) -> list[Case]:
    """Groups whose members read the same topics: before the first assignment, and after everything that can change one.

    Their ids share buckets of a Java ``HashMap``, whose order decides who keeps a partition more.
    """
    draw = random.Random(20261122)
    cases = []
    for number in range(count):
        topics: dict[str, Case] = {
            f"t{index}": {"partitions": draw.randint(1, 12)} for index in range(draw.randint(1, 4))
        }
        ids = [
            f"{draw.choice(('app', 'member', 'Worker'))}-{draw.randrange(16**8):08x}"
            for _ in range(draw.randint(1, 14))
        ]
        partitions = [[name, partition] for name in topics for partition in range(topics[name]["partitions"])]
        owned: dict[str, list[Any]] = {member: [] for member in ids}
        change = draw.choice(
            ("first", "nothing", "join", "leave", "grown topic", "new topic", "lost topic", "contested")
        )
        if change != "first":
            draw.shuffle(partitions)
            for place, partition in enumerate(partitions):
                if draw.random() < 0.95:
                    owned[ids[place % len(ids) if draw.random() < 0.9 else 0]].append(partition)
        generations = dict.fromkeys(ids, 7)
        if change == "join":
            ids += [f"new-{draw.randrange(1000)}-{index}" for index in range(draw.randint(1, 4))]
        elif change == "leave":
            ids = ids[draw.randint(1, 3) :] or ids
        elif change == "grown topic":
            topics["t0"] = {"partitions": topics["t0"]["partitions"] + draw.randint(1, 9)}
        elif change == "new topic":
            topics["new"] = {"partitions": draw.randint(1, 9)}
        elif change == "lost topic" and len(topics) > 1:
            del topics["t0"]
            owned = {member: [claim for claim in claims if claim[0] != "t0"] for member, claims in owned.items()}
        elif change == "contested" and len(ids) > 1:
            rival = ids[-1]
            generations[rival] = draw.choice((6, 7, 8))
            owned[rival] = owned[rival] + [claim for member in ids[:-1] for claim in owned[member][:1]]
        draw.shuffle(ids)
        members: list[Case] = []
        for member in ids:
            members.append({"id": member, "topics": sorted(topics)})
            if member in owned and change != "first":
                members[-1] |= {"owned": sorted(owned[member]), "generation": generations[member]}
        group: Case = {"topics": topics, "members": members}
        cases += [
            {"id": f"equal {number}, {change} / {strategy}", "strategy": strategy} | group
            for strategy in ("sticky", "cooperative-sticky")
        ]
    return cases


def main() -> None:
    """Write the vectors to standard output."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--libs", required=True, help="folder with the jars of org.apache.kafka:kafka_2.13:4.3.1")
    cases = [*_named_cases(), *_random_cases(30), *_equal_cases(80)]
    java = ["java", "-cp", f"{options.parse_args().libs}/*", str(Path(__file__).with_name("Golden.java"))]
    asked = "".join(json.dumps(case) + "\n" for case in cases)
    answered = subprocess.run(java, input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    for case, answer in zip(cases, answered, strict=True):
        sys.stdout.write(json.dumps(case | {"java": json.loads(answer)}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
