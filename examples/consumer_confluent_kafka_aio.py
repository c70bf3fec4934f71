"""The same as consumer_confluent_kafka.py for asyncio, with confluent-kafka's ``AIOConsumer``.

python examples/consumer_confluent_kafka_aio.py flights --bootstrap-servers localhost:9092 --capacity 2
"""

import argparse
import asyncio
import sys
import time

from confluent_kafka import KafkaException

from loadwise import confluent_aio_consumer
from loadwise.assignor.strategy import strategies


async def on_assign(_, partitions):
    print("assigned", sorted((each.topic, each.partition) for each in partitions))


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--group", default="loadwise-example")
    options.add_argument("--assignor", default="weighted", choices=strategies())
    options.add_argument("--capacity", type=float, default=1.0, help="what this consumer can do, next to the others")
    options.add_argument("--seconds", type=float, default=30.0, help="how long to run...")
    options.add_argument("--records", type=int, default=sys.maxsize, help="... unless so many have come before")
    given = options.parse_args()

    consumer = confluent_aio_consumer(
        {
            "bootstrap.servers": given.bootstrap_servers,
            "group.id": given.group,
            "auto.offset.reset": "earliest",
        },
        assignor=given.assignor,
        capacity=given.capacity,
    )
    await consumer.subscribe([given.topic], on_assign=on_assign)
    records = 0
    async with consumer:
        end = time.monotonic() + given.seconds
        while records < given.records and time.monotonic() < end:
            for record in await consumer.consume(500, timeout=0.5):
                if record.error():
                    raise KafkaException(record.error())
                records += 1
        decisions = consumer.rebalances
        print(f"{records} records; led {decisions.led} rebalances, {decisions.fallbacks} of them without load")


if __name__ == "__main__":
    asyncio.run(main())
