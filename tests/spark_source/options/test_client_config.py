"""Java's settings in librdkafka's words; librdkafka itself says whether it knows them."""

from __future__ import annotations

import confluent_kafka
import pytest

from loadwise.spark_source.cluster.client import connected
from loadwise.spark_source.errors import OptionError, UnknownOptionError
from loadwise.spark_source.options.client_config import Store, translate
from loadwise.spark_source.options.connection_config import ConnectionConfig, Tls, connection_config, not_honoured
from loadwise.spark_source.options.settings import NAMES, SETTINGS
from loadwise.spark_source.options.stores import with_stores

BROKERS = {"bootstrap.servers": "127.0.0.1:1"}
VALUES = {
    "allow.auto.create.topics": "false",
    "bootstrap.servers": "127.0.0.1:1",
    "check.crcs": "true",
    "client.dns.lookup": "use_all_dns_ips",
    "isolation.level": "read_committed",
    "sasl.mechanism": "PLAIN",
    "security.protocol": "PLAINTEXT",
    "fetch.max.wait.ms": "500",
    "fetch.max.bytes": "52428800",
    "request.timeout.ms": "30000",
}
PEM = {"ssl.keystore.certificate.chain", "ssl.keystore.key", "ssl.truststore.certificates"}


def test_librdkafka_knows_every_setting_that_we_translate():
    java = {name: VALUES.get(name, "1000") for name in NAMES if name not in PEM}
    consumer = confluent_kafka.Consumer({"group.id": "g", **translate(java).settings})
    consumer.close()


@pytest.mark.parametrize("name", sorted(PEM))
def test_librdkafka_knows_the_pem_settings(name: str):
    """It reads them at once, so all that can be shown without a certificate is that it objects to this one."""
    settings = translate({**BROKERS, "security.protocol": "SSL", name: "no certificate"}).settings
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        confluent_kafka.Consumer({"group.id": "g", **settings})
    assert "No such configuration property" not in str(refused.value)


def test_names_and_values_that_differ():
    settings = translate(
        {
            **BROKERS,
            "fetch.max.wait.ms": "7",
            "receive.buffer.bytes": "-1",
            "send.buffer.bytes": "4096",
            "connections.max.idle.ms": "-1",
            "retry.backoff.ms": "0",
            "client.id": " me ",
            "group.id": " ",
            "ssl.endpoint.identification.algorithm": "",
        }
    ).settings
    assert settings["fetch.wait.max.ms"] == "7"
    assert settings["socket.receive.buffer.bytes"] == "0"
    assert settings["socket.send.buffer.bytes"] == "4096"
    assert settings["connections.max.idle.ms"] == "0"
    assert settings["retry.backoff.ms"] == "1"
    assert settings["client.id"] == "me"
    assert "group.id" not in settings
    assert settings["ssl.endpoint.identification.algorithm"] == "none"


def test_a_small_fetch_max_bytes_does_not_choose_the_reader():
    assert not_honoured(translate({**BROKERS, "fetch.max.bytes": "999999"}).settings) == []


def test_a_small_fetch_max_bytes_is_one_that_librdkafka_takes():
    """It wants that to be no less than ``message.max.bytes``, 1,000,000 by default and 1000 at least."""
    for given, taken in {"500000": "500000", "0": "1000", "52428800": "52428800"}.items():
        config = translate({**BROKERS, "fetch.max.bytes": given})
        assert config.settings["fetch.max.bytes"] == taken
        with connected(config, group_id_prefix="g"):
            pass


def test_both_clients_see_the_same_records_by_default():
    """librdkafka's own defaults are read_committed, and no check of CRCs."""
    settings = translate(BROKERS).settings
    assert (settings["isolation.level"], settings["check.crcs"]) == ("read_uncommitted", "true")
    assert translate({**BROKERS, "isolation.level": "read_committed"}).settings["isolation.level"] == "read_committed"


