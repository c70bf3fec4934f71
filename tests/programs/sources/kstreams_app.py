"""kstreams: a stream with a manual commit, and one with automatic ones; a rebalance listener."""

import asyncio
import os

from kstreams import ConsumerRecord, Stream, create_engine
from kstreams.backends.kafka import Kafka

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
engine = create_engine(title="program", backend=Kafka(bootstrap_servers=[BROKER]))
done = asyncio.Event()
read = []


@engine.stream(NAME, group_id=NAME, enable_auto_commit=False, auto_offset_reset="earliest")
async def show(cr: ConsumerRecord, stream: Stream):
    read.append(cr.value)
    await stream.commit()
    if len(read) == 20:
        done.set()


async def main():
    await engine.start()
    for number in range(20):
        await engine.send(NAME, value=b"hello", key=str(number))
    await asyncio.wait_for(done.wait(), 80)
    print("read", len(read))
    await engine.stop()


asyncio.run(main())
