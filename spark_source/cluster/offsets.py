"""Requests to Kafka about topics and offsets: Metadata for topics and partitions, ListOffsets for the rest.

Spark's class is ``KafkaOffsetReaderAdmin``, whose rules about required entries apply here.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TypeVar

import confluent_kafka

from loadwise.assignor.model import TopicPartition
from loadwise.spark_source.cluster.client import NO_ANSWER, UNKNOWN, Client
from loadwise.spark_source.errors import OffsetsUnavailableError, OptionError
from loadwise.spark_source.options.bounds import EARLIEST, LATEST, AtTimestamp, Bound, Everywhere, Specific
from loadwise.spark_source.options.query import SourceOptions
from loadwise.spark_source.options.topics import Assign, Subscribe, SubscribePattern

logger = logging.getLogger(__name__)

T = TypeVar("T")

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Kafka's own topics (``Topic.isInternal``): a pattern never matches them, as with the Java client."""

PATIENCE_S = 5.0
"""How long to retry a rejected login or certificate: the broker may just be starting."""
UNREACHABLE_S = 30.0
"""How long to try brokers if no address has ever answered and connections are refused: one may be restarting."""
UNKNOWN_S = 10.0
"""How long a partition in Kafka's metadata may be unknown to its leader, which learns of it later."""
ASK_AGAIN_S = 0.2
"""The time between two attempts after a temporary error."""

_Error = confluent_kafka.KafkaError
_PASSING = NO_ANSWER | {
    _Error._WAIT_CACHE,
    _Error.BROKER_NOT_AVAILABLE,
    _Error.FENCED_LEADER_EPOCH,
    _Error.KAFKA_STORAGE_ERROR,
    _Error.LEADER_NOT_AVAILABLE,
    _Error.LISTENER_NOT_FOUND,
    _Error.NETWORK_EXCEPTION,
    _Error.NOT_LEADER_FOR_PARTITION,
    _Error.OFFSET_NOT_AVAILABLE,
    _Error.REPLICA_NOT_AVAILABLE,
    _Error.REQUEST_TIMED_OUT,
    _Error.UNKNOWN_LEADER_EPOCH,
}
"""Errors while a leader moves or a broker is down: a retry soon succeeds."""

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id of brokers before Kafka 2.8, which have none: zeros as base64."""

_AS_KAFKA_WRITES_IDS = str.maketrans("+/", "-_")
"""Converts librdkafka's base64 to that of Kafka's tools (``Uuid.toString``)."""

_LEAST_WAIT_S = 0.001
"""The minimum time for a request: librdkafka's resolution."""

_REMEDY = (
    "check the name, kafka.bootstrap.servers, kafka.security.protocol and the rights of this user, or raise"
    " fetchOffset.numRetries or kafka.default.api.timeout.ms"
)
_REMEDIES = {
    _Error.UNKNOWN_TOPIC_OR_PART: "check the name and kafka.bootstrap.servers; reading creates no topic",
    _Error.TOPIC_AUTHORIZATION_FAILED: "give this user (kafka.sasl.*, kafka.ssl.*) DESCRIBE and READ on the topic",
}


class _RefusedError(Exception):
    """A part of a request, and Kafka's error for just that part."""


@dataclass(frozen=True, slots=True)
class Found:
    """The partitions of a query."""

    partitions: list[TopicPartition]
    """Sorted."""
    ids: Mapping[str, str]
    """The base64 id of each topic (KIP-516), where the broker has one; a recreated topic has another id."""


