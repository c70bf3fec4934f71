"""What a broker's assignor does with a note, with one half missing, and with none."""

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from note_parts import parts_of

from loadwise.assignor.steered import SteeredMember, steered
from loadwise.protocol.steering_note import UNOWNED, Plan, name_hash, newest_plan

VECTORS = Path(__file__).parents[2] / "assignor/broker/src/test/resources/vectors.txt"
A, B = b"a" * 16, b"b" * 16


def owners(answer):
    return {
        (topic, partition): member
        for member, topics in answer.items()
        for topic, partitions in topics.items()
        for partition in partitions
    }


def plan_for(members, sizes, chance, known=1.0):
    some = [member for member in members if chance.random() < known]
    capacities = {name_hash(member.id, member.instance_id): chance.randint(1, 3) for member in some}
    size = sum(sizes.values())
    return Plan(
        epoch=1,
        capacities=dict(sorted(capacities.items())),
        partitions=dict(sorted(sizes.items())),
        owners=[chance.choice([*range(len(capacities)), UNOWNED]) for _ in range(size)],
        weights=[chance.randint(1, 100) for _ in range(size)],
    )


def groups(chance):
    """Members with any present assignment, and the sizes of topics."""
    sizes = {bytes([number]) * 16: chance.randint(0, 8) for number in range(chance.randint(1, 4))}
    topics = [*sizes, b"gone" * 4]
    members = []
    for number in range(chance.randint(1, 7)):
        owned = {topic: chance.sample(range(12), chance.randint(0, 3)) for topic in chance.sample(topics, 1)}
        reads = chance.sample(topics, chance.randint(0, len(topics)))
        instance = f"i{number}" if chance.random() < 0.3 else None
        members.append(SteeredMember(id=f"m{number}", instance_id=instance, topics=reads, owned=owned))
    return members, sizes


def steering(parts):
    return [SteeredMember(id=f"steering-{number}", rack_id=part) for number, part in enumerate(parts)]


@given(st.randoms(use_true_random=False))
def test_each_partition_with_a_reader_has_one_owner_that_reads_it(chance):
    members, sizes = groups(chance)
    notes = steering(plan_for(members, sizes, chance, known=0.7).encode(1)) if chance.random() < 0.7 else []
    answer = steered([*members, *notes], sizes)
    assert set(answer) == {member.id for member in [*members, *notes]}
    reads = {member.id: set(member.topics) for member in members}
    given_ = [(topic, number) for topics in answer.values() for topic, numbers in topics.items() for number in numbers]
    assert sorted(given_) == sorted(
        (topic, number)
        for topic, size in sizes.items()
        if any(topic in each for each in reads.values())
        for number in range(size)
    )
    assert all(topic in reads[member] for (topic, _), member in owners(answer).items())


