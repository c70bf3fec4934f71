"""Plans survive their way through rack ids, and whatever else stands in a rack id does no harm."""

import base64
import dataclasses
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.protocol.errors import UnencodableError
from loadwise.protocol.steering_note import PART_CHARS, PARTS, UNOWNED, Part, Plan, code, name_hash, newest_plan, scaled

EMPTY = Plan(epoch=0, capacities={}, partitions={}, owners=[], weights=[])


@st.composite
def plans(draw):
    capacities = draw(st.dictionaries(st.integers(0, 2**64 - 1), st.integers(1, 2**32 - 1), max_size=6))
    partitions = draw(st.dictionaries(st.binary(min_size=16, max_size=16), st.integers(0, 9), max_size=4))
    size = sum(partitions.values())
    owner = st.sampled_from([*range(len(capacities)), UNOWNED])
    return Plan(
        epoch=draw(st.integers(0, 2**31 - 1)),
        capacities=dict(sorted(capacities.items())),
        partitions=dict(sorted(partitions.items())),
        owners=draw(st.lists(owner, min_size=size, max_size=size)),
        weights=draw(st.lists(st.integers(1, 15 << 30), min_size=size, max_size=size)),
    )


@given(plans(), st.integers(0, 2**63 - 1))
def test_a_plan_is_read_as_it_was_written(plan, sequence):
    (part,) = plan.encode(sequence)
    found = newest_plan(["rack-1", part, ""])
    assert dataclasses.replace(found, weights=plan.weights) == plan
    assert found.weights == pytest.approx(plan.weights, rel=1 / 16)


@given(plans(), st.randoms(use_true_random=False))
def test_a_changed_rack_id_is_no_plan_or_a_whole_one(plan, chance):
    (part,) = plan.encode(1)
    changed = list(part)
    for _ in range(chance.randint(1, 3)):
        changed[chance.randrange(len(changed))] = chr(chance.choice([*range(32, 127), 0x662, 0xE9]))
    found = newest_plan(["".join(changed)])
    assert found is None or found.capacities == plan.capacities


@given(st.binary(max_size=200), plans())
def test_any_body_is_read_or_refused(data, plan):
    (part,) = plan.encode(1)
    whole = zlib.decompress(Part.decode(part).data)
    for body in (data, whole + data, data + whole, whole[: len(data)], whole[: len(whole) // 2] + data):
        packed = zlib.compress(body)
        newest_plan([written(Part.decode(part)._replace(data=packed, checksum=f"{zlib.crc32(packed):08x}"))])
    assert newest_plan([part.replace("plan:1", "plan:2")]) is None


def written(part):
    data = base64.b64encode(part.data).rstrip(b"=").decode()
    return f"loadwise-plan:1 {part.sequence} {part.number} {part.of} {part.checksum} {data}"


def large(partitions, members, seed=1):
    chance = random.Random(seed)
    names = sorted(name_hash(f"member-{number}", None) for number in range(members))
    topics = sorted(chance.randbytes(16) for _ in range(partitions // 100))
    return Plan(
        epoch=1,
        capacities=dict.fromkeys(names, 1),
        partitions=dict.fromkeys(topics, 100),
        owners=[chance.randrange(members) for _ in range(partitions)],
        weights=scaled([chance.lognormvariate(0, 1.5) for _ in range(partitions)]),
    )


def test_a_hundred_thousand_partitions_of_a_thousand_members_are_a_note():
    plan = large(100_000, 1_000)
    parts = plan.encode(7)
    assert len(parts) <= PARTS
    assert max(map(len, parts)) <= PART_CHARS
    assert sum(map(len, parts)) <= 300_000
    assert newest_plan(reversed(parts)).owners == plan.owners
    for missing in range(len(parts)):
        assert newest_plan(parts[:missing] + parts[missing + 1 :]) is None


def test_a_longer_plan_is_refused_with_its_size():
    with pytest.raises(UnencodableError, match="200,000 partitions and 2,000 members"):
        large(200_000, 2_000).encode(1)


def test_the_newest_complete_plan_counts():
    old, new = large(20_000, 10), large(20_000, 10, seed=2)
    before, after = old.encode(5), new.encode(6)
    assert len(after) > 1
    assert newest_plan(before + after[1:]).owners == old.owners
    assert newest_plan(before + after).owners == new.owners


@given(st.integers(0, 15 << 30))
def test_a_weight_is_right_to_a_sixteenth(weight):
    plan = dataclasses.replace(EMPTY, partitions={bytes(16): 1}, owners=[UNOWNED], weights=[weight])
    assert newest_plan(plan.encode(1)).weights == pytest.approx([max(weight, 1)], rel=1 / 16)
    assert 0 <= code(weight) <= 255
