"""Compare assignors on a topic of yours: its records are the loads, and equal consumers share them.

python examples/compare_assignors.py                                        # made-up loads, no Kafka needed
python examples/compare_assignors.py flights --bootstrap-servers localhost:9092 --members 4

``loadwise compare`` does this and more from the command line; this is how to do it in Python, with loads of your own.
"""

import argparse

from loadwise.assignor.algorithms import ALGORITHMS
from loadwise.assignor.measure import measure
from loadwise.assignor.model import GroupSnapshot, Member

MADE_UP = [9000, 120, 0, 4300, 80, 2500, 0, 6100, 40, 900, 3200, 10]


def records_of(topic: str, bootstrap_servers: str) -> list[float]:
    """Records in each partition: replace this by whatever your load is, as bytes or milliseconds a second."""
    from kafka import KafkaConsumer, TopicPartition  # noqa: PLC0415 (made-up loads need no client)

    consumer = KafkaConsumer(bootstrap_servers=bootstrap_servers)
    try:
        numbers = consumer.partitions_for_topic(topic)
        if not numbers:
            raise SystemExit(f"there is no topic {topic} at {bootstrap_servers}")
        partitions = [TopicPartition(topic, number) for number in sorted(numbers)]
        beginning, end = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        return [float(end[partition] - beginning[partition]) for partition in partitions]
    finally:
        consumer.close()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic", nargs="?", help="without one: made-up loads")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--members", type=int, default=3)
    given = options.parse_args()

    topic = given.topic or "made-up"
    loads = MADE_UP if given.topic is None else records_of(given.topic, given.bootstrap_servers)
    # What a member owns already (owned={topic: [0, 1]}) and what it can do (capacity=2.0) can be given here, too.
    members = [Member(id=f"member-{number}", topics=[topic]) for number in range(given.members)]
    group = GroupSnapshot.of(members, {topic: len(loads)}, load={topic: loads})

    print(f"{topic}: {len(loads)} partitions, {sum(loads):,.0f} in all, {given.members} members")
    for name, assignor in ALGORITHMS.items():
        measured = measure(assignor.assign(group))
        shares = " ".join(f"{load:,.0f}" for load in measured.load)
        print(f"{name:>10}: max/mean {measured.max_over_mean:.2f}  each: {shares}")


if __name__ == "__main__":
    main()
