"""Convert key stores of type JKS to PEM text, once, when a query is planned.

Only Java reads this type. The JDK's ``keytool`` converts the store to PKCS12 in a private temporary folder, and
``openssl`` extracts key and certificates from that. Most machines have both commands.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.client_config import ClientConfig, Store
from loadwise.spark_source.options.truststores import CERTIFICATE, JVM, TIMEOUT_S, keytool

_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----\n?", re.DOTALL)
_PASSWORDS = ("LOADWISE_STORE_PASSWORD", "LOADWISE_PKCS12_PASSWORD")
"""Passwords are passed in the environment, because all users of the machine can read command lines."""


def with_key(config: ClientConfig) -> ClientConfig:
    """Return the configuration with the key and certificates of its key store, if it has one to read.

    Raises `OptionError` if the store cannot be read, or its key has another password; the message has no password.
    """
    if config.keystore is None:
        return config
    if config.settings.get("ssl.key.password", config.keystore.password) != config.keystore.password:
        raise OptionError(
            "kafka.ssl.key.password",
            "is not the key store's password, and keytool takes only keys with that out of a store of type JKS; give"
            f" the key that password: keytool -keypasswd -alias … -keystore {config.keystore.location}",
        )
    key, chain = _read(config.keystore)
    found = {"ssl.key.pem": key, "ssl.certificate.pem": chain}
    settings = {name: value for name, value in config.settings.items() if name != "ssl.key.password"}
    return replace(config, settings=settings | found, keystore=None)


def _read(store: Store) -> tuple[str, str]:
    """Return the private key, without a password, and its certificates, as PEM."""
    java, openssl = keytool(), shutil.which("openssl")
    if java is None or openssl is None:
        missing = "keytool, which is neither in JAVA_HOME/bin nor on PATH" if java is None else "openssl, not on PATH"
        raise _refused(
            f"reading a store of type JKS takes {missing}; convert it where that is: keytool -importkeystore"
            f" -srckeystore {store.location} -destkeystore client.p12 -deststoretype PKCS12, and set"
            " kafka.ssl.keystore.type=PKCS12"
        )
    given, made = _PASSWORDS
    environment = os.environ | {given: store.password or "", made: secrets.token_hex(16)}
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder, "client.p12"))
        source = ["-srckeystore", store.location, "-srcstoretype", "JKS", "-srcstorepass:env", given]
        import_all = [java, *JVM, "-importkeystore", "-noprompt", *source]
        _run(
            [*import_all, "-destkeystore", target, "-deststoretype", "PKCS12", "-deststorepass:env", made], environment
        )
        text = _run([openssl, "pkcs12", "-in", target, "-nodes", "-passin", f"env:{made}"], environment)
    keys, chain = _KEY.findall(text), CERTIFICATE.findall(text)
    if len(keys) != 1 or not chain:
        raise _refused(f"{store.location} holds {len(keys)} keys with {len(chain)} certificates; expected one key")
    return keys[0], "".join(f"{certificate.rstrip()}\n" for certificate in chain)


def _run(command: list[str], environment: dict[str, str]) -> str:
    name = Path(command[0]).name
    try:
        done = subprocess.run(  # noqa: S603 - keytool and openssl, with the user's own path as an argument of its own
            command, env=environment, input="\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise _refused(f"{name} did not end within {TIMEOUT_S} s") from None
    if done.returncode:
        printed = (done.stdout + done.stderr).splitlines()
        raise _refused(next((line for line in printed if "rror" in line), f"{name} ends with {done.returncode}"))
    return done.stdout


def _refused(problem: str) -> OptionError:
    return OptionError("kafka.ssl.keystore.location", problem)
