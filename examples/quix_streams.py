"""A Quix Streams application without state, whose instances share the load of their group by one of our assignors.

python examples/quix_streams.py flights --bootstrap-servers localhost:9092 --capacity 2

With state Quix Streams needs `range`: an instance must own the same partitions of all topics that it reads, and those
of the changelogs that belong to them.
"""

import argparse
import sys
import tempfile
from typing import Any

from quixstreams import Application, message_context

from loadwise import confluent_consumer


class LoadwiseApplication(Application):
    """Quix Streams' application, whose consumer is made by our factory in place of confluent-kafka's class."""

    def __init__(self, *args: Any, assignor: str = "weighted", capacity: float | None = None, **options: Any) -> None:
        self._ours = {"assignor": assignor, "capacity": capacity}
        super().__init__(*args, **options)

    def _get_internal_consumer(self, *args: Any, **options: Any) -> Any:
        consumer = super()._get_internal_consumer(*args, **options)
        config = dict(consumer._consumer_config)
        del config["partition.assignment.strategy"]
        consumer._inner_consumer = self.consumer = confluent_consumer(config, **self._ours)
        return consumer


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example")
    options.add_argument("--assignor", default="weighted")
    options.add_argument("--capacity", type=float, default=1.0, help="what this consumer can do, next to the others")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    app = LoadwiseApplication(
        given.bootstrap_servers,
        consumer_group=given.group,
        auto_offset_reset="earliest",
        state_dir=tempfile.mkdtemp(),
        assignor=given.assignor,
        capacity=given.capacity,
    )
    seen: set[tuple[str, int]] = set()
    records = 0

    def process(_: bytes) -> None:
        nonlocal records
        seen.add((message_context().topic, message_context().partition))
        records += 1

    app.dataframe(app.topic(given.topic, value_deserializer="bytes")).update(process)
    app.run(timeout=given.seconds, count=given.records)
    decisions = app.consumer.rebalances
    print("read", sorted(seen))
    print(f"{records} records; led {decisions.led} rebalances, {decisions.fallbacks} of them without load")


if __name__ == "__main__":
    main()
