"""`KafkaContainer` in the place of testcontainers' class: the same calls, and clients that are elsewhere reach it."""

from __future__ import annotations

import importlib
import inspect
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import confluent_kafka
import dotenv
import kafka
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from own_log import own_log
from topics import WAIT_S

from loadwise.coordinator import (
    BadClusterError,
    BadSettingError,
    KafkaContainer,
    NotRunningError,
    RedpandaContainer,
    Security,
)


def _produce_and_read(address: str) -> bytes:
    with kafka.KafkaProducer(bootstrap_servers=address) as producer:
        producer.send("t", b"hello").get(timeout=60)
    with kafka.KafkaConsumer("t", bootstrap_servers=address, auto_offset_reset="earliest") as consumer:
        value: bytes = next(consumer).value
        return value


def _told_addresses(address: str) -> set[str]:
    metadata = AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(timeout=60)
    return {f"{broker.host}:{broker.port}" for broker in metadata.brokers.values()}


def test_a_suite_of_testcontainers_runs_with_another_import() -> None:
    with KafkaContainer("confluentinc/cp-kafka:7.6.0").with_kraft().with_cluster_id("mine") as container:
        server = container.get_bootstrap_server()
        assert server == f"{container.get_container_host_ip()}:{container.get_exposed_port(container.port)}"
        assert _produce_and_read(server) == b"hello"
        assert AdminClient({"bootstrap.servers": server, "log_level": 0}).list_topics(timeout=60).cluster_id == "mine"
        assert container.status == "running"
    with pytest.raises(NotRunningError):
        container.get_bootstrap_server()


def _theirs() -> tuple[type, type]:
    """testcontainers' classes, from the path that 4.15 brought or the one before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module = importlib.import_module("testcontainers.community.kafka")
        except ModuleNotFoundError:
            module = importlib.import_module("testcontainers.kafka")
    return module.KafkaContainer, module.RedpandaContainer


def _parameters(call: Callable[..., object]) -> list[str]:
    every = inspect.signature(call).parameters
    return [name for name in every if every[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]


OF_ITS_START = {"configure", "tc_start", "TC_START_SCRIPT", "MIN_KRAFT_TAG"}
"""What testcontainers' classes call themselves while they start."""


@pytest.mark.parametrize("ours", [KafkaContainer, RedpandaContainer], ids=lambda each: each.__name__)
def test_it_takes_what_testcontainers_class_takes(ours: type[KafkaContainer]) -> None:
    theirs = _theirs()[ours is RedpandaContainer]
    assert _parameters(theirs.__init__) == _parameters(ours.__init__)
    public = {name for name in dir(theirs) if not name.startswith("_")} - OF_ITS_START
    assert public - set(dir(ours)) == set()
    for name in public:
        if callable(getattr(theirs, name)) and getattr(ours, name) is not ours._needless:  # which takes everything
            assert _parameters(getattr(ours, name)) == _parameters(getattr(theirs, name)), name


def test_variables_are_the_brokers_settings() -> None:
    container = KafkaContainer().with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    with container.with_envs(KAFKA_LOG_FLUSH_INTERVAL_MESSAGES="1") as running:
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": running.get_bootstrap_server(), "group.id": "g", "allow.auto.create.topics": True}
        )
        topic = consumer.list_topics("none", timeout=60).topics["none"]
        consumer.close()
        assert topic.error.code() == confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_no_client_is_told_a_password() -> None:
    container = KafkaContainer().with_env("KAFKA_SSL_TRUSTSTORE_PASSWORD", "hush").with_advertised_host("127.0.0.1")
    container.with_env("KAFKA_LISTENER_NAME_MINE_SSL_TRUSTSTORE_PASSWORD", "hush")
    with container as running:
        admin = AdminClient({"bootstrap.servers": running.get_bootstrap_server(), "log_level": 0})
        (answer,) = admin.describe_configs([ConfigResource("broker", "1")]).values()
        found = answer.result(60)
    for name in ("ssl.truststore.password", "listener.name.mine.ssl.truststore.password"):
        assert (found[name].value, found[name].is_sensitive) == (None, True)
    assert not [
        each.name for row in found.values() for each in (row, *row.synonyms.values()) if "hush" in str(each.value)
    ]


