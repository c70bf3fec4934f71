"""Convert librdkafka's configuration to kafka-python's, for the group member of a confluent-kafka consumer.

Users give their settings once, under librdkafka's names. librdkafka reads records with them, and kafka-python joins the
group with their equivalents. A setting of the connection or the group without an equivalent is refused by name. Nothing
is connected here; certificate files are read.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from loadwise.assignor.errors import BadGroupError, UnsupportedByClientError

ALIASES = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
}
"""Aliases in librdkafka; the last is Kafka's name for nearly the same."""

TEXT = {
    "auto.offset.reset": "auto_offset_reset",  # where the lag of a partition without a commit starts
    "client.id": "client_id",
    "client.rack": "client_rack",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "isolation.level": "isolation_level",
    "sasl.kerberos.service.name": "sasl_kerberos_service_name",
    "sasl.password": "sasl_plain_password",
    "sasl.username": "sasl_plain_username",
}
MILLISECONDS = {
    "connections.max.idle.ms": "connections_max_idle_ms",
    "heartbeat.interval.ms": "heartbeat_interval_ms",
    "max.poll.interval.ms": "max_poll_interval_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
    "reconnect.backoff.max.ms": "reconnect_backoff_max_ms",
    "reconnect.backoff.ms": "reconnect_backoff_ms",
    "retry.backoff.ms": "retry_backoff_ms",
    "session.timeout.ms": "session_timeout_ms",
}

DEFAULTS: Mapping[str, Any] = {
    "allow_auto_create_topics": False,
    "auto_offset_reset": "latest",
    "client_id": "rdkafka",
    "isolation_level": "read_committed",
    "max_poll_interval_ms": 300_000,
    "metrics_enabled": False,
    "session_timeout_ms": 45_000,
}
"""librdkafka's defaults that differ from kafka-python's, or where brokers' own have changed over time."""

OF_THE_MEMBER = frozenset({"group.instance.id"})
"""Settings that librdkafka must not get: it joins no group and would fence itself."""

REFUSED = {
    "enable.sasl.oauthbearer.unsecure.jwt": "give oauth_cb, which serves both the member and librdkafka",
    "group.protocol": "the member uses a classic group; leave it out, or use the stock Consumer for KIP-848",
    "group.remote.assignor": "it is for KIP-848; use `assignor`",
    "partition.assignment.strategy": "use `assignor`",
    "sasl.kerberos.keytab": "kafka-python reads tickets from the cache: run kinit, and leave it out",
    "sasl.oauthbearer.method": "give oauth_cb, which serves both the member and librdkafka",
    "ssl.engine.location": "use files or PEM texts",
    "ssl.keystore.location": "use ssl.certificate.location and ssl.key.location; openssl pkcs12 converts",
    "ssl.providers": "use files or PEM texts",
}
"""Settings that only librdkafka supports, so that the member could not connect or would differ; with a remedy."""

OFFSET_RESETS = {
    "beginning": "earliest",
    "end": "latest",
    "error": "latest",
    "largest": "latest",
    "smallest": "earliest",
}
"""librdkafka's words for `earliest` and `latest`; librdkafka itself handles `error`."""

CERTIFICATE_SETTINGS = (
    "enable.ssl.certificate.verification",
    "ssl.ca.location",
    "ssl.ca.pem",
    "ssl.certificate.location",
    "ssl.certificate.pem",
    "ssl.cipher.suites",
    "ssl.crl.location",
    "ssl.endpoint.identification.algorithm",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.key.pem",
)


