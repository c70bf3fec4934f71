"""Translate the Java client's configuration (``kafka.*`` options) to librdkafka's.

Users write the options of Spark's Kafka integration: Java's names and forms. Most have a counterpart under the same or
another name. Some control what no source does (joining a group, writing). The rest is refused by name, because
ignoring a setting silently causes surprises in production. Pure: no client is created here.
Java's side: ``ConsumerConfig``, ``CommonClientConfigs``, ``SaslConfigs``, ``SslConfigs``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from loadwise.nearest import did_you_mean
from loadwise.protocol.jaas import read_jaas
from loadwise.spark_source.errors import OptionError, UnknownOptionError
from loadwise.spark_source.options.settings import KNOWN, NAMES, NUMBERS
from loadwise.spark_source.options.values import one_of, whole_number

SAID_OTHERWISE = {
    ("connections.max.idle.ms", "-1"): "0",  # never
    ("retry.backoff.ms", "0"): "1",  # at once
    ("socket.receive.buffer.bytes", "-1"): "0",  # the operating system's default
    ("socket.send.buffer.bytes", "-1"): "0",
}
"""Values that differ in librdkafka: its setting and Java's value, to its own value."""

FLAGS = ("allow.auto.create.topics", "check.crcs")
"""Settings that are true or false."""

ALIASES = {
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
}
"""librdkafka's own names, in its messages, of settings that it accepts under Java's name, too."""

REFUSED = {
    "auto.offset.reset": "use startingOffsets ('earliest', or JSON) for where to start",
    "enable.auto.commit": "the query's checkpoint holds its offsets; for lag tools, set commitGroup=true",
    "interceptor.classes": "interceptors are Java code, and this source reads without Java; leave it out",
    "key.deserializer": "keys are always read as binary; decode them with DataFrame operations",
    "value.deserializer": "values are always read as binary; decode them with DataFrame operations",
}
"""Settings that Spark's Kafka integration refuses, too, and what to use instead."""

SECRET = re.compile(r"password|secret|jaas|\.key$|key\.pem|token", re.IGNORECASE)
"""Names of settings whose values are secret."""

DEFAULTS = {
    # A partition with records answers at once. These limit how long the client idles after the last record of a range
    # before it requests the next range: 2 ms a range with these, 12 with a wait of 10 ms.
    "fetch.queue.backoff.ms": "1",
    "fetch.wait.max.ms": "1",
    # Records fetched ahead are dropped at the end of a range. 1,000 is as fast as the default 100,000 on long
    # ranges and twice as fast on ranges of 1,000 records.
    "queued.min.messages": "1000",
    # The client waits half of this between its first connections, by default 50 ms. The given address and the broker
    # found there are two connections, so each plan would wait for it. The time doubles with each failure.
    "reconnect.backoff.ms": "20",
    # How long a topic that the planner saw may be unknown (to a lagging broker) before it counts as deleted.
    "topic.metadata.propagation.max.ms": "10000",
    # Java's defaults, where librdkafka's differ: both clients must see the same records, and refuse corrupt ones.
    "isolation.level": "read_uncommitted",
    "check.crcs": "true",
}

IMPOSED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    # Missing offsets must be an error that we see, never a silent jump.
    "auto.offset.reset": "error",
    # Detects that a range ends in records that are never delivered (transaction markers, compaction).
    "enable.partition.eof": "true",
}

DEFAULT_API_TIMEOUT_MS = 60_000
"""Java's default."""
MOST_BATCH_RECORDS = 10_000
"""The most records in an Arrow batch, as in Spark's ``spark.sql.execution.arrow.maxRecordsPerBatch``."""
LIBRDKAFKA_MESSAGE_MAX_BYTES = 1_000_000
"""librdkafka's default; its minimum is 1000."""

_JAAS_MODULES = ("OAuthBearerLoginModule", "PlainLoginModule", "ScramLoginModule")
_OAUTH_HANDLER = "OAuthBearerLoginCallbackHandler"
"""Java's class that requests tokens with a client id and secret (KIP-768)."""
_OAUTH_EXTENSION = "extension_"
"""Prefix of a JAAS option that is an extension of the token (KIP-342)."""


