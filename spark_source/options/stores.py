"""Reads trust stores (JKS, PKCS12, PEM) and key stores (JKS) into PEM text, once, when a query is planned.

The tasks get the PEM text, and need neither file nor password. The JDK's ``keytool``, which machines with Spark have,
lists trust stores and converts a JKS key store to PKCS12 in a private folder; ``openssl`` extracts key and certificates
from that.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.client_config import ClientConfig, Store

TIMEOUT_S = 60
JVM = ("-J-Duser.language=en", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""English, because we parse its errors; and minimal compilation, because the JVM is short-lived."""
TRUST, KEY = "kafka.ssl.truststore.location", "kafka.ssl.keystore.location"

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)
_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)
_GIVEN, _MADE = "LOADWISE_STORE_PASSWORD", "LOADWISE_PKCS12_PASSWORD"
"""Passwords are passed in the environment, because all users of the machine can read command lines."""


def with_stores(config: ClientConfig) -> ClientConfig:
    """Return the configuration with the content of its stores as PEM.

    Raises `OptionError` if a store cannot be read; the message has no password.
    """
    if config.truststore is not None:
        settings = {**config.settings, "ssl.ca.pem": _certificates(config.truststore)}
        config = replace(config, settings=settings, truststore=None)
    store = config.keystore
    if store is None:
        return config
    if config.settings.get("ssl.key.password", store.password) != store.password:
        raise OptionError(
            "kafka.ssl.key.password",
            "is not the key store's password, and keytool reads only keys with that from a store of type JKS; give the"
            f" key that password: keytool -keypasswd -alias … -keystore {store.location}",
        )
    key, chain = _key(store)
    settings = {name: value for name, value in config.settings.items() if name != "ssl.key.password"}
    return replace(config, settings=settings | {"ssl.key.pem": key, "ssl.certificate.pem": chain}, keystore=None)


def _certificates(store: Store) -> str:
    if store.kind == "PEM":
        try:
            text = Path(store.location).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(store, str(error)) from None
    else:
        java = keytool()
        if java is None:
            raise OptionError(
                TRUST,
                f"reading a store of type {store.kind} needs keytool, which is neither in JAVA_HOME/bin nor on PATH;"
                f" convert it with: keytool -list -rfc -keystore {store.location} > ca.pem, and set"
                " kafka.ssl.truststore.type=PEM",
            )
        command = [java, *JVM, "-list", "-rfc", "-keystore", store.location, "-storetype", store.kind]
        if store.password is not None:
            command += ["-storepass:env", _GIVEN]
        text, problem = _run(TRUST, command, {_GIVEN: store.password or ""})
        if problem:
            raise _unreadable(store, problem)
    found = _CERTIFICATE.findall(text)
    if not found:
        raise _unreadable(store, "it holds no certificate")
    return _joined(found)


def _key(store: Store) -> tuple[str, str]:
    """Return the private key of a JKS store, without a password, and its certificates, as PEM."""
    java, openssl = keytool(), shutil.which("openssl")
    if java is None or openssl is None:
        missing = "keytool, which is neither in JAVA_HOME/bin nor on PATH" if java is None else "openssl, not on PATH"
        raise OptionError(
            KEY,
            f"reading a store of type JKS needs {missing}; convert it on another machine: keytool -importkeystore"
            f" -srckeystore {store.location} -destkeystore client.p12 -deststoretype PKCS12, and set"
            " kafka.ssl.keystore.type=PKCS12",
        )
    passwords = {_GIVEN: store.password or "", _MADE: secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, "client.p12"))
        source = ["-srckeystore", store.location, "-srcstoretype", "JKS", "-srcstorepass:env", _GIVEN]
        made = ["-destkeystore", target, "-deststoretype", "PKCS12", "-deststorepass:env", _MADE]
        text = ""
        for command in (
            [java, *JVM, "-importkeystore", "-noprompt", *source, *made],
            [openssl, "pkcs12", "-in", target, "-nodes", "-passin", f"env:{_MADE}"],
        ):
            text, problem = _run(KEY, command, passwords)
            if problem:
                raise OptionError(KEY, problem)
    keys, chain = _KEY.findall(text), _CERTIFICATE.findall(text)
    if len(keys) != 1 or not chain:
        raise OptionError(
            KEY, f"{store.location} holds {len(keys)} keys with {len(chain)} certificates; expected one key"
        )
    return keys[0], _joined(chain)


def keytool() -> str | None:
    """Return the path of the JDK's ``keytool``, from JAVA_HOME or PATH; None without one."""
    at_home = Path(os.environ.get("JAVA_HOME", ""), "bin", "keytool")
    return str(at_home) if at_home.is_file() else shutil.which("keytool")


def _run(option: str, command: list[str], passwords: Mapping[str, str]) -> tuple[str, str]:
    """Return what a command prints, and its error or an empty string."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603 - keytool and openssl, with the user's own path as a separate argument
            command,
            env={**os.environ, **passwords},
            input="\n",
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise OptionError(option, f"{name} did not end within {TIMEOUT_S} s") from None
    printed = (done.stdout + done.stderr).splitlines()
    problem = next((line for line in printed if "rror" in line), f"{name} ends with {done.returncode}")
    return done.stdout, problem if done.returncode else ""


def _unreadable(store: Store, why: str) -> OptionError:
    return OptionError(TRUST, f"{store.location} cannot be read as {store.kind}: {why}")


def _joined(certificates: list[str]) -> str:
    return "".join(f"{certificate.rstrip()}\n" for certificate in certificates)
