"""Reads security settings by Kafka's names, such as ``super.users``.

All listeners share these settings, so ``listener.name.x.`` before a setting is dropped. No error shows a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loadwise.coordinator.calls.rights import Authorizing
from loadwise.coordinator.configs.broker_configs import LISTENER
from loadwise.coordinator.errors import BadSecurityError
from loadwise.coordinator.security.config_names import (
    AUTHORIZATION,
    ENABLED_MECHANISMS,
    JAAS,
    NAMES,
    RULES,
    STORE_TYPES,
    TLS,
)
from loadwise.coordinator.security.listeners import client_listener
from loadwise.coordinator.security.options import Security
from loadwise.coordinator.security.tls import TlsFiles
from loadwise.protocol.jaas import read_jaas

_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_USER = "user_"


def is_about_security(written: str) -> bool:
    """Return whether `security_of` reads this setting."""
    return LISTENER.sub("", written, count=1) in NAMES


def security_of(configs: Mapping[str, str]) -> tuple[Security | None, dict[str, str]]:
    """Return the `Security` of these settings, and the settings that are not about security.

    The `Security` is None if the settings ask nothing of clients. Without ``security.protocol`` the protocol is that of
    the listener for clients, if ``listeners`` is set.

    Raises `BadSecurityError` if a value is not valid, or if a setting lacks another that it needs.
    """
    others: dict[str, str] = {}
    given: dict[str, str] = {}
    written_as: dict[str, str] = {}
    for written, value in configs.items():
        name = LISTENER.sub("", written, count=1)
        if name in NAMES:
            given[name] = value
            written_as[name] = written
        else:
            others[written] = value
    listener = client_listener(others)
    protocol = given.get("security.protocol", "PLAINTEXT" if listener is None else listener.protocol)
    if not protocol.startswith("SASL_") and ENABLED_MECHANISMS in given:
        # Without logins it has no effect, as in Kafka.
        others[written_as[ENABLED_MECHANISMS]] = given.pop(ENABLED_MECHANISMS)
    if not given and protocol == "PLAINTEXT":
        return None, others
    options: dict[str, Any] = {"protocol": protocol}
    if ENABLED_MECHANISMS in given:
        options["mechanisms"] = [each.strip() for each in given[ENABLED_MECHANISMS].split(",")]
    reauth = given.get("connections.max.reauth.ms", "0")
    if not (reauth.isascii() and reauth.isdecimal()):
        raise BadSecurityError(f"connections.max.reauth.ms is {reauth!r}; it must be a whole number of milliseconds")
    options["max_session_ms"] = int(reauth)
    if RULES in given:
        options["principal_mapping_rules"] = given[RULES]
    users = {user: password for name in given if name.endswith(JAAS) for user, password in _users(name, given[name])}
    login_needed = [name for name in given if name.startswith("sasl.") or name.endswith(JAAS)]
    if login_needed and not options["protocol"].startswith("SASL_"):
        raise BadSecurityError(
            f"{login_needed[0]} needs a listener that clients log in to: security.protocol=SASL_PLAINTEXT or SASL_SSL"
        )
    tls = _tls(given)
    if options["protocol"].endswith("SSL") and tls is None:
        raise BadSecurityError(
            f"security.protocol={options['protocol']} needs the broker's key and certificates: ssl.keystore.location"
        )
    return Security(**options, users=users, tls=tls, authorization=_authorization(given)), others


def _users(name: str, jaas: str) -> list[tuple[str, str]]:
    try:
        login = read_jaas(jaas)
        if not login.module.endswith("LoginModule"):
            raise ValueError(login.module)
    except ValueError:
        raise BadSecurityError(
            f'{name} must be: <login module> required user_alice="<password>" user_bob="<password>";'
        ) from None
    return [(key.removeprefix(_USER), value) for key, value in login.options.items() if key.startswith(_USER)]


def _tls(given: Mapping[str, str]) -> TlsFiles | None:
    for name in STORE_TYPES:
        if given.get(name, "PEM").upper() != "PEM":
            raise BadSecurityError(f"{name} is {given[name]!r}; it must be PEM: convert files of another type")
    options: dict[str, Any] = {field: given[name] for name, field in TLS.items() if name in given}
    if not options:
        return None
    if "keystore" not in options:
        raise BadSecurityError("TLS needs the broker's key and certificates, in one PEM file: ssl.keystore.location")
    return TlsFiles(**options)


def _authorization(given: Mapping[str, str]) -> Authorizing | None:
    wanted = given.get("authorizer.class.name")
    if wanted is None:
        alone = [name for name in AUTHORIZATION if name in given]
        if alone:
            raise BadSecurityError(f"{alone[0]} needs an authorizer: authorizer.class.name={_AUTHORIZER}")
        return None
    if wanted != _AUTHORIZER:
        raise BadSecurityError(f"authorizer.class.name is {wanted!r}; it must be {_AUTHORIZER}")
    allows = given.get("allow.everyone.if.no.acl.found", "false").lower()
    if allows not in {"true", "false"}:
        raise BadSecurityError(f"allow.everyone.if.no.acl.found is {allows!r}; it must be true or false")
    # Here, because the rest works without authorization.
    from loadwise.coordinator.authorization.options import Authorization  # noqa: PLC0415

    return Authorization(
        super_users=[each.strip() for each in given.get("super.users", "").split(";") if each.strip()],
        allow_everyone_if_no_acl_found=allows == "true",
    )