def test_no_variable_is_passed_over_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    """By the rule of Kafka's images; they start with what no Kafka knows, and so does this."""
    container = KafkaContainer(env={"KAFKA_LOG_RETENTION_MS": "70000", "KAFKA_COMPRESSION_TYPE": "lz4"})
    container.with_envs(KAFKA_HEAP_OPTS="-Xmx1g", KAFKA_LOG_DIRS="/data", KAFKA_NUM_PARTITION="1", OTHER="1")
    with caplog.at_level("WARNING", logger="loadwise.coordinator"), container as running:
        admin = AdminClient({"bootstrap.servers": running.get_bootstrap_server(), "log_level": 0})
        admin.create_topics([NewTopic("t", 1)])["t"].result(WAIT_S)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "t")
        found = admin.describe_configs([resource])[resource].result(WAIT_S)
    assert (found["retention.ms"].value, found["compression.type"].value) == ("70000", "lz4")
    told = [record.getMessage() for record in own_log(caplog)]
    named = [variable for variable in container.env if any(variable in each for each in told)]
    assert sorted(named) == ["KAFKA_HEAP_OPTS", "KAFKA_LOG_DIRS", "KAFKA_NUM_PARTITION", "OTHER"]
    assert "no setting num.partition (did you mean 'KAFKA_NUM_PARTITIONS'?)" in caplog.text


def test_a_variable_that_no_broker_of_kafkas_would_start_with_is_refused_by_its_name() -> None:
    with pytest.raises(BadSettingError, match="KAFKA_LOG_RETENTION_MS"):
        KafkaContainer().with_env("KAFKA_LOG_RETENTION_MS", "soon").start()
    with pytest.raises(BadSettingError, match="KAFKA_NUM_PARTITIONS"):
        KafkaContainer().with_env("KAFKA_NUM_PARTITIONS", "0").start()
    twice = KafkaContainer(security=Security(users={"a": "b"})).with_env("KAFKA_SASL_ENABLED_MECHANISMS", "PLAIN")
    with pytest.raises(BadClusterError, match="KAFKA_SASL_ENABLED_MECHANISMS"):
        twice.start()


def test_variables_ask_clients_who_they_are() -> None:
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="a-secret";'
    container = KafkaContainer().with_envs(
        KAFKA_LISTENERS="OUTSIDE://0.0.0.0:9093,BROKER://0.0.0.0:9092",
        KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="OUTSIDE:SASL_PLAINTEXT,BROKER:PLAINTEXT",
        KAFKA_INTER_BROKER_LISTENER_NAME="BROKER",
        KAFKA_SASL_ENABLED_MECHANISMS="PLAIN",
        KAFKA_LISTENER_NAME_OUTSIDE_PLAIN_SASL_JAAS_CONFIG=jaas,
    )
    login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "alice"}
    with container as running:
        server = {"bootstrap.servers": running.get_bootstrap_server(), "log_level": 0}
        told = AdminClient({**server, **login, "sasl.password": "a-secret"}).list_topics(timeout=WAIT_S)
        assert len(told.brokers) == 1


def test_an_address_that_is_given_is_the_one_that_clients_are_told() -> None:
    # 127.0.0.2 is an address of this machine that nothing else gives out.
    with KafkaContainer().with_advertised_host("127.0.0.2") as container:
        server = container.get_bootstrap_server()
        assert server.startswith("127.0.0.2:")
        assert _told_addresses(server.replace("127.0.0.2", "127.0.0.1")) == {server}
        assert _produce_and_read(server) == b"hello"


def test_a_suite_for_redpanda_runs_with_another_import() -> None:
    with RedpandaContainer() as redpanda:
        server = redpanda.get_bootstrap_server()
        assert server == f"{redpanda.get_container_host_ip()}:{redpanda.get_exposed_port(redpanda.redpanda_port)}"
        assert _produce_and_read(server) == b"hello"
        with pytest.raises(BadClusterError, match=r"no schema registry.*mock://"):
            redpanda.get_schema_registry_address()


ENV_FILE = """# a broker
export KAFKA_NUM_PARTITIONS=4
KAFKA_LOG_RETENTION_MS = 5000 # five seconds

KAFKA_COMPRESSION_TYPE="lz4" # quoted
KAFKA_SUPER_USERS='User:me'
EMPTY=
"""


