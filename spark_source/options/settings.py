"""The settings of the Java client that this source knows, each in one row."""

from __future__ import annotations

from typing import NamedTuple

_TABLE = """\
allow.auto.create.topics              =                           ignored
bootstrap.servers                     =                           used
check.crcs                            =                           used
client.dns.lookup                     =                           messages
client.id                             =                           used
client.rack                           =                           messages
connections.max.idle.ms               =                           ignored
fetch.max.bytes                       =                           used
fetch.min.bytes                       =                           used
group.id                              =                           ignored
isolation.level                       =                           used
max.partition.fetch.bytes             =                           used
metadata.max.age.ms                   =                           ignored
reconnect.backoff.max.ms              =                           ignored
reconnect.backoff.ms                  =                           ignored
retry.backoff.max.ms                  =                           used
retry.backoff.ms                      =                           used
sasl.kerberos.service.name            =                           messages
sasl.mechanism                        =                           used
security.protocol                     =                           used
socket.connection.setup.timeout.ms    =                           used
ssl.key.password                      =                           used
fetch.max.wait.ms                     fetch.wait.max.ms           used
receive.buffer.bytes                  socket.receive.buffer.bytes ignored
request.timeout.ms                    socket.timeout.ms           used
send.buffer.bytes                     socket.send.buffer.bytes    ignored
ssl.keystore.certificate.chain        ssl.certificate.pem         used
ssl.keystore.key                      ssl.key.pem                 used
ssl.truststore.certificates           ssl.ca.pem                  used
default.api.timeout.ms                (ours)
max.poll.records                      (ours)
sasl.jaas.config                      (translated)
sasl.login.callback.handler.class     (translated)
sasl.oauthbearer.token.endpoint.url   (translated)
ssl.endpoint.identification.algorithm (translated)
ssl.keystore.location                 (translated)
ssl.keystore.password                 (translated)
ssl.keystore.type                     (translated)
ssl.truststore.location               (translated)
ssl.truststore.password               (translated)
ssl.truststore.type                   (translated)
auto.commit.interval.ms               (member)
exclude.internal.topics               (member)
group.instance.id                     (member)
group.protocol                        (member)
group.remote.assignor                 (member)
heartbeat.interval.ms                 (member)
max.poll.interval.ms                  (member)
partition.assignment.strategy         (member)
session.timeout.ms                    (member)
acks                                  (producer)
batch.size                            (producer)
buffer.memory                         (producer)
compression.gzip.level                (producer)
compression.lz4.level                 (producer)
compression.type                      (producer)
compression.zstd.level                (producer)
delivery.timeout.ms                   (producer)
enable.idempotence                    (producer)
key.serializer                        (producer)
linger.ms                             (producer)
max.block.ms                          (producer)
max.in.flight.requests.per.connection (producer)
max.request.size                      (producer)
metadata.max.idle.ms                  (producer)
partitioner.class                     (producer)
retries                               (producer)
transaction.timeout.ms                (producer)
transactional.id                      (producer)
value.serializer                      (producer)
auto.include.jmx.reporter             (metric)
enable.metrics.push                   (metric)
metrics.num.samples                   (metric)
metrics.recording.level               (metric)
metrics.sample.window.ms              (metric)
.                                     sasl.password                         used
.                                     sasl.username                         used
.                                     ssl.certificate.location              used
.                                     ssl.endpoint.identification.algorithm used
.                                     ssl.key.location                      used
.                                     topic.metadata.propagation.max.ms     used
.                                     auto.offset.reset                     ignored
.                                     enable.auto.commit                    ignored
.                                     enable.auto.offset.store              ignored
.                                     enable.partition.eof                  ignored
.                                     fetch.queue.backoff.ms                ignored
.                                     heartbeat.interval.ms                 ignored
.                                     max.poll.interval.ms                  ignored
.                                     message.max.bytes                     ignored
.                                     queued.min.messages                   ignored
.                                     session.timeout.ms                    ignored
"""
"""Java's name; librdkafka's name (``=``: the same) or what happens to the setting; and with ``reader=batches``: used,
ignored (it has no meaning for a reader that joins no group and has no thread of its own), or read by ``messages`` only.
The last rows are librdkafka's own settings that this source sets.

Settings of members, producers and metrics have no effect on reading, in Spark's own integration as here: a task joins
no group, and programs use the same settings for reading and writing."""


class Setting(NamedTuple):
    """A row of the table."""

    java: str
    librdkafka: str
    batches: str = ""


SETTINGS = tuple(Setting(*line.split()) for line in _TABLE.splitlines())
"""All rows."""

KNOWN = tuple(java for java, _, _ in SETTINGS if java != ".")
"""Java's names of all settings."""
NAMES = {java: java if name == "=" else name for java, name, _ in SETTINGS if java != "." and name[0] != "("}
"""Java's names to librdkafka's, where no more than the name differs."""
NUMBERS = frozenset(name for java, name in NAMES.items() if java.endswith((".ms", ".bytes")))
"""Settings that are whole numbers, by librdkafka's names."""
FOR_BATCHES = frozenset(NAMES.get(java, name) for java, name, batches in SETTINGS if batches in ("used", "ignored"))
"""librdkafka's settings that ``reader=batches`` uses, or need not use."""
