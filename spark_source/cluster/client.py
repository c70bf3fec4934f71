"""Create confluent-kafka (librdkafka) clients: consumers with manual assignment that join no group."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loadwise.installation import pip_install
from loadwise.spark_source.errors import MissingDependencyError, OptionError
from loadwise.spark_source.options.client_config import ClientConfig, java_name
from loadwise.spark_source.reuse import Kept, made_from

try:
    import confluent_kafka
except ImportError as error:
    raise MissingDependencyError(
        f"reading Kafka from Spark needs confluent-kafka, which is not installed; get it with: {pip_install('spark')}"
    ) from error

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

logger = logging.getLogger(__name__)

_Error = confluent_kafka.KafkaError
UNKNOWN = frozenset((_Error.UNKNOWN_TOPIC_OR_PART, _Error._UNKNOWN_PARTITION, _Error._UNKNOWN_TOPIC))
"""Errors for a missing topic or partition."""
NO_ANSWER = frozenset((-137, _Error._ALL_BROKERS_DOWN, _Error._RESOLVE, _Error._TIMED_OUT, _Error._TRANSPORT))
"""Errors without an answer from a broker. -137 is librdkafka's ``_DESTROY_BROKER``, which older versions do not export:
its broker state and the request are lost."""

_REFUSALS = {
    _Error._AUTHENTICATION: "check kafka.sasl.mechanism and kafka.sasl.jaas.config",
    _Error._SSL: "check kafka.security.protocol, kafka.ssl.truststore.location and the other kafka.ssl.* options",
}
"""Errors that a retry seldom fixes, and what to change: the login or a certificate was rejected."""

OF_SAMPLES = {
    "fetch.max.bytes": str(8 << 20),  # size of one answer: further partitions come with the next one
    "max.partition.fetch.bytes": str(1 << 20),  # whole batches of the usual maximum size
    "queued.max.messages.kbytes": str(16 << 10),
    "queued.min.messages": "1",
}
"""Settings of a consumer that reads only a few records of each partition."""

_DURATION = re.compile(r" \(after \d+ms in state [^()]*(\([^()]*\)[^()]*)*\)")
"""The part of an error that differs between attempts of the same connection."""


@dataclass(slots=True)
class Client:
    """A consumer and its last error outside of any answer (brokers down, a failed login)."""

    consumer: confluent_kafka.Consumer
    config: ClientConfig
    complaint: str = ""
    remedy: str = ""
    """What to change if that error was about a login or a certificate."""

    doubtful: bool = False
    """Whether an error since the last reset was about a missing topic or partition."""

    heard: bool = False
    """Whether any request was answered: then the addresses are right and unavailable brokers will return."""

    all_down: bool = False
    """Whether all connections failed or were lost."""

    refused: bool = False
    """Whether one of them failed for a reason, such as a wrong port; a broker that hangs gives none."""

    commits: list[str] = field(default_factory=list)
    """The result of each answered commit: the error, or an empty string."""

    _admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        """Return an admin client with the same settings; it connects on first use."""
        if self._admin is None:
            self._admin = admin_client(self.config, error_cb=self.note)
        return self._admin

    def committed(
        self, error: confluent_kafka.KafkaError | None, places: list[confluent_kafka.TopicPartition] | None
    ) -> None:
        """Store the result of a commit."""
        errors = [error, *(place.error for place in places or ())]
        self.commits.append("; ".join(dict.fromkeys(each.str() for each in errors if each is not None)))

    def note(self, error: confluent_kafka.KafkaError) -> None:
        """Store an error of either client; librdkafka retries, so it matters only if the time runs out."""
        text = _DURATION.sub("", error.str())
        self.doubtful |= error.code() in UNKNOWN
        # "All brokers down" follows each failed connection, and a lost connection each refusal; both say less.
        self.all_down |= error.code() == _Error._ALL_BROKERS_DOWN
        self.refused |= error.code() != _Error._ALL_BROKERS_DOWN
        if error.code() == _Error._ALL_BROKERS_DOWN and self.complaint:
            return
        if error.code() == _Error._TRANSPORT and self.remedy:
            return
        if text != self.complaint:
            logger.warning("%s", text)
        self.complaint, self.remedy = text, _REFUSALS.get(error.code(), "")

    def answered(self) -> None:
        """Note an answer: an earlier refused login is then no reason to fail the next request early.

        Does not poll, because that would lose a fetched record.
        """
        self.heard, self.all_down, self.refused = True, False, False
        self.complaint = self.remedy = ""

    def forget_complaints(self) -> None:
        """Reset: old errors do not matter to the next query."""
        self._hear()
        self.complaint = self.remedy = ""
        self.doubtful = self.all_down = self.refused = False

    def why(self) -> str:
        """Return the last error as the end of a message; empty without one."""
        self._hear()
        return f" (the client's last error: {self.complaint})" if self.complaint else ""

    def _hear(self) -> None:
        """Receive errors, which librdkafka delivers only in poll and consume."""
        self.consumer.poll(0)
        if self._admin is not None:
            self._admin.poll(0)


_KEPT: Kept[Client] = Kept()


@contextmanager
def connected(config: ClientConfig, *, group_id_prefix: str, reads_samples: bool = False) -> Iterator[Client]:
    """Create a consumer and close it afterwards. Raises what `connect` raises."""
    client = connect(config, group_id_prefix=group_id_prefix, reads_samples=reads_samples)
    try:
        yield client
    finally:
        client.consumer.close()


@contextmanager
def kept_or_connected(config: ClientConfig, *, group_id_prefix: str) -> Iterator[Client]:
    """Like `connected` with ``reads_samples``, but keep the client for this process's next query on success."""
    of = (group_id_prefix, made_from(config.settings))
    client = _KEPT.take(of)
    if client is None:
        client = connect(config, group_id_prefix=group_id_prefix, reads_samples=True)
    else:
        client.forget_complaints()  # not for a new one: librdkafka reports only once that no broker is there
    try:
        yield client
    except BaseException:
        client.consumer.close()
        raise
    for ended in _KEPT.give(of, client):
        ended.consumer.close()