def test_settings_that_mean_something_to_us():
    config = translate({**BROKERS, "default.api.timeout.ms": "1500", "max.poll.records": "200"})
    assert (config.api_timeout_ms, config.max_poll_records) == (1500, 200)
    with pytest.raises(OptionError, match=r"^option kafka\.max\.poll\.records: "):
        translate({**BROKERS, "max.poll.records": "many"})


@pytest.mark.parametrize(
    "name", [each.java for each in SETTINGS if each.librdkafka in ("(member)", "(producer)", "(metric)")]
)
def test_settings_that_no_reader_has_a_use_for_do_nothing(name: str):
    assert translate({**BROKERS, name: "x"}) == translate(BROKERS)


@pytest.mark.parametrize("name", ["enable.auto.commit", "key.deserializer", "interceptor.classes", "metric.reporters"])
def test_what_cannot_be_translated_is_refused_by_name(name: str):
    with pytest.raises(UnknownOptionError, match=f"^option kafka.{name}: "):
        translate({**BROKERS, name: "x"})


@pytest.mark.parametrize(
    ("jaas", "user", "password"),
    [
        (
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="a b;c";',
            "alice",
            "a b;c",
        ),
        ("a.ScramLoginModule  required\n username='alice'\n password='it\"s' tokenauth=\"true\" ;", "alice", 'it"s'),
        (r'PlainLoginModule required password="q\"uo\\te" username=bob;', "bob", r"q\uo\te".replace(r"\u", '"u')),
    ],
)
def test_credentials_out_of_jaas(jaas: str, user: str, password: str):
    settings = translate({**BROKERS, "sasl.jaas.config": jaas}).settings
    assert (settings["sasl.username"], settings["sasl.password"]) == (user, password)


OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
TOKENS = "sasl.oauthbearer.token.endpoint.url"


def test_a_client_of_a_server_of_tokens_out_of_jaas():
    jaas = f'{OAUTH} clientId="us" clientSecret="s\\"x" scope="a b" extension_logicalCluster="lkc" extension_pool="p";'
    handler = "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"
    given = {TOKENS: "https://host/token", "sasl.login.callback.handler.class": handler, "sasl.jaas.config": jaas}
    config = translate({**BROKERS, **given, "sasl.mechanism": "OAUTHBEARER", "security.protocol": "SASL_SSL"})
    assert {name: value for name, value in config.settings.items() if name.startswith("sasl.oauthbearer.")} == {
        "sasl.oauthbearer.method": "oidc",
        TOKENS: "https://host/token",
        "sasl.oauthbearer.client.id": "us",
        "sasl.oauthbearer.client.secret": 's"x',
        "sasl.oauthbearer.scope": "a b",
        "sasl.oauthbearer.extensions": "logicalCluster=lkc,pool=p",
    }
    assert 's"x' not in str(config)
    assert "sasl.mechanism" in not_honoured(config.settings), "only librdkafka has it"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"sasl.jaas.config": f'{OAUTH} clientId="us";', TOKENS: "http://h"}, 'sasl.jaas.config: clientSecret="…" is'),
        ({"sasl.jaas.config": f'{OAUTH} clientId="a" clientSecret="b";'}, f"{TOKENS}: must be given with OAUTHBEARER"),
        ({"sasl.login.callback.handler.class": "com.example.Own"}, "handler.class: Java classes cannot be called"),
    ],
)
def test_tokens_that_cannot_be_had_are_refused(given: dict[str, str], problem: str):
    with pytest.raises(OptionError, match=problem):
        translate({**BROKERS, **given})


@pytest.mark.parametrize(
    ("jaas", "problem"),
    [
        ("nonsense", "must read"),
        ('com.sun.security.auth.module.Krb5LoginModule required keyTab="k";', "Krb5LoginModule has no counterpart"),
        ('PlainLoginModule required username="alice";', 'password="…" is missing'),
    ],
)
def test_other_jaas_is_refused(jaas: str, problem: str):
    with pytest.raises(OptionError, match=f"^option kafka.sasl.jaas.config: .*{problem}"):
        translate({**BROKERS, "sasl.jaas.config": jaas})


