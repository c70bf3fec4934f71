"""What brokers' configs can be changed to while they run, by what Kafka's classes check then."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from configurator import Configurator

from loadwise.coordinator import BrokerSettings, Coordinator, configured
from loadwise.protocol.error_codes import ErrorCode

TOPIC, BROKER, SET, DELETE = 2, 4, 0, 1
TAKEN, REFUSED = ErrorCode.NONE, ErrorCode.INVALID_REQUEST
LOCAL_MS, LOCAL_BYTES = "log.local.retention.ms", "log.local.retention.bytes"


class Broker(Configurator):
    """A session that changes configs of a broker, or with the empty name of all."""

    def change(self, name: str, *values: str | None, of: str = "") -> list[int]:
        """What becomes of each change; None drops the config."""
        return [self.alter(BROKER, of, (DELETE if value is None else SET, name, value)) for value in values]

    def told(self, *names: str) -> dict[str, str]:
        """The values that the broker is described with."""
        return {row[0]: row[1] for row in self.describe(BROKER, "1", *names)[1]}


@contextmanager
def started(**given: str) -> Iterator[Broker]:
    settings = configured(BrokerSettings(), {name.replace("_", "."): value for name, value in given.items()})
    with Coordinator(settings=settings).in_thread() as running, closing(Broker(running.bootstrap_servers)) as broker:
        yield broker


def test_times_may_be_what_they_may_be_at_the_start() -> None:
    """``KafkaConfig.validateValues``: a time below 0 is no end, and 0 is refused. Only a topic bounds flush.ms."""
    with started() as broker:
        assert broker.change("log.retention.ms", "0", "1", "-1", "-2") == [REFUSED, TAKEN, TAKEN, TAKEN]
        broker.make()
        ((_, value, *_, synonyms),) = broker.describe(TOPIC, broker.topic, "retention.ms")[1]
        assert (value, synonyms[0][:2]) == ("-1", ("log.retention.ms", "-2")), "what KafkaConfig hands on to topics"
        assert broker.change("log.flush.interval.ms", "-1", "-2", "x") == [TAKEN, TAKEN, REFUSED]


def test_no_more_is_kept_on_the_disk_than_in_all() -> None:
    """``DynamicLogConfig.validateReconfiguration``: -2 on the disk stands for as much as in all, -1 for no end."""
    with started(log_retention_minutes="1") as broker:
        assert broker.change(LOCAL_MS, "60001", "-1", "-2", "60000") == [REFUSED, REFUSED, TAKEN, TAKEN]
        assert broker.change("log.retention.ms", "59999") == [REFUSED]
        assert broker.change("log.retention.ms", "59999", of="1") == [REFUSED]
        assert broker.change("log.retention.ms", "-1") == [TAKEN]
        assert broker.change(LOCAL_MS, "60001", "-1") == [TAKEN, TAKEN]
        assert broker.change("log.retention.ms", None) == [REFUSED], "it would be a minute again"
        assert broker.change(LOCAL_BYTES, "-1", "5") == [TAKEN, TAKEN]
        assert broker.change("log.retention.bytes", "4", "5") == [REFUSED, TAKEN]
        assert broker.change(LOCAL_BYTES, "6", "-1", "5", of="1") == [REFUSED, REFUSED, TAKEN]


def test_a_config_without_an_effect_cannot_be_changed() -> None:
    with started() as broker:
        assert broker.change("num.io.threads", "16") == [REFUSED]
        assert broker.told("num.io.threads") == {}


def test_values_are_told_as_kafka_writes_them() -> None:
    """``ConfigHelper`` tells them as they were parsed, and Java's ``Double.toString`` writes numbers."""
    given = {"log.preallocate": "TRUE", "log.cleaner.io.buffer.load.factor": "1e-4"}
    jitter, ratio = "sasl.login.refresh.window.jitter", "log.cleaner.min.cleanable.ratio"
    with started(**given, **{jitter: "NaN"}) as broker:
        assert broker.change(ratio, "0.20") == [TAKEN]
        assert broker.told(*given, jitter, ratio) == {
            "log.preallocate": "true",
            "log.cleaner.io.buffer.load.factor": "1.0E-4",
            jitter: "NaN",
            ratio: "0.2",
        }