@dataclass(frozen=True, slots=True)
class Store:
    """A file with trusted certificates or with a key. Its text shows no secret."""

    location: str
    kind: str
    """``JKS``, ``PKCS12`` or ``PEM``."""
    password: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The configuration of the reading client. Its text shows no secret."""

    settings: Mapping[str, str] = field(repr=False)
    """librdkafka's configuration, without ``group.id`` unless the user set one."""
    api_timeout_ms: int = DEFAULT_API_TIMEOUT_MS
    """``kafka.default.api.timeout.ms``: the timeout of a request about topics or offsets."""
    truststore: Store | None = None
    """A trust store that `loadwise.spark_source.options.stores` has not read yet."""
    keystore: Store | None = None
    """A key store that `loadwise.spark_source.options.stores` has not read yet."""
    max_poll_records: int = MOST_BATCH_RECORDS
    """``kafka.max.poll.records``: the most records in one Arrow batch."""

    def __str__(self) -> str:
        shown = (f"{name}={'(hidden)' if SECRET.search(name) else value}" for name, value in self.settings.items())
        return ", ".join(sorted(shown))


def translate(java: Mapping[str, str]) -> ClientConfig:
    """Translate the Java client's settings, named without the prefix ``kafka.``.

    Raises `OptionError` for a value that cannot be translated, `UnknownOptionError` for a refused or unknown setting.
    Both name the option as the user wrote it.
    """
    java = {name: value.strip() for name, value in java.items()}  # as Java does, with passwords too
    settings = dict(DEFAULTS)
    for name, value in java.items():
        if name in REFUSED:
            raise UnknownOptionError(f"kafka.{name}", f"not supported; {REFUSED[name]}")
        if name in NAMES:
            settings[NAMES[name]] = value
        elif name not in KNOWN:
            raise UnknownOptionError(f"kafka.{name}", _unknown(name))
    if not settings.get("bootstrap.servers", "").strip():
        raise OptionError("kafka.bootstrap.servers", "must be given: the host:port of one or more brokers")
    settings = {name: _written_one_way(name, value) for name, value in settings.items()}
    if not settings.get("group.id", "any"):  # librdkafka aborts the process on an empty one
        del settings["group.id"]
    settings.update(_small_fetches(settings.get("fetch.max.bytes", "")))
    settings.update(_login(java))
    settings.update(_stores(java))
    algorithm = java.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        settings["ssl.endpoint.identification.algorithm"] = algorithm.strip().lower() or "none"
    settings.update(IMPOSED)
    return ClientConfig(
        settings,
        api_timeout_ms=_positive(java, "default.api.timeout.ms") or DEFAULT_API_TIMEOUT_MS,
        truststore=_truststore(java),
        keystore=_keystore(java),
        max_poll_records=min(_positive(java, "max.poll.records") or MOST_BATCH_RECORDS, MOST_BATCH_RECORDS),
    )


def java_name(name: str) -> str:
    """Return the option that sets one of librdkafka's settings, for messages."""
    return "kafka." + ({ours: java for java, ours in NAMES.items()} | ALIASES).get(name, name)


def _written_one_way(name: str, value: str) -> str:
    """Return a value in the form that both readers accept; each client alone accepts more (other cases, octal numbers).

    Raises `OptionError` for values that Java refuses.
    """
    if name in NUMBERS:
        if not re.fullmatch(r"[+-]?\d+", value, re.ASCII):
            raise OptionError(java_name(name), f"must be a whole number, not {value!r}")
        value = str(int(value))
    elif name in FLAGS:
        value = one_of("true", "false")(java_name(name), value)
    elif name == "isolation.level":
        value = one_of("read_uncommitted", "read_committed")(java_name(name), value)
    elif name == "bootstrap.servers":
        value = ",".join(_server(server.strip()) for server in value.split(",") if server.strip())
    return SAID_OTHERWISE.get((name, value), value)


def _server(given: str) -> str:
    """Return ``host:port`` without a protocol prefix, which Java allows (``ClientUtils.parseAndValidateAddresses``)."""
    address = re.fullmatch(r"(?:[a-zA-Z0-9_+]+://)?(\[[0-9a-fA-F:.%]+\]|[^\[\]:/\s]+)(?::(\d{1,5}))?", given, re.ASCII)
    if address is None or int(address[2] or 1) not in range(1, 1 << 16):
        raise OptionError("kafka.bootstrap.servers", f"must be host:port of one or more brokers, not {given!r}")
    return given.rpartition("//")[2]


def _unknown(name: str) -> str:
    hint = did_you_mean(name.replace("_", "."), KNOWN, "kafka.{}".format)
    return f"this source's client (librdkafka) has no such setting{hint}"


def _small_fetches(most: str) -> dict[str, str]:
    """Support a small ``fetch.max.bytes``: librdkafka requires at least ``message.max.bytes``, a producer setting."""
    if not most.isdecimal() or int(most) >= LIBRDKAFKA_MESSAGE_MAX_BYTES:
        return {}
    size = str(max(int(most), 1000))
    return {"fetch.max.bytes": size, "message.max.bytes": size}