def test_stores():
    pem = {**BROKERS, "ssl.truststore.location": "/ca", "ssl.truststore.type": "PEM"}
    assert translate(pem).truststore == Store("/ca", "PEM")
    keys = {**BROKERS, "ssl.keystore.location": "/k", "ssl.keystore.type": "pem"}
    assert translate(keys).settings["ssl.key.location"] == "/k"
    p12 = {**BROKERS, "ssl.keystore.location": "/k", "ssl.keystore.type": "PKCS12", "ssl.keystore.password": "p"}
    assert translate(p12).settings["ssl.keystore.password"] == "p"
    jks = translate({**BROKERS, "ssl.truststore.location": "/jks", "ssl.truststore.password": "p"})
    assert jks.truststore == Store("/jks", "JKS", "p")
    assert "'p'" not in repr(jks)
    own = translate({**BROKERS, "ssl.keystore.location": "/jks", "ssl.keystore.password": "p"})
    assert (own.keystore, "ssl.keystore.location" in own.settings) == (Store("/jks", "JKS", "p"), False)
    with pytest.raises(OptionError, match=r"^option kafka.ssl.keystore.type: must be JKS, PKCS12 or PEM, not BKS"):
        translate({**BROKERS, "ssl.keystore.location": "/bks", "ssl.keystore.type": "BKS"})
    with pytest.raises(OptionError, match=r"^option kafka.ssl.truststore.type: must be JKS, PKCS12 or PEM, not BKS"):
        translate({**BROKERS, "ssl.truststore.location": "/bks", "ssl.truststore.type": "bks"})


@pytest.mark.parametrize(("name", "value"), [("max.partition.fetch.bytes", "0"), ("security.protocol", "TLS")])
def test_a_value_that_librdkafka_refuses_is_named_as_the_user_wrote_it(name: str, value: str):
    config = translate({**BROKERS, name: value})
    with (
        pytest.raises(OptionError, match=f"^option kafka.{name}: "),
        connected(config, group_id_prefix="g"),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check.crcs", "1"),
        ("check.crcs", "no"),
        ("fetch.max.wait.ms", "0x10"),
        ("fetch.max.wait.ms", "1e3"),
        ("fetch.max.wait.ms", "soon"),
        ("isolation.level", "read committed"),
        ("bootstrap.servers", "broker:port"),
        ("bootstrap.servers", "broker:70000"),
        ("bootstrap.servers", "//broker:9092"),
    ],
)
def test_a_value_that_one_reader_would_take_otherwise_than_the_other_is_refused(name: str, value: str):
    with pytest.raises(OptionError, match=f"^option kafka.{name}: must be "):
        translate({**BROKERS, name: value})


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("isolation.level", "READ_COMMITTED", "read_committed"),
        ("check.crcs", "False", "false"),
        ("fetch.max.wait.ms", "0100", "100"),
        ("bootstrap.servers", "PLAINTEXT://a:1, b:2,SASL_SSL://[::1]:3", "a:1,b:2,[::1]:3"),
    ],
)
def test_what_librdkafka_takes_in_several_ways_both_readers_take_in_one(name: str, value: str, meant: str):
    settings = translate({**BROKERS, name: value}).settings
    assert meant in settings.values()
    with connected(translate({**BROKERS, name: value}), group_id_prefix="g"):
        config = connection_config(settings)
    assert config.bootstrap_servers == settings["bootstrap.servers"]
    assert config.read_committed == (meant == "read_committed")
    assert config.check_crcs == (meant != "false")
    assert config.max_wait_ms == (100 if meant == "100" else 1)


