"""Pathway: words of a topic counted into another."""

import os

import pathway as pw

NAME = os.environ["NAME"]
settings = {"bootstrap.servers": os.environ["BROKER"], "group.id": NAME, "auto.offset.reset": "earliest"}


class Word(pw.Schema):
    word: str


words = pw.io.kafka.read(settings, topic=NAME, format="json", schema=Word, autocommit_duration_ms=200)
counts = words.groupby(words.word).reduce(words.word, count=pw.reducers.count())
pw.io.kafka.write(
    counts, {"bootstrap.servers": settings["bootstrap.servers"]}, topic_name=f"{NAME}-counts", format="json"
)
pw.run(monitoring_level=pw.MonitoringLevel.NONE)