def test_a_file_of_variables_is_read_as_testcontainers_reads_it(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(ENV_FILE)
    assert KafkaContainer().with_env_file(path).env == dict(dotenv.dotenv_values(path))


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("KAFKA_NUM_PARTITIONS", "sets no variable: write KEY=value"),
        ("=1", "sets no variable"),
        ('A="1', "an unclosed quote"),
        ("A='1' 2", "an unclosed quote"),
        ("A=${B}", "refers to another variable: write its value"),
    ],
)
def test_a_line_that_is_no_variable_is_refused(line: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text(f"# first\n{line}\n")
    with pytest.raises(BadClusterError, match=f"line 2 of .*{text}"):
        KafkaContainer().with_env_file(path)


def test_what_docker_would_have_done_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", logger="loadwise.coordinator"):
        KafkaContainer(name="kafka", volumes=[], privileged=True).with_kwargs(mem_limit="1g").with_name("kafka")
    told = [record.getMessage().partition(" has no effect")[0] for record in own_log(caplog)]
    assert told == ["privileged", "mem_limit"]


@pytest.mark.parametrize(
    "call",
    [
        lambda each: each.with_copy_into_container(b"", "/etc/kafka/server.properties"),
        lambda each: each.copy_into_container(b"", "/etc/kafka/server.properties"),
        lambda each: each.create_file(b"", "/etc/kafka/server.properties"),
        lambda each: each.with_command("kafka-topics --list"),
        lambda each: each.with_volume_mapping("/here", "/etc/kafka"),
        lambda _: KafkaContainer(volumes=[("/here", "/etc/kafka", "ro")]),
        lambda each: each.copy_from_container("/var/log", "log"),
        lambda each: each.get_container_info(),
        lambda each: each.get_container_id(),
        lambda each: each.wait(),
        lambda _: KafkaContainer(transferables=[(b"", "/a")]),
    ],
)
def test_what_needs_a_container_is_refused_with_the_remedy(call: Callable[[KafkaContainer], object]) -> None:
    with pytest.raises(BadClusterError, match=r"there is no container here .*: (pass|use|call|its state)"):
        call(KafkaContainer())


def test_what_only_a_container_has_is_refused() -> None:
    with KafkaContainer() as container:
        with pytest.raises(BadClusterError, match="no container"):
            container.exec("kafka-topics --list")
        with pytest.raises(BadClusterError, match="9093"):
            container.get_exposed_port(1)
    with pytest.raises(BadClusterError, match="security="):
        KafkaContainer(security_protocol="SASL_PLAINTEXT")


@pytest.fixture
def neighbour() -> Iterator[tuple[str, list[str]]]:
    """A network namespace as a container has one: this machine's address in it, and what runs a command there."""
    ip = shutil.which("ip")
    if ip is None or os.geteuid() != 0:
        pytest.skip("a network of its own takes root and the command ip")
    name = f"lw{uuid4().hex[:6]}"
    ours, theirs = "10.231.77.1", "10.231.77.2"
    steps = [
        f"netns add {name}",
        f"link add {name}a type veth peer name {name}b",
        f"link set {name}b netns {name}",
        f"addr add {ours}/24 dev {name}a",
        f"link set {name}a up",
        f"-n {name} addr add {theirs}/24 dev {name}b",
        f"-n {name} link set {name}b up",
    ]
    try:
        for step in steps:
            done = subprocess.run([ip, *step.split()], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                pytest.skip(f"no network of its own can be made here: {done.stderr.strip()}")
        yield ours, [ip, "netns", "exec", name]
    finally:
        subprocess.run([ip, "link", "del", f"{name}a"], capture_output=True, check=False)
        subprocess.run([ip, "netns", "del", name], capture_output=True, check=False)


def test_a_client_in_another_network_reaches_it(neighbour: tuple[str, list[str]]) -> None:
    address, inside = neighbour
    program = """
import sys, kafka
with kafka.KafkaProducer(bootstrap_servers=sys.argv[1]) as producer:
    print(producer.send("t", b"from outside").get(timeout=60).offset)
"""
    with KafkaContainer().with_advertised_host(address) as container:
        server = container.get_bootstrap_server()
        command = [*inside, sys.executable, "-W", "ignore", "-c", program, server]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert (done.returncode, done.stdout.strip()) == (0, "0"), done.stderr
        with kafka.KafkaConsumer("t", bootstrap_servers=server, auto_offset_reset="earliest") as consumer:
            assert next(consumer).value == b"from outside"