@dataclass(frozen=True, slots=True)
class _Topic:
    partitions: int = 0
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Cluster:
    """Requests to Kafka. Each returns a full answer or raises an `OffsetsUnavailableError` that names the request."""

    client: Client
    timeout_ms: int
    """The timeout of each request, with all its attempts: `SourceOptions.look_up_ms`."""

    def found(self, options: SourceOptions, *, known: Collection[str] = (), with_ids: bool = False) -> Found:
        """Return the query's partitions, and topic ids if requested, which needs an admin client. Creates no topic.

        A missing topic is an error unless it is ``known``, because the query has read from it before.
        """
        match options.topics:
            case Subscribe(topics):
                topics_found = self._topics(topics, known, with_ids)
            case SubscribePattern(pattern):
                matching = {topic: n for topic, n in self._counts().items() if re.search(pattern, topic)}
                topics_found = {topic: _Topic(n) for topic, n in matching.items()}
                if with_ids and matching:  # each of them may be deleted a moment later
                    topics_found = self._topics(matching.keys(), matching.keys(), with_ids)
            case Assign(assigned):
                topics_found = self._topics({place.topic for place in assigned}, known, with_ids)
                for topic, partition in assigned:
                    count = topics_found[topic].partitions
                    if partition >= count and topic not in known:
                        problem = f"{topic}-{partition} does not exist: the topic has {count} partitions"
                        raise OptionError("assign", problem)
        everything = {
            TopicPartition(name, at) for name, topic in topics_found.items() for at in range(topic.partitions)
        }
        wanted = (
            everything.intersection(options.topics.partitions) if isinstance(options.topics, Assign) else everything
        )
        ids = {name: topic.id for name, topic in topics_found.items() if topic.id is not None}
        return Found(sorted(wanted), ids)

    def offsets(self, when: int, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offsets at or after ``when`` (ms), else `LATEST`; or those of `EARLIEST` or `LATEST`."""
        return self.offsets_at(dict.fromkeys(places, when))

    def offsets_at(self, when: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Return the same as `offsets`, with a time for each partition."""
        if not when:
            return {}
        # librdkafka takes the time in the offset field and passes Kafka's -1 and -2 on unchanged.
        asked = [confluent_kafka.TopicPartition(*place, moment) for place, moment in when.items()]

        def ask(wait_s: float) -> list[confluent_kafka.TopicPartition]:
            answer: list[confluent_kafka.TopicPartition] = self.client.consumer.offsets_for_times(asked, timeout=wait_s)
            failed = next((item for item in answer if item.error is not None), None)
            if failed is not None:
                self._look_for_leaders(failed.topic, wait_s)
                raise _RefusedError(f"the offsets of {failed.topic}-{failed.partition}", failed.error)
            return answer

        answer = self._answer("the offsets of " + _some(when), ask, unknown_passes=True)
        return {TopicPartition(item.topic, item.partition): item.offset for item in answer}

    def committed(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the commits of the group ``kafka.group.id``; None for partitions without one."""
        asked = [confluent_kafka.TopicPartition(*place) for place in places]
        if not asked:
            return {}

        def ask(wait_s: float) -> list[confluent_kafka.TopicPartition]:
            answer: list[confluent_kafka.TopicPartition] = self.client.consumer.committed(asked, timeout=wait_s)
            failed = next((item for item in answer if item.error is not None), None)
            if failed is not None:
                raise _RefusedError(f"the group's commit of {failed.topic}-{failed.partition}", failed.error)
            return answer

        answer = self._answer("the commits of group " + self.client.config.settings["group.id"], ask)
        return {
            TopicPartition(item.topic, item.partition): item.offset if item.offset >= 0 else None for item in answer
        }

    def asked(self, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offsets from the options; `EARLIEST` and `LATEST` are not looked up yet."""
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
                            f"{place.topic}-{place.partition} has no record from {moments[place]} ms on; give an"
                            " earlier time, or set startingOffsetsByTimestampStrategy=latest",
                        )
                return found

    def resolved(self, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the same as `asked`, with `EARLIEST` and `LATEST` looked up."""
        asked = self.asked(bound, partitions)
        found = self.offsets_at({place: offset for place, offset in asked.items() if offset in (EARLIEST, LATEST)})
        return asked | found

    def ids(self, topics: Collection[str]) -> dict[str, str]:
        """Return the id of each existing topic, where the broker has one."""
        if not topics:
            return {}
        found = self._topics(topics, topics, True)
        return {name: topic.id for name, topic in found.items() if topic.id is not None}

    def there(self, places: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the existing ones of these partitions; at least one must be given."""
        topics = {place.topic for place in places}
        found = self._topics(topics, topics, False)
        return [place for place in places if place.partition < found[place.topic].partitions]

    def _topics(self, topics: Collection[str], known: Collection[str], with_ids: bool) -> dict[str, _Topic]:
        """Describe all topics in one request; a known topic that is missing has no partitions."""

        def ask(wait_s: float) -> dict[str, _Topic]:
            found: dict[str, _Topic] = {}
            for name, topic, error in self._described(topics, wait_s, with_ids):
                if error is not None and (name not in known or error.code() not in UNKNOWN):
                    raise _RefusedError(f"topic {name}", error)
                found[name] = topic
            return found

        return self._answer(f"topic{'s' if len(topics) > 1 else ''} {', '.join(sorted(topics))}", ask)

    def _described(
        self, topics: Collection[str], wait_s: float, with_ids: bool
    ) -> Iterator[tuple[str, _Topic, confluent_kafka.KafkaError | None]]:
        """Yield each topic with its description and its error or None."""
        if len(topics) == 1 and not with_ids:  # needs no connection of an admin client
            for name, described in self.client.consumer.list_topics(*topics, timeout=wait_s).topics.items():
                yield name, _Topic(len(described.partitions)), described.error
            return
        asked = confluent_kafka.TopicCollection(list(topics))
        for name, answer in self.client.admin.describe_topics(asked, request_timeout=wait_s).items():
            try:
                described = answer.result(wait_s + 1)
            except confluent_kafka.KafkaException as error:
                yield name, _Topic(), error.args[0]
            except TimeoutError:
                yield name, _Topic(), _Error(_Error._TIMED_OUT)
            else:
                id_ = str(described.topic_id).translate(_AS_KAFKA_WRITES_IDS)
                yield name, _Topic(len(described.partitions), None if id_ == NO_ID else id_), None

    def _counts(self) -> dict[str, int]:
        found = self._answer("the topics", lambda wait_s: self.client.consumer.list_topics(timeout=wait_s))
        return {
            name: len(described.partitions)
            for name, described in found.topics.items()
            if name not in INTERNAL_TOPICS and described.error is None
        }

    def _look_for_leaders(self, topic: str, wait_s: float) -> None:
        """Make the client look up a topic's leaders now; it does so by itself only when it reads."""
        with suppress(confluent_kafka.KafkaException):  # the failed request itself is retried
            self.client.consumer.list_topics(topic, timeout=wait_s)

    def _answer(self, what: str, ask: Callable[[float], T], *, unknown_passes: bool = False) -> T:
        """Return Kafka's answer; retry temporary errors.

        ``ask`` gets its time limit in seconds. A rejected login is retried for at most `PATIENCE_S`, and addresses that
        have never answered for at most `UNREACHABLE_S`.
        """
        start = now = monotonic()
        deadline = start + self.timeout_ms / 1000
        while True:
            # The timeout of an attempt equals the time of all before it, so that a slow answer has its time.
            # A long sleep may exceed the deadline, and librdkafka waits forever with a negative timeout.
            wait_s = max(_LEAST_WAIT_S, min(max(PATIENCE_S, now - start), deadline - now))
            try:
                answer = ask(wait_s)
            except (confluent_kafka.KafkaException, _RefusedError) as refused:
                what, error = refused.args if isinstance(refused, _RefusedError) else (what, refused.args[0])
                problem, code = self._unanswered(what, error), error.code()
                now = monotonic()
                passes = code in _PASSING or (unknown_passes and code in UNKNOWN and now - start < UNKNOWN_S)
                if not passes or now >= deadline or self._is_in_vain(now - start):
                    raise problem from None
                sleep(min(ASK_AGAIN_S, deadline - now))
                now = monotonic()
            else:
                self.client.answered()
                return answer

    def _is_in_vain(self, tried_s: float) -> bool:
        """Whether a retry would hardly help: the login is rejected, or no broker is at the given addresses."""
        if self.client.remedy:
            return tried_s >= PATIENCE_S
        client = self.client
        return client.all_down and client.refused and not client.heard and tried_s >= UNREACHABLE_S

    def _unanswered(self, what: str, error: confluent_kafka.KafkaError) -> OffsetsUnavailableError:
        why = self.client.why()  # may update the error and with it the remedy
        unheard = self.client.remedy if error.code() in NO_ANSWER else ""
        remedy = _REMEDIES.get(error.code()) or unheard or _REMEDY
        return OffsetsUnavailableError(f"cannot look up {what}: {error.str()}{why}; {remedy}")


def _some(places: Iterable[TopicPartition]) -> str:
    names = [f"{topic}-{partition}" for topic, partition in places]
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _must_match(
    option: str, given: Mapping[TopicPartition, int], partitions: list[TopicPartition], values: str
) -> None:
    """Require entries for all partitions and for no others: Spark's rule."""
    missing = [place for place in partitions if place not in given]
    if missing:
        raise OptionError(option, f"has no entry for {_some(missing)}; name every partition ({values})")
    known = set(partitions)
    strange = [place for place in given if place not in known]
    if strange:
        raise OptionError(option, f"names {_some(strange)}, which this query does not read")