def member_settings(librdkafka: Mapping[str, Any], oauth_cb: Callable[[str], Any] | None = None) -> dict[str, Any]:
    """Return the kafka-python settings for a confluent-kafka ``Consumer``'s configuration.

    Raises `UnsupportedByClientError` for a setting of `REFUSED`, `BadGroupError` without brokers, ValueError for a time
    that is not a number, and errors from reading certificates.
    """
    settings = {ALIASES.get(name, name): value for name, value in librdkafka.items()}
    for name, remedy in REFUSED.items():
        if name in settings:
            raise UnsupportedByClientError(
                f"{name} is not supported for a consumer with one of loadwise's assignors: {remedy}"
            )
    answer = dict(DEFAULTS)
    answer |= {TEXT[name]: str(value) for name, value in settings.items() if name in TEXT}
    answer |= {own: milliseconds(name, settings[name]) for name, own in MILLISECONDS.items() if name in settings}
    answer["auto_offset_reset"] = OFFSET_RESETS.get(answer["auto_offset_reset"], answer["auto_offset_reset"])
    servers = [server.rpartition("://")[2].strip() for server in str(settings.get("bootstrap.servers", "")).split(",")]
    if not all(servers):
        raise BadGroupError('the configuration has no brokers; set bootstrap.servers, such as "broker:9092"')
    answer["bootstrap_servers"] = servers
    if "heartbeat_interval_ms" not in answer:
        answer["heartbeat_interval_ms"] = min(3_000, answer["session_timeout_ms"] // 3)
    protocol = str(settings.get("security.protocol", "plaintext")).upper()
    answer["security_protocol"] = protocol
    if protocol.startswith("SASL_"):
        answer["sasl_mechanism"] = str(settings.get("sasl.mechanism", "GSSAPI")).upper()
        if answer["sasl_mechanism"] == "OAUTHBEARER" and oauth_cb is None:
            raise UnsupportedByClientError(
                "sasl.mechanism OAUTHBEARER needs oauth_cb, which serves both the member and librdkafka"
            )
        if oauth_cb is not None:
            config = str(settings.get("sasl.oauthbearer.config", ""))
            answer["sasl_oauth_token_provider"] = TokenProvider(oauth_cb, config)
    if protocol.endswith("SSL"):
        answer["ssl_context"] = _context({name: settings[name] for name in CERTIFICATE_SETTINGS if name in settings})
    return answer


def milliseconds(name: str, value: Any) -> int:
    """Return one of librdkafka's times, which may be a string. Raises ValueError if it is not a number."""
    try:
        return int(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is {value!r}; it must be a whole number of milliseconds") from None


class TokenProvider(AbstractTokenProvider):
    """kafka-python's ``AbstractTokenProvider`` over librdkafka's ``oauth_cb``."""

    def __init__(self, oauth_cb: Callable[[str], Any], config: str) -> None:
        self._oauth_cb = oauth_cb
        self._config = config
        self._extensions: dict[str, str] = {}

    def token(self) -> str:
        """Return a token for a new connection; called on kafka-python's thread."""
        token, _, *principal_and_extensions = self._oauth_cb(self._config)
        self._extensions = dict(principal_and_extensions[1] or {}) if len(principal_and_extensions) > 1 else {}
        return str(token)

    def extensions(self) -> dict[str, str]:
        """Return the SASL extensions of the last token."""
        return self._extensions


def _context(settings: Mapping[str, Any]) -> ssl.SSLContext:
    location = settings.get("ssl.ca.location")
    if location == "probe":
        location = None
    folder = location is not None and Path(location).is_dir()
    context = ssl.create_default_context(
        cafile=None if folder else location,
        capath=location if folder else None,
        cadata=settings.get("ssl.ca.pem"),
    )
    if "ssl.crl.location" in settings:
        context.load_verify_locations(settings["ssl.crl.location"])
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
    if "ssl.cipher.suites" in settings:
        context.set_ciphers(settings["ssl.cipher.suites"])
    if str(settings.get("ssl.endpoint.identification.algorithm", "https")).lower() == "none":
        context.check_hostname = False
    if str(settings.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _load_certificate(context, settings)
    return context


def _load_certificate(context: ssl.SSLContext, settings: Mapping[str, Any]) -> None:
    password = settings.get("ssl.key.password")
    certificate, key = settings.get("ssl.certificate.location"), settings.get("ssl.key.location")
    if certificate is not None:
        context.load_cert_chain(certificate, key, password)
    elif "ssl.certificate.pem" in settings:
        # Python reads certificates only from files; this one is deleted at once and is private.
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(settings.get("ssl.key.pem", "") + "\n" + settings["ssl.certificate.pem"])
            file.flush()
            context.load_cert_chain(file.name, password=password)