def connect(config: ClientConfig, *, group_id_prefix: str, reads_samples: bool = False) -> Client:
    """Create a consumer; the caller closes it. Raises `OptionError` if librdkafka rejects a setting.

    With ``reads_samples`` it requests little of each partition and does not fetch ahead.
    librdkafka requires a group id even without joining; it is unique unless the user set one.
    """
    settings: dict[str, Any] = {"group.id": f"{group_id_prefix}-{uuid.uuid4()}", **config.settings}
    if reads_samples:
        settings |= OF_SAMPLES
    holder: list[Client] = []
    settings["error_cb"] = lambda error: holder[0].note(error) if holder else None
    settings["on_commit"] = lambda error, places: holder[0].committed(error, places) if holder else None
    # Failed connections also arrive as errors, and are logged once there instead of at every attempt.
    settings |= {"logger": logger, "log_level": 2}
    try:
        consumer = confluent_kafka.Consumer(settings)
    except confluent_kafka.KafkaException as error:
        raise _refused(error.args[0].str().strip()) from None
    client = Client(consumer, config)
    holder.append(client)
    return client


def admin_client(config: ClientConfig, **callbacks: Any) -> AdminClient:
    """Return an admin client, which needs no closing. librdkafka sees it as a producer."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - takes as long to import as all the rest, seldom needed

    return AdminClient({**config.settings, "logger": logger, "log_level": 2, **callbacks})


def _refused(problem: str) -> OptionError:
    named = re.search(r'(?:property|value for) "([^"]+)"', problem)
    if named is None:
        return OptionError("kafka.*", f"the client refuses its settings: {problem}")
    return OptionError(java_name(named[1]), f"the client refuses it: {problem}")
