"""Quix Streams counts records by key, in its state."""

import os

from quixstreams import Application

NAME = os.environ["NAME"]
application = Application(
    broker_address=os.environ["BROKER"],
    consumer_group=NAME,
    auto_offset_reset="earliest",
    processing_guarantee=os.environ.get("GUARANTEE", "at-least-once"),
    commit_interval=0.5,
    state_dir=os.getcwd(),
)
words = application.topic(NAME, value_deserializer="str", value_serializer="str")
counts = application.topic(f"{NAME}-counts", value_serializer="json")


def count(word, state):
    total = state.get("total", 0) + 1
    state.set("total", total)
    print("counted", total, flush=True)
    return {"total": total}


with application.get_producer() as producer:
    for _ in range(3):
        message = words.serialize(key="hello", value="hello")
        producer.produce(words.name, message.value, key=message.key)
application.dataframe(words).apply(count, stateful=True).to_topic(counts)
application.run()
