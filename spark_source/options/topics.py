"""The topics and partitions that a query reads: ``subscribe``, ``subscribePattern`` or ``assign``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.declared import ASSIGN, SUBSCRIBE, SUBSCRIBE_PATTERN
from loadwise.spark_source.options.values import is_int, json_object


@dataclass(frozen=True, slots=True)
class Subscribe:
    """All partitions of these topics (``subscribe``)."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All partitions of the topics whose names contain a match of the pattern (``subscribePattern``), as in Spark."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions only (``assign``)."""

    partitions: tuple[TopicPartition, ...]


Topics: TypeAlias = Subscribe | SubscribePattern | Assign


def topics_of(options: Mapping[str, str]) -> Topics:
    """Read which topics a query reads. Raises `OptionError`."""
    ways = (SUBSCRIBE.name, SUBSCRIBE_PATTERN.name, ASSIGN.name)
    name, *more = [way for way in ways if way in options] or [""]
    if not name:
        raise OptionError("subscribe", "must be given, or subscribePattern or assign: nothing names what to read")
    if more:
        raise OptionError(more[0], f"conflicts with {name}; give only one of {', '.join(ways)}")
    given = options[name]
    match name:
        case SUBSCRIBE.name:
            topics = tuple(dict.fromkeys(topic.strip() for topic in given.split(",") if topic.strip()))
            if not topics:
                raise OptionError(name, f"names no topic: {given!r}")
            return Subscribe(topics)
        case SUBSCRIBE_PATTERN.name:
            if not given.strip():
                raise OptionError(name, "is empty")
            try:
                re.compile(given)
            except re.error as error:
                raise OptionError(name, f"{given!r} is not a Python regular expression: {error}") from None
            return SubscribePattern(given)
        case _:
            return Assign(_assigned(name, given))


def named_topics(topics: Topics) -> set[str]:
    """Return the topics given by name; none for a pattern."""
    match topics:
        case Subscribe(names):
            return set(names)
        case Assign(partitions):
            return {place.topic for place in partitions}
        case SubscribePattern():
            return set()


def may_read(topics: Topics, topic: str) -> bool:
    """Whether a query of these topics reads one of this name."""
    if isinstance(topics, SubscribePattern):
        return re.search(topics.pattern, topic) is not None
    return topic in named_topics(topics)


def _assigned(name: str, given: str) -> tuple[TopicPartition, ...]:
    form = 'must be JSON like {"topic": [0, 1]}'
    partitions: set[TopicPartition] = set()
    for topic, numbers in json_object(name, given, form).items():
        if not isinstance(numbers, list):
            raise OptionError(name, f"{form}; {topic!r} has {numbers!r}")
        for index in numbers:
            if not is_int(index) or index < 0:
                raise OptionError(name, f"{form}; {index!r} is not a partition")
            partitions.add(TopicPartition(topic, index))
    if not partitions:
        raise OptionError(name, f"names no partition: {given!r}")
    return tuple(sorted(partitions))
