"""The same group has the same answer to the byte, in whatever order it is described, in every Python process."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from typing import Any

import pytest

from loadwise.assignor.strategy import strategies

ANSWER = """
import sys
from loadwise.cli.assign import answer
for line in sys.stdin.buffer:
    given = answer(line)
    print({key: value for key, value in given.items() if key != "elapsed_ms"})
"""


def cases(strategy: str) -> list[dict[str, Any]]:
    """Groups with everything that an order could hide in: equal loads, ties, racks, odd names, double claims."""
    rng = random.Random(strategy)
    made = []
    for number in range(6):
        topics = {name: rng.randint(1, 12) for name in rng.sample(["a", "b", "c", "\uff5e", "\U0001f600", "z" * 40], 4)}
        members = []
        for index in range(rng.randint(2, 7)):
            wanted = list(topics) if number % 2 else rng.sample(list(topics), rng.randint(1, 4))
            owned = [[topic, p] for topic in wanted for p in range(topics[topic]) if rng.random() < 0.3]
            member = {"id": f"m-{rng.random()}", "topics": wanted, "owned": owned, "generation": rng.choice([1, 2, 2])}
            if index % 3 == 0:
                member["group_instance_id"] = f"i{index}"
            if number >= 4:
                member["rack"] = f"r{index % 2}"
            members.append({**member, "capacity": rng.choice([1.0, 1.0, 2.5])})
        case: dict[str, Any] = {"id": number, "strategy": strategy, "members": members}
        racks = {topic: [[f"r{rng.randint(0, 2)}"] for _ in range(n)] for topic, n in topics.items()}
        case["topics"] = {topic: {"partitions": n, "racks": racks[topic]} for topic, n in topics.items()}
        loads = {topic: [rng.choice([0, 1, 1, 5, 0.1, None]) for _ in range(n)] for topic, n in topics.items()}
        if number % 3 == 0:
            thirds = {topic: [0.3 if x is None else x / 3 for x in row] for topic, row in loads.items()}
            case["resources"] = {"cpu": loads, "bytes": thirds}
        elif number % 3 == 1:
            case["lag"], case["rate"] = loads, {topic: row[::-1] for topic, row in loads.items()}
        else:
            case["weights"] = loads
        made.append(case)
    return made


def shuffled(value: Any, rng: random.Random, *, reorder_lists: bool = True) -> Any:
    """The same with keys, members, subscriptions and claims in another order; loads and racks stay by position."""
    if isinstance(value, dict):
        keys = rng.sample(list(value), len(value))
        return {key: shuffled(value[key], rng, reorder_lists=key in {"members", "topics", "owned"}) for key in keys}
    if isinstance(value, list) and reorder_lists:
        return [shuffled(item, rng, reorder_lists=False) for item in rng.sample(value, len(value))]
    return value


@pytest.mark.parametrize("strategies", [[*strategies()][::2], [*strategies()][1::2]], ids=["some", "others"])
def test_no_order_and_no_hash_seed_changes_a_byte(strategies: list[str]) -> None:
    given = [case for strategy in strategies for case in cases(strategy)]
    outputs = []
    for seed in ("0", "4242"):
        order = random.Random(seed)
        lines = [json.dumps(case if seed == "0" else shuffled(case, order)) for case in given]
        done = subprocess.run(
            [sys.executable, "-c", ANSWER],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout.splitlines())
    assert "error" not in "".join(outputs[0])
    assert len(outputs[0]) == len(given)
    for first, second in zip(*outputs, strict=True):
        assert first == second
