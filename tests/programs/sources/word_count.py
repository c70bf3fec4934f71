"""Faust counts words in a table."""

import os

import faust

NAME = os.environ["NAME"]
app = faust.App(
    NAME,
    broker=f"kafka://{os.environ['BROKER']}",
    topic_partitions=2,
    topic_disable_leader=True,
)
words = app.topic(f"{NAME}-words", key_type=str, value_type=str)
counts = app.Table("counts", default=int, partitions=2)


@app.agent(words)
async def count(stream):
    async for word in stream:
        counts[word] += 1
        print(f"counted {word} {counts[word]}", flush=True)  # Faust logs each argument of print by itself


@app.task
async def produce():
    for _ in range(3):
        await words.send(key="hello", value="hello")
