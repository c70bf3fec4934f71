"""streamz: batches of a topic, with checkpoints in the group's offsets."""

import os
import time

import confluent_kafka
from streamz import Stream

BROKER, NAME = os.environ["BROKER"], os.environ["NAME"]
producer = confluent_kafka.Producer({"bootstrap.servers": BROKER})
for number in range(40):
    producer.produce(NAME, f"hello {number}".encode())
producer.flush(60)
seen = []
source = Stream.from_kafka_batched(
    NAME,
    {"bootstrap.servers": BROKER, "group.id": NAME, "auto.offset.reset": "earliest"},
    poll_interval=0.2,
    npartitions=1,
    start=False,
)
source.map(len).sink(seen.append)
source.start()
deadline = time.monotonic() + 60
while sum(seen) < 40 and time.monotonic() < deadline:
    time.sleep(0.1)
print("read", sum(seen))
os._exit(0)
