"""Name the setting that an unknown one of librdkafka was probably meant to be; librdkafka cannot list its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from loadwise.nearest import did_you_mean

_UNKNOWN = re.compile(r'No such configuration property: "(.*)"')
_SETTINGS = """
allow.auto.create.topics api.version.request.timeout.ms auto.commit.interval.ms auto.offset.reset bootstrap.servers
broker.address.family broker.address.ttl check.crcs client.dns.lookup client.id client.rack connections.max.idle.ms
coordinator.query.interval.ms debug enable.auto.commit enable.auto.offset.store enable.metrics.push
enable.partition.eof enable.ssl.certificate.verification error_cb fetch.error.backoff.ms fetch.max.bytes
fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms group.id group.instance.id
heartbeat.interval.ms isolation.level log.connection.close log_level logger max.partition.fetch.bytes
max.poll.interval.ms message.max.bytes metadata.broker.list metadata.max.age.ms metadata.recovery.strategy oauth_cb
on_commit queued.max.messages.kbytes queued.min.messages receive.message.max.bytes reconnect.backoff.max.ms
reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms sasl.kerberos.principal sasl.kerberos.service.name
sasl.mechanism sasl.mechanisms sasl.oauthbearer.config sasl.password sasl.username security.protocol
session.timeout.ms socket.connection.setup.timeout.ms socket.keepalive.enable socket.nagle.disable
socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms ssl.ca.location ssl.ca.pem
ssl.certificate.location ssl.certificate.pem ssl.cipher.suites ssl.crl.location ssl.endpoint.identification.algorithm
ssl.key.location ssl.key.password ssl.key.pem statistics.interval.ms stats_cb throttle_cb
topic.metadata.refresh.interval.ms
"""
"""A consumer's settings without deprecated ones."""


@contextmanager
def nearest_setting() -> Iterator[None]:
    """Add the nearest setting to librdkafka's refusal of an unknown one."""
    try:
        yield
    except KafkaException as refusal:
        error = refusal.args[0]
        unknown = _UNKNOWN.search(error.str())
        if unknown is None:
            raise
        text = f"{unknown[0]}{did_you_mean(unknown[1], _SETTINGS.split())}"
        raise KafkaException(KafkaError(error.code(), text)) from refusal
