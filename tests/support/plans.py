"""Plans that tests put into force by steering members of their own."""

from uuid import UUID

from topics import until

from loadwise.protocol.steering_note import Plan, name_hash
from loadwise.running_group.reading import read_group


def heard(admin, group_id, guests):
    """Send heartbeats until the broker has heard all that the guests say."""

    def beat():
        for guest in guests.all:
            guest.answered(admin.heartbeat(group_id, **guest.heartbeat()))
        return guests.heard

    until(beat)


def plan_for(admin, group_id, topic, shares):
    """A plan that gives these numbers of partitions to the members, in the order of their hashes."""
    group = read_group(admin, group_id)
    hashes = sorted(name_hash(each.member.id, each.member.instance_id) for each in group.members)
    (described,) = admin.describe_topics([topic])
    owners = [place for place, share in enumerate(shares) for _ in range(share)]
    topic_id = UUID(described["topic_id"]).bytes
    sizes = {topic_id: len(owners)}
    return Plan(
        epoch=0, capacities=dict.fromkeys(hashes, 1), partitions=sizes, owners=owners, weights=[1] * len(owners)
    )


def carried(admin, group_id, guests, parts):
    """Carry a plan, and let the broker assign by it."""
    guests.carry(parts)
    heard(admin, group_id, guests)
    guests.all[0].ask()
    heard(admin, group_id, guests)
