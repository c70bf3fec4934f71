"""Random groups and notes, whole, damaged or missing: the assignor in Java answers as the one in Python."""

import random
import subprocess

import pytest
from broker_assignor import JAR, TESTS, broker_assignor
from kafka_process import jars
from missing import skipped_where_missing
from seeds import SEED

from loadwise.assignor.steered import SteeredMember, steered
from loadwise.protocol.steering_note import UNOWNED, Plan, name_hash, newest_plan

pytestmark = pytest.mark.kafka

CASES = 2_000
NAMES = ("a", "é", "\uffee", "😀")  # in another order as UTF-16, which Java compares
CHANGES = "0123456789abAB+/ =é"


def note(chance, members, topics):
    capacities = {
        name_hash(each.id, each.instance_id): chance.randint(1, 3) for each in members if chance.random() < 0.75
    }
    if chance.random() < 0.5:
        capacities[chance.getrandbits(64)] = 2**32 - 1
    sizes = {topic: chance.randint(0, 13) for topic in sorted(topics) if chance.random() < 0.8}
    size = sum(sizes.values())
    plan = Plan(
        epoch=chance.randint(0, 9),
        capacities=dict(sorted(capacities.items())),
        partitions=sizes,
        owners=[chance.choice([*range(len(capacities)), UNOWNED]) for _ in range(size)],
        weights=[chance.choice([chance.randint(1, 40), 1 << chance.randint(0, 33)]) for _ in range(size)],
    )
    parts = plan.encode(chance.randint(0, 9))
    for number, part in enumerate(parts):
        if chance.random() < 0.1:
            at = chance.randrange(len(part))
            parts[number] = part[:at] + chance.choice(CHANGES) + part[at + 1 :]
    return parts


def case(chance):
    ids = [chance.randbytes(16) for _ in range(chance.randint(1, 5))]
    topics = {topic: chance.randint(0, 12) for topic in ids if chance.random() < 0.85}
    alike, members = chance.random() < 0.5, []
    for number in range(chance.randint(0, 8)):
        owned = {}
        for _ in range(chance.choice([0, chance.randint(0, 20)])):
            owned.setdefault(chance.choice(ids), set()).add(chance.randint(-1, 13))
        members.append(
            SteeredMember(
                id=f"{chance.choice(NAMES)}{number}",
                instance_id=f"i{number}" if chance.random() < 0.25 else None,
                rack_id="rack 1" if chance.random() < 0.2 else None,
                topics=[topic for topic in ids if alike or chance.random() < 0.67],
                owned=owned,
            )
        )
    parts = [part for _ in range(chance.choice([0, 1, 1, 2])) for part in note(chance, members, topics)]
    members += [SteeredMember(id=f"~{chance.getrandbits(40)}", rack_id=part) for part in parts]
    chance.shuffle(members)
    return members, topics


def lines(members, topics):
    """The case as Java's `Twin` reads it."""
    for topic, number in topics.items():
        yield f"topic\t{topic.hex()}\t{number}"
    for each in members:
        owned = ";".join(f"{topic.hex()}:{','.join(map(str, sorted(its)))}" for topic, its in each.owned.items())
        fields = (each.instance_id, each.rack_id, ",".join(topic.hex() for topic in each.topics), owned)
        yield "\t".join(["member", each.id, *(field or "-" for field in fields)])
    yield "end"


def test_the_broker_in_java_answers_as_ours_in_python():
    chance = random.Random(SEED)
    cases = [case(chance) for _ in range(CASES)]
    with skipped_where_missing():
        built, kafka = broker_assignor(), jars()
    command = ["java", "-cp", f"{built / JAR}:{built / TESTS}:{kafka}/*", "io.loadwise.broker.Twin"]
    text = "".join(f"{line}\n" for each in cases for line in lines(*each))
    ran = subprocess.run(command, input=text, capture_output=True, text=True, encoding="utf-8", check=True)
    answers = ran.stdout.split("end\n")[:-1]
    assert len(answers) == CASES
    whole = 0
    for (members, topics), answer in zip(cases, answers, strict=True):
        rows = [line.split("\t") for line in answer.splitlines()]
        java = {(topic, int(partition)): member for topic, partition, member in rows}
        assert len(java) == len(rows), "a partition with two owners"
        ours = {
            (topic.hex(), partition): member
            for member, its in steered(members, topics).items()
            for topic, partitions in its.items()
            for partition in partitions
        }
        assert java == ours, (members, topics)
        in_order = sorted(members, key=lambda each: each.id.encode())
        whole += newest_plan(each.rack_id for each in in_order if each.rack_id is not None) is not None
    assert CASES / 2 < whole < CASES, "cases with a complete note, and without"
