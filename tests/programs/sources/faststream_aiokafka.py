"""FastStream's subscriber and publisher, with aiokafka."""

import os

from faststream import FastStream
from faststream.kafka import KafkaBroker

NAME = os.environ["NAME"]
broker = KafkaBroker(os.environ["BROKER"])
app = FastStream(broker)


@broker.subscriber(NAME, group_id=NAME, auto_offset_reset="earliest")
@broker.publisher(f"{NAME}-answers")
async def shout(word: str) -> str:
    return word.upper()


@broker.subscriber(f"{NAME}-answers", group_id=f"{NAME}-answers", auto_offset_reset="earliest")
async def answer(word: str) -> None:
    print("answered", word, flush=True)


@app.after_startup
async def ask() -> None:
    await broker.publish("hello", NAME)
