"""Questions to Kafka about topics and offsets: Metadata for topics and partitions, ListOffsets for the rest.

Spark's class: ``KafkaOffsetReaderAdmin``, whose rules for what must be given hold here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.client import UNKNOWN, Client
from loadwise.spark_source.errors import OffsetsUnavailableError, OptionError
from loadwise.spark_source.options.query import (
    EARLIEST,
    LATEST,
    Assign,
    AtTimestamp,
    Bound,
    Everywhere,
    SourceOptions,
    Specific,
    Subscribe,
    SubscribePattern,
)

logger = logging.getLogger(__name__)

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's own topics (``Topic.isInternal``): a pattern never matches them, as with the Java client."""

PATIENCE_S = 5.0
"""How long a login or a certificate that is not accepted is tried with: it may be a broker that is just starting."""

_Error = confluent_kafka.KafkaError
_NO_ANSWER = frozenset((_Error._TRANSPORT, _Error._TIMED_OUT, _Error._ALL_BROKERS_DOWN))
"""Errors that say: nobody has answered so far."""

_REMEDY = (
    "check the name, kafka.bootstrap.servers, kafka.security.protocol and the rights of this user, or raise"
    " kafka.default.api.timeout.ms"
)
_REMEDIES = {
    _Error.TOPIC_AUTHORIZATION_FAILED: "give this user (kafka.sasl.*, kafka.ssl.*) DESCRIBE and READ on the topic"
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Questions to Kafka, each answered in full or with an `OffsetsUnavailableError` that names what was asked."""

    client: Client
    timeout_ms: int
    """How long each question may take; the user's ``kafka.default.api.timeout.ms``."""

    def partitions(self, options: SourceOptions, *, known: Collection[str] = ()) -> list[TopicPartition]:
        """The partitions that the query reads, sorted. Asking never creates a topic.

        A topic that is not there is an error, unless it is ``known``: one that the query has read from before.
        """
        match options.topics:
            case Subscribe(topics):
                found = {topic: self._count(topic, known) for topic in topics}
            case SubscribePattern(pattern):
                counts = self._counts()
                found = {topic: n for topic, n in counts.items() if re.search(pattern, topic)}
            case Assign(assigned):
                found = {topic: self._count(topic, known) for topic in {place.topic for place in assigned}}
                for topic, partition in assigned:
                    if partition >= found[topic] and topic not in known:
                        problem = f"{topic}-{partition} is not there: the topic has {found[topic]} partitions"
                        raise OptionError("assign", problem)
                return sorted(place for place in assigned if place.partition < found[place.topic])
        return sorted(TopicPartition(topic, number) for topic, count in found.items() for number in range(count))

    def offsets(self, when: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offset as young as ``when`` (ms), `LATEST` where there is none; or of `EARLIEST` or `LATEST`."""
        return self.offsets_at(dict.fromkeys(places, when))

    def offsets_at(self, when: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """As `offsets`, with a moment for each partition."""
        if not when:
            return {}
        # librdkafka takes the moment in the offset's place and passes Kafka's -1 and -2 on as they are.
        asked = [confluent_kafka.TopicPartition(*place, moment) for place, moment in when.items()]
        try:
            answer = self.client.consumer.offsets_for_times(asked, timeout=self.timeout_ms / 1000)
        except confluent_kafka.KafkaException as error:
            raise self._unanswered("the offsets of " + _some(when), error.args[0]) from None
        for item in answer:
            if item.error is not None:
                raise self._unanswered(f"the offsets of {item.topic}-{item.partition}", item.error)
        return {TopicPartition(item.topic, item.partition): item.offset for item in answer}

    def asked(self, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset of each partition that the options ask for; `EARLIEST` and `LATEST` are still to be looked up."""
        match bound:
            case Everywhere(offset=offset):
                return dict.fromkeys(partitions, offset)
            case Specific(option, offsets):
                _must_match(option, offsets, partitions, "-2: earliest, -1: latest")
                return dict(offsets)
            case AtTimestamp(option, moment, latest_if_none):
                moments = dict.fromkeys(partitions, moment) if isinstance(moment, int) else moment
                _must_match(option, moments, partitions, "in ms since 1970")
                found = self.offsets_at(moments)
                for place, offset in found.items():
                    if offset == LATEST and not latest_if_none:
                        raise OptionError(
                            option,
                            f"{place.topic}-{place.partition} has no record as young as {moments[place]} ms; give an"
                            " earlier moment, or startingOffsetsByTimestampStrategy=latest",
                        )
                return found

    def resolved(self, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """As `asked`, with `EARLIEST` and `LATEST` looked up."""
        asked = self.asked(bound, partitions)
        found = self.offsets_at({place: offset for place, offset in asked.items() if offset in (EARLIEST, LATEST)})
        return asked | found

    def has(self, place: TopicPartition) -> bool:
        """Whether a partition is there."""
        described = self._metadata(place.topic).topics[place.topic]
        if described.error is None:
            return place.partition in described.partitions
        if described.error.code() in UNKNOWN:
            return False
        raise self._unanswered(f"topic {place.topic}", described.error)

    def _count(self, topic: str, known: Collection[str]) -> int:
        described = self._metadata(topic).topics[topic]
        if described.error is not None and topic in known and described.error.code() in UNKNOWN:
            return 0
        if described.error is not None:
            raise self._unanswered(f"topic {topic}", described.error)
        return len(described.partitions)

    def _counts(self) -> dict[str, int]:
        found = self._metadata(None).topics.items()
        return {
            name: len(described.partitions)
            for name, described in found
            if name not in INTERNAL_TOPICS and described.error is None
        }

    def _metadata(self, topic: str | None) -> Any:
        """Kafka's answer, which takes a moment. A refused login is asked about no longer than `PATIENCE_S`."""
        asked = {} if topic is None else {"topic": topic}
        start = now = monotonic()
        deadline = start + self.timeout_ms / 1000
        while True:
            # A question is given up after as long as all before it took, so that a slow answer has its time.
            wait_s = min(max(PATIENCE_S, now - start), deadline - now)
            try:
                return self.client.consumer.list_topics(**asked, timeout=wait_s)
            except confluent_kafka.KafkaException as error:
                problem = self._unanswered("the topics" if topic is None else f"topic {topic}", error.args[0])
                now = monotonic()
                refused = self.client.remedy and now - start >= PATIENCE_S
                if refused or now >= deadline or error.args[0].code() not in _NO_ANSWER:
                    raise problem from None

    def _unanswered(self, what: str, error: Any) -> OffsetsUnavailableError:
        why = self.client.why()  # which may bring the newest complaint, and with it the remedy
        unheard = self.client.remedy if error.code() in _NO_ANSWER else ""
        remedy = _REMEDIES.get(error.code()) or unheard or _REMEDY
        return OffsetsUnavailableError(f"Kafka does not tell {what}: {error.str()}{why}; {remedy}")


def _some(places: Iterable[TopicPartition]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in places]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _must_match(
    option: str, given: Mapping[TopicPartition, int], partitions: list[TopicPartition], values: str
) -> None:
    """What is given by partition must be given for all partitions, and for no others: Spark's rule."""
    missing = [place for place in partitions if place not in given]
    if missing:
        raise OptionError(option, f"does not say where {_some(missing)} shall be; name every partition ({values})")
    known = set(partitions)
    strange = [place for place in given if place not in known]
    if strange:
        raise OptionError(option, f"names {_some(strange)}, which this query does not read")