@given(st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter_and_a_second_call_moves_nothing(chance):
    members, sizes = groups(chance)
    notes = steering(plan_for(members, sizes, chance, known=0.7).encode(1)) if chance.random() < 0.7 else []
    answer = steered([*members, *notes], sizes)
    mixed = [*members, *notes]
    chance.shuffle(mixed)
    assert steered(mixed, sizes) == answer
    after = [
        SteeredMember(id=each.id, instance_id=each.instance_id, topics=each.topics, owned=answer[each.id])
        for each in members
    ]
    assert steered([*after, *notes], sizes) == answer


@given(st.randoms(use_true_random=False))
def test_no_member_is_starved(chance):
    """A member without a planned partition has none only if a partition more would make it the fuller one of two."""
    members, sizes = groups(chance)
    plan = plan_for(members, sizes, chance, known=chance.choice([0.0, 0.5, 1.0]))
    answer = steered([*members, *steering(plan.encode(1))], sizes)
    found = newest_plan(plan.encode(1))
    weight = dict(zip(((t, n) for t, size in sizes.items() for n in range(size)), found.weights, strict=True))
    usual = max(sum(plan.capacities.values()) // max(len(plan.capacities), 1), 1)
    capacity = {each.id: plan.capacities.get(name_hash(each.id, each.instance_id), usual) for each in members}
    now = owners(answer)
    level = {
        each.id: sum(weight[where] for where, owner in now.items() if owner == each.id) / capacity[each.id]
        for each in members
    }
    planned = dict(zip(weight, plan.owners, strict=True))
    place = {name: number for number, name in enumerate(plan.capacities)}
    for member in members:
        name = name_hash(member.id, member.instance_id)
        mine = {where for where, owner in planned.items() if owner == place.get(name, -1) and where[0] in member.topics}
        for where, owner in now.items():
            fuller = level[member.id] + weight[where] / capacity[member.id]
            if not mine and where[0] in member.topics and not answer[member.id]:
                assert fuller >= level[owner] * (1 - 1e-9), (member.id, where)
            if where in mine and owner != member.id:
                assert fuller >= level[owner] * (1 - 1e-9), (member.id, where)


def test_the_vectors_that_java_reads_too():
    heading, *blocks = VECTORS.read_text().split("\n\n")
    assert heading.startswith("#")
    for block in blocks:
        name, *lines = block.splitlines()
        members, sizes, expected = [], {}, {}
        for kind, *fields in (line.split("\t") for line in lines):
            if kind == "topic":
                sizes[bytes.fromhex(fields[0])] = int(fields[1])
            elif kind == "owner":
                expected[bytes.fromhex(fields[0]), int(fields[1])] = fields[2]
            else:
                assert kind == "member"
                member, instance, rack, topics, owned = (None if field == "-" else field for field in fields)
                sides = [each.split(":") for each in (owned or "").split(";") if each]
                members.append(
                    SteeredMember(
                        id=member,
                        instance_id=instance,
                        rack_id=rack,
                        topics=[bytes.fromhex(topic) for topic in (topics or "").split(",") if topic],
                        owned={bytes.fromhex(topic): [int(n) for n in its.split(",")] for topic, its in sides},
                    )
                )
        assert owners(steered(members, sizes)) == expected, name


@given(st.randoms(use_true_random=False))
def test_without_a_note_nothing_moves_that_has_a_living_owner_unless_a_member_owns_nothing(chance):
    members, sizes = groups(chance)
    whole = steered(members, sizes)
    after = [SteeredMember(id=each.id, topics=each.topics, owned=whole[each.id]) for each in members]
    left = [each for each in after if chance.random() < 0.7]
    kept = owners({each.id: whole[each.id] for each in left})
    if all(each.owned for each in left if set(each.topics) & set(sizes)):
        now = owners(steered(left, sizes))
        assert {where: now[where] for where in kept} == kept


def test_a_member_that_owns_nothing_gets_its_fair_count():
    before = [SteeredMember(id=f"m{number}", topics=[A], owned={A: range(number, 12, 3)}) for number in range(3)]
    answer = steered([*before, SteeredMember(id="new", topics=[A])], {A: 12})
    assert sorted(len(topics[A]) for topics in answer.values()) == [3, 3, 3, 3]
    moved = {where for where, owner in owners(answer).items() if owner == "new"}
    assert len(moved) == 3


def test_a_plan_is_followed_and_what_it_leaves_goes_to_the_least_loaded():
    names = {member: name_hash(member, None) for member in ("m0", "m1", "m2")}
    places = {member: sorted(names.values()).index(name) for member, name in names.items()}
    plan = Plan(
        epoch=1,
        capacities=dict.fromkeys(sorted(names.values()), 10),
        partitions={A: 4},
        owners=[places["m0"], places["m1"], places["m2"], places["m2"]],
        weights=[9, 5, 4, 3],
    )
    members = [SteeredMember(id=member, topics=[A]) for member in names]
    assert owners(steered([*members, *steering(plan.encode(1))], {A: 4})) == {
        (A, 0): "m0",
        (A, 1): "m1",
        (A, 2): "m2",
        (A, 3): "m2",
    }
    without = owners(steered([*members[:2], *steering(plan.encode(1))], {A: 5}))
    assert without == {(A, 0): "m0", (A, 1): "m1", (A, 2): "m0", (A, 3): "m1", (A, 4): "m1"}


def test_of_members_with_the_same_name_no_note_counts():
    twins = [
        SteeredMember(id=each, instance_id="same", topics=[A], owned={A: [place]}) for place, each in enumerate("ab")
    ]
    plan = Plan(epoch=1, capacities={name_hash("", "same"): 1}, partitions={A: 2}, owners=[0, 0], weights=[1, 1])
    assert owners(steered([*twins, *steering(plan.encode(1))], {A: 2})) == {(A, 0): "a", (A, 1): "b"}


def test_members_that_the_plan_does_not_know_take_their_share_of_the_weight():
    chance = random.Random(1)
    members = [SteeredMember(id=f"m{number}", topics=[A]) for number in range(4)]
    plan = plan_for(members, {A: 40}, chance)
    answer = steered([*members, SteeredMember(id="new", topics=[A]), *steering(plan.encode(1))], {A: 40})
    weight = sum(plan.weights)
    usual = sum(plan.capacities.values()) // 4
    mean = weight / (sum(plan.capacities.values()) + usual)
    its = sum(plan.weights[number] for number in answer["new"][A]) / usual
    assert 0.8 * mean < its < 1.6 * mean


@given(st.randoms(use_true_random=False))
def test_whatever_processes_write_and_whoever_dies_a_plan_is_in_force_or_nothing_moves(chance):
    """Parts are written in any order, and processes die (kill -9) between two of them; members and topics change."""
    members, sizes = groups(chance)
    racks, written = {}, {}
    for sequence in range(1, 16):
        before = members
        event = chance.choice(["write", "write", "write", "die", "join", "leave", "grow", "delete"])
        process = chance.choice("abc")
        if event == "write":
            if not written.get(process):
                number = chance.randint(1, 3)
                parts = parts_of(plan_for(members, sizes, chance), sequence, number)
                written[process] = [(f"~{process}{place}", part) for place, part in enumerate(parts)]
                chance.shuffle(written[process])
            guest, part = written[process].pop()
            racks[guest] = part
        elif event == "die":
            racks = {guest: part for guest, part in racks.items() if guest[1] != process}
            written.pop(process, None)
        elif event == "join":
            members = [*members, SteeredMember(id=f"new{sequence}", topics=chance.sample(list(sizes), len(sizes)))]
        elif event == "leave":
            members = members[1:]
        elif event == "grow":
            sizes = {topic: size + chance.randint(0, 2) for topic, size in sizes.items()}
        elif len(sizes) > 1:
            sizes = dict(list(sizes.items())[1:])
        guests = [SteeredMember(id=guest, rack_id=part) for guest, part in racks.items()]
        answer = steered([*members, *guests], sizes)
        now = owners(answer)
        reads = {member.id: member.topics for member in members}
        assert set(now) == {
            (topic, number)
            for topic, size in sizes.items()
            if any(topic in its for its in reads.values())
            for number in range(size)
        }
        assert all(topic in reads[owner] for (topic, _), owner in now.items())
        if (
            sequence > 1
            and event in ("write", "die")
            and newest_plan(part for _, part in sorted(racks.items())) is None
        ):
            had = owners({each.id: each.owned for each in before})
            idle = {each.id for each in members if not each.owned}
            assert all(owner == had[where] or owner in idle for where, owner in now.items())
        members = [
            SteeredMember(id=each.id, instance_id=each.instance_id, topics=each.topics, owned=answer[each.id])
            for each in members
        ]
