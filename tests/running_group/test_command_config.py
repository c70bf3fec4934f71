"""The properties file of ``--command-config``: what Kafka's own tools take, for kafka-python."""

from __future__ import annotations

import pytest
from kafka import KafkaAdminClient

from loadwise.running_group import command_config
from loadwise.running_group.command_config import client_settings
from loadwise.running_group.errors import BadConnectionError

SASL = "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
FILE = r"""
# As for bin/kafka-consumer-groups.sh --command-config
! another comment
security.protocol=SASL_SSL
sasl.mechanism : SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="alice" \
    password="a=b;\\"c d";
ssl.truststore.type=PEM
ssl.truststore.location=/etc/kafka/ca.pem
ssl.keystore.type PEM
ssl.keystore.location /etc/kafka/me.pem
ssl.key.password=ge\u0068eim
ssl.endpoint.identification.algorithm=
request.timeout.ms=1500
"""


def test_what_kafkas_tools_take() -> None:
    assert client_settings(FILE, "f") == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": 'a=b;"c d',
        "ssl_cafile": "/etc/kafka/ca.pem",
        "ssl_certfile": "/etc/kafka/me.pem",
        "ssl_keyfile": "/etc/kafka/me.pem",
        "ssl_password": "geheim",
        "ssl_check_hostname": False,
        "request_timeout_ms": 1500,
    }
    assert client_settings("\n# nothing\n", "f") == {}


def test_a_last_line_that_would_go_on_counts_as_with_java() -> None:
    """``Properties.load`` gives it, too. Left out in silence it would have meant a connection without TLS."""
    assert client_settings("client.id=me\nsecurity.protocol=SSL\\", "f") == {
        "client_id": "me",
        "security_protocol": "SSL",
    }


def test_kafka_python_knows_every_setting() -> None:
    ours = {name for name, _ in (*command_config._SAME.values(), *command_config._CHOICES.values())} | client_settings(
        FILE, "f"
    ).keys()
    assert ours <= KafkaAdminClient.DEFAULT_CONFIG.keys()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "securty.protocol=SSL",
            r"f: securty.protocol is not supported \(did you mean 'security.protocol'\?\)",
        ),
        ("sasl.jaas.confg=secret", r"f: sasl.jaas.confg is not supported \(did you mean 'sasl.jaas.config'\?\)"),
        ("x=1", "f: x is not supported; choose from client.dns.lookup, "),
        ("request.timeout.ms=soon", "f: request.timeout.ms is 'soon'; expected a whole number"),
        ("ssl.truststore.location=a.jks", "ssl.truststore.location is of type JKS, .* set ssl.truststore.type=PEM"),
        ("ssl.keystore.location=a\nssl.keystore.type=PKCS12", "ssl.keystore.location is of type PKCS12"),
        (
            "security.protocol=SSSL",
            "f: security.protocol is 'SSSL'; expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL",
        ),
        ("sasl.mechanism=GSSAPI", "f: sasl.mechanism is 'GSSAPI'; expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("security.protocol=SASL_SSL", "f: security.protocol=SASL_SSL needs sasl.mechanism"),
        (SASL, "f: security.protocol=SASL_SSL needs sasl.jaas.config"),
        (
            f"{SASL}sasl.jaas.config=PlainLoginModule required username=a;",
            "f: sasl.jaas.config must read: <login module>",
        ),
        (
            f"{SASL}sasl.jaas.config=x.OAuth required username=a password=secret;",
            "names OAuth; use PlainLoginModule",
        ),
        ("client.id=a\n=b", "f, line 2: no key; write key=value"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadConnectionError, match=message) as refused:
        client_settings(text, "f")
    assert "secret" not in str(refused.value)