def _positive(java: Mapping[str, str], name: str) -> int | None:
    return whole_number()(f"kafka.{name}", java[name]) if name in java else None


def _login(java: Mapping[str, str]) -> dict[str, str]:
    """Translate a JAAS line for PLAIN, SCRAM and OAUTHBEARER. No message repeats any of it."""
    handler, endpoint = "sasl.login.callback.handler.class", "sasl.oauthbearer.token.endpoint.url"
    if java.get(handler, _OAUTH_HANDLER).rpartition(".")[2] != _OAUTH_HANDLER:
        problem = f"Java classes cannot be called here; leave it out: {_OAUTH_HANDLER} is built in"
        raise OptionError(f"kafka.{handler}", problem)
    uses_sasl = java.get("security.protocol", "").upper().startswith("SASL_")
    mechanism = java.get("sasl.mechanism", "GSSAPI").upper()
    if "sasl.jaas.config" not in java:
        if uses_sasl and mechanism != "GSSAPI":
            raise OptionError("kafka.sasl.jaas.config", f"must be given with {mechanism}: it has the credentials")
        return {}
    try:
        login = read_jaas(java["sasl.jaas.config"])
    except ValueError:
        raise OptionError(
            "kafka.sasl.jaas.config", 'must read: <login module> required username="…" password="…";'
        ) from None
    module, given = login.module, login.options
    if module not in _JAAS_MODULES:
        raise OptionError(
            "kafka.sasl.jaas.config",
            f"login module {module} has no counterpart in librdkafka; use {', '.join(_JAAS_MODULES)}",
        )
    oauth = module == "OAuthBearerLoginModule"
    if uses_sasl and oauth != (mechanism == "OAUTHBEARER"):
        problem = f"{mechanism} does not go with {module} in kafka.sasl.jaas.config; change one of them"
        raise OptionError("kafka.sasl.mechanism", problem)
    needed = ("clientId", "clientSecret") if oauth else ("username", "password")
    for name in needed:
        if name not in given:
            raise OptionError("kafka.sasl.jaas.config", f'{name}="…" is missing')
    if not oauth:
        return {"sasl.username": given["username"], "sasl.password": given["password"]}
    if endpoint not in java:
        raise OptionError(f"kafka.{endpoint}", "must be given with OAUTHBEARER: the URL that issues tokens")
    answer = {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": java[endpoint],
        "sasl.oauthbearer.client.id": given["clientId"],
        "sasl.oauthbearer.client.secret": given["clientSecret"],
    }
    if "scope" in given:
        answer["sasl.oauthbearer.scope"] = given["scope"]
    more = [
        (name.removeprefix(_OAUTH_EXTENSION), value)
        for name, value in given.items()
        if name.startswith(_OAUTH_EXTENSION)
    ]
    if more:
        answer["sasl.oauthbearer.extensions"] = ",".join(f"{name}={value}" for name, value in more)
    return answer


def _kind(java: Mapping[str, str], store: str) -> str:
    """Return the type of a store; Java's default is JKS."""
    return java.get(f"ssl.{store}.type", "JKS").strip().upper()


def _truststore(java: Mapping[str, str]) -> Store | None:
    location, kind = java.get("ssl.truststore.location"), _kind(java, "truststore")
    if location is None:
        return None
    if kind not in ("JKS", "PKCS12", "PEM"):
        raise OptionError("kafka.ssl.truststore.type", f"must be JKS, PKCS12 or PEM, not {kind}")
    return Store(location, kind, java.get("ssl.truststore.password"))


def _keystore(java: Mapping[str, str]) -> Store | None:
    location = java.get("ssl.keystore.location")
    if location is None or _kind(java, "keystore") != "JKS":
        return None
    return Store(location, "JKS", java.get("ssl.keystore.password"))


def _stores(java: Mapping[str, str]) -> dict[str, str]:
    """Return the key store settings that librdkafka supports itself: types PEM and PKCS12."""
    answer: dict[str, str] = {}
    location, kind = java.get("ssl.keystore.location"), _kind(java, "keystore")
    if location is None:
        return answer
    match kind:
        case "PEM":
            answer |= {"ssl.certificate.location": location, "ssl.key.location": location}
        case "PKCS12":
            answer["ssl.keystore.location"] = location
            if "ssl.keystore.password" in java:
                answer["ssl.keystore.password"] = java["ssl.keystore.password"]
        case "JKS":
            pass  # read when the query is planned: see _keystore
        case _:
            raise OptionError("kafka.ssl.keystore.type", f"must be JKS, PKCS12 or PEM, not {kind}")
    return answer
