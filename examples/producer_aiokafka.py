"""An aiokafka producer that sends each batch to the broker with room for it.

python examples/producer_aiokafka.py flights --bootstrap-servers localhost:9092 --records 100000
"""

import argparse
import asyncio
from collections import Counter

from loadwise import Dispatcher, aiokafka_producer


async def produce(topic: str, bootstrap_servers: str, records: int) -> None:
    # weights say what matters; all other arguments are aiokafka's own: credentials go here too.
    dispatcher = Dispatcher(weights={"latency": 2.0, "in_flight": 1.0})
    async with aiokafka_producer(dispatcher=dispatcher, bootstrap_servers=bootstrap_servers) as producer:
        futures = [await producer.send(topic, b"record %d" % number) for number in range(records)]
        found = Counter([(await future).partition for future in futures])
        leaders = producer.leaders(topic)
    brokers = Counter()
    for partition, count in found.items():
        brokers[leaders[partition]] += count
    for broker, count in sorted(brokers.items()):
        print(f"broker {broker}: {count:,} records")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("topic")
    options.add_argument("--bootstrap-servers", default="localhost:9092")
    options.add_argument("--records", type=int, default=10_000)
    given = options.parse_args()
    asyncio.run(produce(given.topic, given.bootstrap_servers, given.records))


if __name__ == "__main__":
    main()
