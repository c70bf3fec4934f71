"""A real Apache Kafka that asks for TLS and a password (SASL_SSL), and that allows each user only what ACLs say.

Five users, each with the same password under SCRAM and PLAIN. What begins with `PREFIX`, ``reader`` may read,
topics and groups; ``looker`` may see topics and groups but read no topic; ``stranger`` may do nothing; ``owner`` may do
everything; and tests give ``asker`` rights as they like. It listens without TLS too, and without passwords.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_process import kafka_from_jars
from topics import WAIT_S, until

PREFIX = "secured-"
MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
MAX_SESSION_MS = 3_600_000
"""After how long a client under SASL_PLAINTEXT has to log in again."""
PASSWORDS = {name: f"{name}s-not-to-be-seen" for name in ("reader", "looker", "stranger", "owner", "asker")}
STORE_PASSWORD = "stores-not-to-be-seen"
SUPER_USERS = ("User:ANONYMOUS", "User:owner", "User:CN=owner")
RIGHTS = {"reader": (("TOPIC", "READ"), ("GROUP", "READ")), "looker": (("TOPIC", "DESCRIBE"), ("GROUP", "DESCRIBE"))}


@dataclass(frozen=True)
class SecuredKafka:
    """Where it is, and what it takes to be let in."""

    address: str
    """Under SASL_SSL."""
    open_address: str
    """Under PLAINTEXT, where everybody may do everything."""
    addresses: Mapping[str, str]
    """By protocol."""
    folder: Path
    """Of the certificates. To trust: ``ca.pem``, and ``ca.jks`` with the password `STORE_PASSWORD`. The owner's own for
    SSL: ``owner.crt``, with its key ``owner.key``."""

    def settings(self, user: str, mechanism: str = "SCRAM-SHA-512", password: str | None = None) -> dict[str, str]:
        """A user's settings, as the Java client names them."""
        login = f'username="{user}" password="{PASSWORDS[user] if password is None else password}"'
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f"{MODULES[mechanism]} required {login};",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.folder / "ca.pem"),
        }


@contextlib.contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Run one for the length of a with block; its certificates are put into the folder.

    Raises `kafka_process.KafkaNotInstalledError`.
    """
    _make_certificates(folder)
    users = " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items())
    settings = {
        "sasl.enabled.mechanisms": ",".join(MODULES),
        **{
            f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": (
                f"{module} required {users if mechanism == 'PLAIN' else ''};"
            )
            for listener in ("sasl_ssl", "sasl_plaintext")
            for mechanism, module in MODULES.items()
        },
        # Tokens that nobody has signed will do: a subject, and how long they are good for. One mechanism is missing.
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.sasl.enabled.mechanisms": ",".join((*MODULES, "OAUTHBEARER")),
        "listener.name.sasl_plaintext.connections.max.reauth.ms": str(MAX_SESSION_MS),
        "listener.name.sasl_ssl.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(SUPER_USERS),
    }
    scram = [
        f"{mechanism}=[name={user},password={password}]"
        for mechanism in MODULES if mechanism != "PLAIN"
        for user, password in PASSWORDS.items()
    ]  # fmt: skip
    formatting = [word for each in scram for word in ("--add-scram", each)]
    with kafka_from_jars(("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"), settings, *formatting) as addresses:
        _allow(addresses["PLAINTEXT"])
        yield SecuredKafka(addresses["SASL_SSL"], addresses["PLAINTEXT"], addresses, folder)


def _make_certificates(folder: Path) -> None:
    """An authority's certificate, and the broker's own, signed by it, with its key; and that of another authority."""

    def run(*command: str) -> None:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=WAIT_S)

    new = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30")
    for name in ("ca", "other"):
        run(*new, "-subj", "/CN=tests", "-keyout", f"{name}.key", "-out", f"{name}.pem")
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    run(*new, *subject, "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "server.key", "-out", "server.crt")
    run(*new, "-subj", "/CN=owner", "-CA", "ca.pem", "-CAkey", "ca.key", "-keyout", "owner.key", "-out", "owner.crt")
    (folder / "server.pem").write_bytes((folder / "server.key").read_bytes() + (folder / "server.crt").read_bytes())
    store = ("-keystore", "ca.jks", "-storetype", "JKS", "-storepass", STORE_PASSWORD)
    run("keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", "ca.pem", *store)


def _allow(open_address: str) -> None:
    """Give users their `RIGHTS`, and wait until the broker goes by them."""
    from confluent_kafka.admin import (
        AclBinding,
        AclBindingFilter,
        AclOperation,
        AclPermissionType,
        AdminClient,
        ResourcePatternType,
        ResourceType,
    )

    everywhere = (PREFIX, ResourcePatternType.PREFIXED)
    wanted = [
        AclBinding(ResourceType[kind], *everywhere, f"User:{user}", "*", AclOperation[right], AclPermissionType.ALLOW)
        for user, rights in RIGHTS.items()
        for kind, right in rights
    ]
    admin = AdminClient({"bootstrap.servers": open_address, "log_level": 0})
    for made in admin.create_acls(wanted, request_timeout=WAIT_S).values():
        made.result(WAIT_S)
    everything = AclBindingFilter(
        ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    until(
        lambda: len(admin.describe_acls(everything, request_timeout=WAIT_S).result(WAIT_S)) >= len(wanted),
        lambda: "the broker does not know all ACLs",
    )
