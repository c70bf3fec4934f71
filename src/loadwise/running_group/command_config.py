"""Translates the file of ``--command-config``, which Kafka's own tools read, for kafka-python's clients. Pure.

Java's side: ``java.util.Properties.load`` for the form, ``AdminClientConfig``, ``SaslConfigs`` and ``SslConfigs`` for
the names. An unknown setting is refused, because it could be a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from loadwise.nearest import near_or_all
from loadwise.protocol.jaas import read_jaas
from loadwise.running_group.errors import BadConnectionError

_SAME: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "client.dns.lookup": ("client_dns_lookup", str),
    "client.id": ("client_id", str),
    "connections.max.idle.ms": ("connections_max_idle_ms", int),
    "metadata.max.age.ms": ("metadata_max_age_ms", int),
    "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", int),
    "reconnect.backoff.ms": ("reconnect_backoff_ms", int),
    "request.timeout.ms": ("request_timeout_ms", int),
    "retry.backoff.ms": ("retry_backoff_ms", int),
    "ssl.key.password": ("ssl_password", str),
}
"""Java's name to kafka-python's and the type of the value, where nothing else differs."""

_CHOICES = {
    "security.protocol": ("security_protocol", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
    "sasl.mechanism": ("sasl_mechanism", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
}
"""Settings with few values. For kafka-python an unknown protocol is PLAINTEXT."""

_STORES = ("ssl.truststore.location", "ssl.keystore.location")
_SPECIAL = (
    *_CHOICES,
    *_STORES,
    "sasl.jaas.config",
    "ssl.endpoint.identification.algorithm",
    "ssl.keystore.type",
    "ssl.truststore.type",
)
_LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def client_settings(text: str, name: str) -> dict[str, Any]:
    """Return keyword arguments for kafka-python's clients. ``name`` is that of the file, for errors, without secrets.

    Raises `BadConnectionError` for an unknown setting, or a value that cannot be translated.
    """
    java = properties(text, name)
    settings: dict[str, Any] = {}
    for key, value in java.items():
        if key in _SAME:
            ours, kind = _SAME[key]
            try:
                settings[ours] = kind(value)
            except ValueError:
                raise BadConnectionError(f"{name}: {key} is {value!r}; expected a whole number") from None
        elif key not in _SPECIAL:
            known = sorted((*_SAME, *_SPECIAL))
            raise BadConnectionError(f"{name}: {key} is not supported{near_or_all(key, known)}")
    for key, (ours, choices) in _CHOICES.items():
        if key in java:
            if java[key] not in choices:
                raise BadConnectionError(f"{name}: {key} is {java[key]!r}; expected one of {', '.join(choices)}")
            settings[ours] = java[key]
    for store in _STORES:
        kind_key = store.replace("location", "type")
        if store in java and java.get(kind_key, "JKS").upper() != "PEM":
            raise BadConnectionError(
                f"{name}: {store} is of type {java.get(kind_key, 'JKS')}, which only Java reads; convert it, and set"
                f" {kind_key}=PEM"
            )
    if "ssl.truststore.location" in java:
        settings["ssl_cafile"] = java["ssl.truststore.location"]
    if "ssl.keystore.location" in java:  # Kafka's PEM holds the key and the certificates in one file
        settings["ssl_certfile"] = settings["ssl_keyfile"] = java["ssl.keystore.location"]
    if "ssl.endpoint.identification.algorithm" in java:
        settings["ssl_check_hostname"] = bool(java["ssl.endpoint.identification.algorithm"])
    if java.get("security.protocol", "").startswith("SASL_"):
        for key in ("sasl.mechanism", "sasl.jaas.config"):
            if key not in java:
                raise BadConnectionError(f"{name}: security.protocol={java['security.protocol']} needs {key}")
        settings |= _credentials(java["sasl.jaas.config"], name)
    return settings


def properties(text: str, name: str) -> dict[str, str]:
    """Return the settings of the file by Java's names. Raises `BadConnectionError` for a line without a key."""
    return {key: value for _, key, value in numbered_properties(text, name)}


def numbered_properties(text: str, name: str) -> Iterator[tuple[int, str, str]]:
    """Yield the line, Java's name and the value of each setting. Raises `BadConnectionError` for a line without a key.

    ``#`` and ``!`` begin comments; after a backslash at its end, a line continues on the next one.
    """
    whole = ""
    for number, line in enumerate((*text.splitlines(), ""), start=1):  # the last line may end in a backslash
        whole += line.lstrip()
        if not whole or (whole == line.lstrip() and whole[0] in "#!"):
            whole = ""
            continue
        if len(whole) - len(whole.rstrip("\\")) & 1:
            whole = whole[:-1]
            continue
        pair = re.fullmatch(r"((?:\\.|[^\s=:\\])+)\s*[\s=:]?\s*(.*)", whole, re.DOTALL)
        if pair is None:
            raise BadConnectionError(f"{name}, line {number}: no key; write key=value")
        yield number, _unescaped(pair[1]), _unescaped(pair[2]).strip()
        whole = ""


def _unescaped(text: str) -> str:
    return re.sub(
        r"\\(?:u([0-9a-fA-F]{4})|(.))",
        lambda escaped: chr(int(escaped[1], 16)) if escaped[1] else _ESCAPES.get(escaped[2], escaped[2]),
        text,
    )


def _credentials(jaas: str, name: str) -> dict[str, str]:
    """Return user name and password of a JAAS line, for PLAIN and SCRAM."""
    try:
        login = read_jaas(jaas)
        given = {"sasl_plain_username": login.options["username"], "sasl_plain_password": login.options["password"]}
    except (ValueError, KeyError):
        raise BadConnectionError(
            f'{name}: sasl.jaas.config must read: <login module> required username="…" password="…";'
        ) from None
    if login.module not in _LOGIN_MODULES:
        raise BadConnectionError(f"{name}: sasl.jaas.config names {login.module}; use {' or '.join(_LOGIN_MODULES)}")
    return given
