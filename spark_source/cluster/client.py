"""The one place where confluent-kafka (librdkafka) is made: a consumer that is told what to read and joins no group."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from loadwise.installation import pip_install
from loadwise.spark_source.cluster.kept import Kept, made_from
from loadwise.spark_source.errors import MissingDependencyError, OptionError
from loadwise.spark_source.options.client_config import ClientConfig, java_name

try:
    import confluent_kafka
except ImportError as error:
    raise MissingDependencyError(
        f"reading Kafka from Spark needs confluent-kafka, which is not installed: {pip_install('spark')}"
    ) from error

logger = logging.getLogger(__name__)

_Error = confluent_kafka.KafkaError
UNKNOWN = frozenset((_Error.UNKNOWN_TOPIC_OR_PART, _Error._UNKNOWN_PARTITION, _Error._UNKNOWN_TOPIC))
"""Errors that mean that there is no such topic or partition."""
BROKER_REPLACED = -137
"""librdkafka's ``_DESTROY_BROKER``, which older versions lack: what it kept of a broker is gone, as is the question."""

_REFUSALS = {
    _Error._AUTHENTICATION: "check kafka.sasl.mechanism and kafka.sasl.jaas.config",
    _Error._SSL: "check kafka.security.protocol, kafka.ssl.truststore.location and the other kafka.ssl.* options",
}
"""Complaints that trying again seldom mends, and what to change: the login, or a certificate, was not accepted."""

OF_SAMPLES = {
    "fetch.max.bytes": str(8 << 20),  # all that a broker answers at once: further partitions come with the next answer
    "max.partition.fetch.bytes": str(1 << 20),  # whole batches, as large as they mostly may be
    "queued.max.messages.kbytes": str(16 << 10),
    "queued.min.messages": "1",
}
"""Settings of a consumer that reads no more than a few records of each partition."""

_DURATION = re.compile(r" \(after \d+ms in state [^()]*(\([^()]*\)[^()]*)*\)")
"""What alone tells one complaint from the next, of a connection that is tried over and over."""


@dataclass(slots=True)
class Client:
    """A consumer, and the last thing that it complained about outside any answer (brokers down, a failed login)."""

    consumer: Any
    config: ClientConfig
    complaint: str = ""
    remedy: str = ""
    """What to change, where that complaint was of a login or a certificate."""

    doubtful: bool = False
    """Whether a complaint since the flag was last cleared was that a topic or partition is not there."""

    heard: bool = False
    """Whether any question was answered: then the addresses are right, and brokers that are down will come back."""

    all_down: bool = False
    """Whether no connection to any broker could be made, or all were lost."""

    commits: list[str] = field(default_factory=list)
    """The answer to each commit that was answered: what went wrong, empty where nothing did."""

    _admin: Any = None

    @property
    def admin(self) -> Any:
        """An admin client with the same settings, connected at the first question to it."""
        if self._admin is None:
            self._admin = admin_client(self.config, error_cb=self.note)
        return self._admin

    def committed(self, error: Any, places: Any) -> None:
        """Keep the answer to a commit."""
        errors = [error, *(place.error for place in places or ())]
        self.commits.append("; ".join(dict.fromkeys(each.str() for each in errors if each is not None)))

    def note(self, error: Any) -> None:
        """Keep a complaint of either client; librdkafka goes on trying, so it is an error once we run out of time."""
        text = _DURATION.sub("", error.str())
        self.doubtful |= error.code() in UNKNOWN
        # "All brokers down" follows each failed connection, which is lost after each refusal, and both tell less.
        self.all_down |= error.code() == _Error._ALL_BROKERS_DOWN
        if error.code() == _Error._ALL_BROKERS_DOWN and self.complaint:
            return
        if error.code() == _Error._TRANSPORT and self.remedy:
            return
        if text != self.complaint:
            logger.warning("%s", text)
        self.complaint, self.remedy = text, _REFUSALS.get(error.code(), "")

    def answered(self) -> None:
        """A question was answered: a login that was refused before is no reason to give the next question up early.

        Nothing is polled here, since a record that has come would be lost.
        """
        self.heard, self.all_down = True, False
        self.complaint = self.remedy = ""

    def forget_complaints(self) -> None:
        """Begin anew: what it told up to now is of no interest to the next query."""
        self._hear()
        self.complaint = self.remedy = ""
        self.doubtful = self.all_down = False

    def why(self) -> str:
        """The last complaint as the end of a message; empty if there is none."""
        self._hear()
        return f" (the client's last error: {self.complaint})" if self.complaint else ""

    def _hear(self) -> None:
        """Take complaints, which are handed over in poll and consume only."""
        self.consumer.poll(0)
        if self._admin is not None:
            self._admin.poll(0)


_KEPT: Kept[Client] = Kept(lambda client: client.consumer.close())


@contextmanager
def connected(config: ClientConfig, *, group_id_prefix: str, reads_samples: bool = False) -> Iterator[Client]:
    """Make a consumer and close it again. Raises what `connect` raises."""
    client = connect(config, group_id_prefix=group_id_prefix, reads_samples=reads_samples)
    try:
        yield client
    finally:
        client.consumer.close()


@contextmanager
def kept_or_connected(config: ClientConfig, *, group_id_prefix: str) -> Iterator[Client]:
    """As `connected` for one who ``reads_samples``, and kept for the next query of this process if all went well."""
    of = (group_id_prefix, made_from(config.settings))
    client = _KEPT.take(of)
    if client is None:
        client = connect(config, group_id_prefix=group_id_prefix, reads_samples=True)
    else:
        client.forget_complaints()  # not of a new one: librdkafka tells once that no broker is there
    try:
        yield client
    except BaseException:
        client.consumer.close()
        raise
    _KEPT.give(of, client)


def connect(config: ClientConfig, *, group_id_prefix: str, reads_samples: bool = False) -> Client:
    """Make a consumer; its user closes it. Raises `OptionError` if librdkafka refuses a setting.

    With ``reads_samples`` it asks for little of each partition, and for nothing ahead.
    librdkafka wants a group id even of a consumer that joins none; ours is unique unless the user gave one.
    """
    settings: dict[str, Any] = {"group.id": f"{group_id_prefix}-{uuid.uuid4()}", **config.settings}
    if reads_samples:
        settings |= OF_SAMPLES
    holder: list[Client] = []
    settings["error_cb"] = lambda error: holder[0].note(error) if holder else None
    settings["on_commit"] = lambda error, places: holder[0].committed(error, places) if holder else None
    # Failed connections come as complaints too: logged there, once each and not at every attempt.
    settings |= {"logger": logger, "log_level": 2}
    try:
        consumer = confluent_kafka.Consumer(settings)
    except confluent_kafka.KafkaException as error:
        raise _refused(error.args[0].str().strip()) from None
    client = Client(consumer, config)
    holder.append(client)
    return client


def admin_client(config: ClientConfig, **callbacks: Any) -> Any:
    """An admin client, which needs no closing. To librdkafka it is a producer, and warns of consumers' settings."""
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415 - takes as long to import as all the rest, seldom needed

    return AdminClient({**config.settings, "logger": logger, "log_level": 2, **callbacks})


def _refused(problem: str) -> OptionError:
    named = re.search(r'(?:property|value for) "([^"]+)"', problem)
    if named is None:
        return OptionError("kafka.*", f"the client refuses its settings: {problem}")
    return OptionError(java_name(named[1]), f"the client refuses it: {problem}")
