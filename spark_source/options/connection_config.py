"""Translate librdkafka's configuration to that of `cluster.brokers` (aiokafka's).

The ``messages`` reader uses the translated options directly; the ``batches`` reader reads them here. Settings that it
does not support are named, and then ``messages`` reads. Pure: no file is opened and nothing is connected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from loadwise.spark_source.options.settings import FOR_BATCHES

FETCH_BYTES = 8 << 20
"""The default size of one Fetch for a partition. With Java's 1 MiB, each MiB costs a round trip."""

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
"""SASL mechanisms that both readers support."""


@dataclass(frozen=True, slots=True)
class Tls:
    """Certificates, as paths or as PEM. Its text shows no secret."""

    ca_pem: str | None
    certificate_path: str | None
    certificate_pem: str | None
    key_path: str | None
    key_pem: str | None = field(repr=False)
    key_password: str | None = field(repr=False)
    check_hostname: bool


@dataclass(frozen=True, slots=True)
class ConnectionConfig:
    """The connection and fetch settings. Its text shows no secret."""

    bootstrap_servers: str
    client_id: str
    security_protocol: str
    sasl: Mapping[str, str] = field(repr=False)
    """aiokafka's ``sasl_*`` arguments."""
    tls: Tls | None
    request_timeout_ms: int
    setup_timeout_ms: int
    """The timeout for making a connection."""
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    unknown_for_ms: int
    """How long a topic that the planner saw may be unknown before it counts as deleted."""
    read_committed: bool
    check_crcs: bool
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_partition_bytes: int


def connection_config(settings: Mapping[str, str]) -> ConnectionConfig:
    """Translate settings, for which `not_honoured` must be empty."""
    protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
    sasl: dict[str, str] = {}
    if protocol.startswith("SASL_"):
        sasl = {
            "sasl_mechanism": settings["sasl.mechanism"].strip().upper(),
            "sasl_plain_username": settings["sasl.username"],
            "sasl_plain_password": settings["sasl.password"],
        }
    return ConnectionConfig(
        bootstrap_servers=settings["bootstrap.servers"],
        client_id=settings.get("client.id", "loadwise"),
        security_protocol=protocol,
        sasl=sasl,
        tls=_tls(settings) if protocol.endswith("SSL") else None,
        request_timeout_ms=int(settings.get("socket.timeout.ms", 30_000)),
        setup_timeout_ms=int(settings.get("socket.connection.setup.timeout.ms", 30_000)),
        retry_backoff_ms=int(settings.get("retry.backoff.ms", 100)),
        retry_backoff_max_ms=int(settings.get("retry.backoff.max.ms", 1_000)),
        unknown_for_ms=int(settings["topic.metadata.propagation.max.ms"]),
        read_committed=settings["isolation.level"] == "read_committed",
        check_crcs=settings["check.crcs"].strip().lower() == "true",
        max_wait_ms=int(settings["fetch.wait.max.ms"]),
        min_bytes=int(settings.get("fetch.min.bytes", 1)),
        max_bytes=int(settings.get("fetch.max.bytes", 50 << 20)),
        max_partition_bytes=int(settings.get("max.partition.fetch.bytes", FETCH_BYTES)),
    )


def not_honoured(settings: Mapping[str, str]) -> list[str]:
    """Return the settings (librdkafka's names) that only librdkafka supports; empty if batches can be read."""
    names = [name for name in settings if name not in FOR_BATCHES]
    protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol.startswith("SASL_") and settings.get("sasl.mechanism", "GSSAPI").strip().upper() not in MECHANISMS:
        names.append("sasl.mechanism")
    return names


def _tls(settings: Mapping[str, str]) -> Tls:
    return Tls(
        ca_pem=settings.get("ssl.ca.pem"),
        certificate_path=settings.get("ssl.certificate.location"),
        certificate_pem=settings.get("ssl.certificate.pem"),
        key_path=settings.get("ssl.key.location"),
        key_pem=settings.get("ssl.key.pem"),
        key_password=settings.get("ssl.key.password"),
        check_hostname=settings.get("ssl.endpoint.identification.algorithm", "https") != "none",
    )
