"""Convert trust stores (JKS, PKCS12, PEM) to PEM text, once, when a query is planned.

The tasks get the certificates, and need neither the file nor its password. The JDK's ``keytool`` converts Java's own
formats; every JDK and JRE has it, and so does a machine that runs Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from loadwise.spark_source.errors import OptionError
from loadwise.spark_source.options.client_config import ClientConfig, Store

TIMEOUT_S = 60
JVM = ("-J-Duser.language=en", "-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")
"""English, because we parse its errors; and minimal compilation, because the JVM is short-lived."""
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----\n?", re.DOTALL)


def with_certificates(config: ClientConfig) -> ClientConfig:
    """Return the configuration with the certificates of its trust store, if it has one.

    Raises `OptionError` if the store cannot be read; the message has no password.
    """
    if config.truststore is None:
        return config
    return replace(config, settings={**config.settings, "ssl.ca.pem": certificates(config.truststore)}, truststore=None)


def certificates(store: Store) -> str:
    """Return all certificates of a store as PEM. Raises `OptionError`."""
    if store.kind == "PEM":
        try:
            found, problem = CERTIFICATE.findall(Path(store.location).read_text()), ""
        except (OSError, UnicodeDecodeError) as error:
            found, problem = [], str(error)
    else:
        found, problem = _from_java(store)
    if not found:
        why = problem or "it holds no certificate"
        raise OptionError("kafka.ssl.truststore.location", f"{store.location} cannot be read as {store.kind}: {why}")
    return "".join(f"{certificate.rstrip()}\n" for certificate in found)


def _from_java(store: Store) -> tuple[list[str], str]:
    """Return the certificates, or the error that keytool prints."""
    java = keytool()
    if java is None:
        raise OptionError(
            "kafka.ssl.truststore.location",
            f"reading a store of type {store.kind} takes keytool, which is neither in JAVA_HOME/bin nor on PATH;"
            f" convert it with: keytool -list -rfc -keystore {store.location} > ca.pem, and set"
            " kafka.ssl.truststore.type=PEM",
        )
    command = [java, *JVM, "-list", "-rfc", "-keystore", store.location, "-storetype", store.kind]
    # In the environment, because all users of the machine can read command lines.
    environment = dict(os.environ)
    if store.password is not None:
        command += ["-storepass:env", "LOADWISE_STORE_PASSWORD"]
        environment["LOADWISE_STORE_PASSWORD"] = store.password
    try:
        done = subprocess.run(  # noqa: S603 - keytool, with the user's own path as an argument of its own
            command, env=environment, input="\n", capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise OptionError("kafka.ssl.truststore.location", f"keytool did not end within {TIMEOUT_S} s") from None
    if done.returncode:
        printed = (done.stdout + done.stderr).splitlines()
        return [], next((line for line in printed if "rror" in line), f"keytool ends with {done.returncode}")
    return CERTIFICATE.findall(done.stdout), ""


def keytool() -> str | None:
    """Return the path of the JDK's ``keytool``, from JAVA_HOME or PATH; None without one."""
    at_home = Path(os.environ.get("JAVA_HOME", ""), "bin", "keytool")
    return str(at_home) if at_home.is_file() else shutil.which("keytool")
