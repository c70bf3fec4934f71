"""A FastStream application on aiokafka whose subscribers share the load of their group by one of our assignors.

python examples/faststream_aiokafka.py flights --bootstrap-servers localhost:9092 --capacity 2
"""

import argparse
import asyncio
import sys
from typing import Any

from faststream import FastStream
from faststream.kafka import KafkaBroker
from faststream.kafka.annotations import KafkaMessage

from loadwise import aiokafka_consumer


class LoadwiseBroker(KafkaBroker):
    """FastStream's broker, whose consumers are made by our factory in place of aiokafka's class."""

    def __init__(self, *args: Any, assignor: str = "weighted", capacity: float | None = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.consumers: list[Any] = []
        self._ours = {"assignor": assignor, "capacity": capacity}

    async def start(self) -> None:
        await self.connect()
        config = self.config.broker_config
        connection = config.builder.keywords  # how to reach the brokers, as FastStream would give it to aiokafka

        def make(**settings: Any) -> Any:
            settings = {**connection, **settings}
            settings.pop("partition_assignment_strategy", None)
            self.consumers.append(aiokafka_consumer(**self._ours, **settings))
            return self.consumers[-1]

        config.builder = make
        await super().start()


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example")
    options.add_argument("--assignor", default="weighted")
    options.add_argument("--capacity", type=float, default=1.0, help="what this consumer can do, next to the others")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    broker = LoadwiseBroker(given.bootstrap_servers, assignor=given.assignor, capacity=given.capacity)
    app = FastStream(broker)
    seen: set[tuple[str, int]] = set()
    records = 0

    @broker.subscriber(given.topic, group_id=given.group, auto_offset_reset="earliest")
    async def process(message: KafkaMessage) -> None:
        nonlocal records
        seen.add((message.raw_message.topic, message.raw_message.partition))
        records += 1
        if records == given.records:
            app.exit()

    asyncio.get_running_loop().call_later(given.seconds, app.exit)
    await app.run()
    decisions = broker.consumers[0].rebalances
    print("read", sorted(seen))
    print(f"{records} records; led {decisions.led} rebalances, {decisions.fallbacks} of them without load")


if __name__ == "__main__":
    asyncio.run(main())