def test_each_setting_has_a_meaning_for_the_other_reader_or_keeps_it_from_reading():
    """What it honours is in its configuration, with the value that was given."""
    translated = set(NAMES.values())
    assert set(not_honoured(dict.fromkeys(translated, ""))) == {
        "client.dns.lookup",
        "client.rack",
        "sasl.kerberos.service.name",
    }
    java = {
        "bootstrap.servers": "a:1,b:2",
        "check.crcs": "false",
        "client.id": "me",
        "default.api.timeout.ms": "1",
        "fetch.max.bytes": "1100",
        "fetch.max.wait.ms": "1200",
        "fetch.min.bytes": "1300",
        "isolation.level": "read_committed",
        "max.partition.fetch.bytes": "1400",
        "request.timeout.ms": "1500",
        "retry.backoff.max.ms": "1600",
        "retry.backoff.ms": "1700",
        "sasl.jaas.config": 'x.ScramLoginModule required username="u" password="secret";',
        "sasl.mechanism": "scram-sha-256",
        "security.protocol": "sasl_ssl",
        "socket.connection.setup.timeout.ms": "1800",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.key.password": "secret",
        "ssl.keystore.certificate.chain": "certificate",
        "ssl.keystore.key": "secret",
        "ssl.truststore.certificates": "authority",
    }
    config = connection_config(translate(java).settings)
    assert config == ConnectionConfig(
        bootstrap_servers="a:1,b:2",
        client_id="me",
        security_protocol="SASL_SSL",
        sasl={"sasl_mechanism": "SCRAM-SHA-256", "sasl_plain_username": "u", "sasl_plain_password": "secret"},
        tls=Tls(
            ca_pem="authority",
            certificate_path=None,
            certificate_pem="certificate",
            key_path=None,
            key_pem="secret",
            key_password="secret",
            check_hostname=False,
        ),
        request_timeout_ms=1500,
        setup_timeout_ms=1800,
        retry_backoff_ms=1700,
        retry_backoff_max_ms=1600,
        unknown_for_ms=10_000,
        read_committed=True,
        check_crcs=False,
        max_wait_ms=1200,
        min_bytes=1300,
        max_bytes=1100,
        max_partition_bytes=1400,
    )
    assert "secret" not in repr(config)


def test_a_key_with_another_password_than_its_jks_store_is_refused_by_name():
    """It was dropped, and the store then seemed to hold no key."""
    java = {
        "bootstrap.servers": "a:1",
        "ssl.keystore.location": "/k.jks",
        "ssl.keystore.password": "of-the-store",
        "ssl.key.password": "of-the-key",
    }
    with pytest.raises(OptionError, match=r"^option kafka\.ssl\.key\.password: .*keytool -keypasswd") as refused:
        with_stores(translate(java))
    assert "of-the" not in str(refused.value)


OAUTH_LOGIN = 'OAuthBearerLoginModule required clientId="a" clientSecret="hush";'
PLAIN = 'PlainLoginModule required username="u" password="hush";'


@pytest.mark.parametrize(
    ("java", "problem"),
    [
        ({"sasl.mechanism": "OAUTHBEARER"}, r"kafka\.sasl\.jaas\.config: must be given with OAUTHBEARER"),
        ({"sasl.mechanism": "scram-sha-256"}, r"kafka\.sasl\.jaas\.config: must be given with SCRAM-SHA-256"),
        ({"sasl.mechanism": "OAUTHBEARER", "sasl.jaas.config": PLAIN}, "OAUTHBEARER does not go with PlainLoginModule"),
        ({"sasl.mechanism": "PLAIN", "sasl.jaas.config": OAUTH_LOGIN}, "PLAIN does not go with OAuthBearerLoginModule"),
    ],
)
def test_a_login_that_cannot_be_is_refused_by_name(java, problem):
    """librdkafka names settings that nobody gave, or waits for a token that nobody brings."""
    endpoint = {"sasl.oauthbearer.token.endpoint.url": "https://login"}
    with pytest.raises(OptionError, match=problem) as refused:
        translate({"bootstrap.servers": "a:1", "security.protocol": "SASL_SSL"} | endpoint | java)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    "java",
    [
        {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"},
        {"security.protocol": "SASL_PLAINTEXT"},
        {"sasl.mechanism": "OAUTHBEARER"},
        {"security.protocol": "SSL", "sasl.mechanism": "PLAIN"},
    ],
)
def test_a_login_that_takes_no_line_is_not_asked_for_one(java):
    """Kerberos has tickets, and without SASL nobody logs in."""
    translate({"bootstrap.servers": "a:1"} | java)
