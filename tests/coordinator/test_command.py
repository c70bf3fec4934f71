"""``loadwise coordinator`` as a program."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import confluent_kafka
import pytest
from command_line import invoke
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, NewTopic
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaConsumer
from topics import WAIT_S

from loadwise.cli.coordinator import set_on_signals
from loadwise.coordinator import BrokerSettings, ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.security.broker_configs import security_of
from loadwise.coordinator.settings import configured, described, has_effect


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_stops_cleanly(stop: signal.Signals) -> None:
    command = [sys.executable, "-m", "loadwise", "coordinator", "--listen", "127.0.0.1:0", "--topic", "flights:36"]
    with subprocess.Popen([*command, "--topic", "other:1"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            ready = re.fullmatch(r"loadwise coordinator ready at (127\.0\.0\.1:\d+)\n", process.stdout.readline())
            assert ready is not None
            with KafkaConsumer(bootstrap_servers=ready[1]) as client:
                assert client.partitions_for_topic("flights") == set(range(36))
                assert client.topics() == {"flights", "other"}
            host, port = ready[1].split(":")
            with socket.create_connection((host, int(port))) as still_connected:
                process.send_signal(stop)
                assert process.wait(WAIT_S) == 0
                assert still_connected.recv(1) == b""
            assert process.stdout.read() == ""
        finally:
            process.kill()


AUTHORIZER = ["--config", "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--listen", "nowhere"], "is not HOST:PORT"),
        (["--listen", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["--topic", "flights"], "is not NAME:PARTITIONS"),
        (["--topic", "flights:0"], "at least 1"),
        (["--brokers", "100000"], "100,000 brokers; a cluster has at most 1,000 here"),
        (
            ["--brokers", "20", "--listen", "127.0.0.1:65530"],
            "20 brokers from port 65530 on: ports range from 1 to 65535",
        ),
        (["--brokers", "2", "--advertise", "a:65535"], "2 brokers from port 65535 on: ports range from 1 to 65535"),
        (["--listen", "0.0.0.0:0"], "--allow-remote"),
        (["--listen", "0.0.0.0:0", "--allow-remote"], "--advertise"),
        (["--config", "num.partitions"], "is not NAME=VALUE"),
        (
            ["--config", "num.partition=3"],
            "loadwise coordinator: Kafka has no setting num.partition (did you mean 'num.partitions'?)",
        ),
        (
            ["--config", "log.cleanup.policy=x"],
            "loadwise coordinator: Invalid value x for configuration log.cleanup.pol",
        ),
        (["--config", "num.partitions=0"], "num.partitions is '0'; it takes a whole number from 1"),
        (["--config", "num.partitions=1_0"], "it takes a whole number"),
        (["--config", "auto.create.topics.enable=yes"], "it takes true or false"),
        (["--config", "group.consumer.assignors=uniform,best"], "assignors is 'best'"),
        (["--config", "group.consumer.migration.policy=up"], "it takes one of bidirectional, upgrade"),
        (["--config-file", "/nowhere/server.properties"], "/nowhere/server.properties"),
        (["--config", "security.protocol=SASL"], "there is no protocol 'SASL'"),
        (["--config", "security.protocol=SSL"], "needs the broker's key and certificates: ssl.keystore.location"),
        (["--config", "ssl.client.auth=required"], "ssl.keystore.location"),
        (["--config", "ssl.keystore.type=JKS"], "ssl.keystore.type is 'JKS'; it must be PEM"),
        (["--config", "sasl.jaas.config=PlainLoginModule required user_a=not-to-be-seen;"], "=SASL_PLAINTEXT"),
        (["--config", "super.users=User:a"], "super.users needs an authorizer: authorizer.class.name="),
        (["--config", "authorizer.class.name=Mine"], "it must be org.apache.kafka.metadata.authorizer.StandardAuth"),
        ([*AUTHORIZER, "--config", "super.users=a"], "write 'User:a'"),
        ([*AUTHORIZER, "--config", "allow.everyone.if.no.acl.found=1"], "it must be true or false"),
        (["--config", "plain.sasl.jaas.config=PlainLoginModule user_a=not-to-be-seen"], "must be: <login module>"),
    ],
)
def test_it_refuses_what_it_cannot_do(arguments: list[str], complaint: str) -> None:
    result = invoke(["coordinator", *arguments])
    assert result.exit_code in {1, 2}
    assert complaint in " ".join(result.stderr.split())
    assert "not-to-be-seen" not in result.output


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("# junk\nnot a setting\n", "line 2: Kafka has no setting not"),
        ("num.partitions=3\nnum.partition=3\n", "line 2: Kafka has no setting num.partition (did you mean 'num.partit"),
    ],
)
def test_a_config_file_is_refused_with_its_line(text: str, complaint: str, tmp_path: Path) -> None:
    file = tmp_path / "junk.properties"
    file.write_text(text)
    result = invoke(["coordinator", "--config-file", str(file)])
    assert result.exit_code == 2
    assert f"loadwise coordinator: {file}, {complaint}" in result.stderr


@pytest.mark.parametrize("option", ["--listen", "--http"])
def test_an_address_in_use_is_named(option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = invoke(["coordinator", option, address])
    assert result.exit_code == 1
    assert f"loadwise coordinator: cannot listen on {address}: address already in use; " in result.stderr


def test_it_tells_that_there_are_too_few_descriptors_for_its_brokers() -> None:
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); from loadwise.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "coordinator", "--brokers", "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cannot open a socket for broker" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_setting_is_given_by_the_name_that_kafka_has_for_it() -> None:
    """And an admin client reads it back."""
    wanted = {
        "auto.create.topics.enable": "false",
        "group.consumer.assignors": "weighted,range",
        "group.consumer.migration.policy": "disabled",
        "group.consumer.session.timeout.ms": "6000",
        "group.max.size": "3",
        "num.partitions": "5",
        "socket.request.max.bytes": "12345678",
    }
    command = [sys.executable, "-m", "loadwise", "coordinator"]
    for name, value in wanted.items():
        command += ["--config", f"{name}={value}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[-1]
            admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
            resource = ConfigResource(ConfigResource.Type.BROKER, "1")
            found = admin.describe_configs([resource])[resource].result(WAIT_S)
        finally:
            process.terminate()
    assert {name: found[name].value for name in wanted} == wanted


SERVER_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:0,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=24
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""
"""What Apache Kafka 4.3 is shipped with, but for the port, and the hours of retention (168)."""


def test_it_starts_with_the_file_that_kafka_is_shipped_with(tmp_path: Path) -> None:
    """One line names what has no effect, and clients find the rest."""
    file = tmp_path / "server.properties"
    file.write_text(SERVER_PROPERTIES)
    command = [sys.executable, "-m", "loadwise", "coordinator", "--config-file", str(file), "--topic", "t:1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            address = process.stdout.readline().split()[-1]
            admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
            topic = ConfigResource(ConfigResource.Type.TOPIC, "t")
            retention = admin.describe_configs([topic])[topic].result(WAIT_S)["retention.ms"].value
            broker = ConfigResource(ConfigResource.Type.BROKER, "1")
            described = admin.describe_configs([broker])[broker].result(WAIT_S)
        finally:
            process.terminate()
        (line,) = process.stderr.read().splitlines()
    assert retention == str(24 * 3_600_000)
    names = ("log.dirs", "log.retention.hours", "num.partitions", "num.recovery.threads.per.data.dir")
    assert [described[name].source for name in names] == [ConfigSource.STATIC_BROKER_CONFIG.value] * len(names)
    without_effect = line.partition(": ")[2].split(", ")
    assert {"log.dirs", "num.network.threads", "process.roles"} <= set(without_effect)
    assert not {"num.partitions", "log.retention.hours", "listeners"} & set(without_effect)


def test_mechanisms_have_no_effect_where_nobody_logs_in() -> None:
    """As on Kafka, whose images set them whatever the listener is."""
    given = {"sasl.enabled.mechanisms": "PLAIN", "listeners": "PLAINTEXT://:9092"}
    assert security_of(given) == (None, given)
    assert not has_effect("sasl.enabled.mechanisms")


def test_a_file_of_kafkas_settings_makes_it_ask_who_a_client_is(tmp_path: Path) -> None:
    """And nothing that it writes shows a password."""
    file = tmp_path / "server.properties"
    file.write_text(
        "# as a Kafka's own\nnum.partitions=3\nsecurity.protocol=SASL_PLAINTEXT\nsasl.enabled.mechanisms=PLAIN\n"
        "listener.name.external.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule "
        'required \\\n  user_alice="alices-not-to-be-seen" user_admin="admins-not-to-be-seen";\n'
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\nsuper.users=User:admin;User:b\n"
    )
    command = [sys.executable, "-m", "loadwise", "coordinator", "--config-file", str(file), "--log-format", "text"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().split()[-1]

            def topics(user: str, password: str) -> set[str]:
                login = {"sasl.username": user, "sasl.password": password, "sasl.mechanism": "PLAIN"}
                where = {"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "log_level": 0}
                return set(AdminClient({**where, **login}).list_topics(timeout=WAIT_S).topics)

            admin_login = {"sasl.username": "admin", "sasl.password": "admins-not-to-be-seen"}
            where = {"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
            admin = AdminClient({**where, **admin_login})
            admin.create_topics([NewTopic("t", -1)])["t"].result(WAIT_S)
            assert topics("admin", "admins-not-to-be-seen") == {"t"}
            assert topics("alice", "alices-not-to-be-seen") == set()  # there is no ACL for alice
        finally:
            process.terminate()
        assert "not-to-be-seen" not in process.stdout.read()


@given(
    partitions=st.integers(1, 2**31 - 1),
    timeout_ms=st.integers(1, 2**31 - 1),
    assignors=st.lists(st.sampled_from(["uniform", "range", "sticky", "weighted"]), min_size=1, unique=True),
    policy=st.sampled_from(MigrationPolicy),
    auto_create=st.booleans(),
)
def test_settings_that_are_shown_can_be_given_again(
    partitions: int, timeout_ms: int, assignors: list[str], policy: MigrationPolicy, auto_create: bool
) -> None:
    consumer_groups = ConsumerGroupLimits(
        session_timeout_ms=timeout_ms, assignors=tuple(assignors), migration_policy=policy
    )
    settings = BrokerSettings(
        auto_create_topics=auto_create, default_partitions=partitions, consumer_groups=consumer_groups
    )
    assert replace(configured(BrokerSettings(), described(settings)), configs={}) == settings


def test_it_imports_nothing_that_it_can_start_without() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "loadwise", "coordinator"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("loadwise coordinator ready at ")
        process.terminate()
        _, trace = process.communicate(timeout=60)
    imported = {line.rpartition("|")[2].strip() for line in trace.splitlines() if line.startswith("import time:")}
    assert "loadwise.protocol.kafka_messages" in imported
    heavy = {"numpy", "rich", "crc32c", "kafka"}
    assert not imported & heavy


def test_transitions_are_logged_as_lines_of_json() -> None:
    command = [sys.executable, "-m", "loadwise", "coordinator", "--topic", "t:1", "--log-format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        consumer = confluent_kafka.Consumer({"bootstrap.servers": address, "group.id": "g\nh"})
        given = threading.Event()
        consumer.subscribe(["t"], on_assign=lambda *_: given.set())
        while not given.is_set():
            consumer.poll(0.1)
        consumer.close()
        process.terminate()
        _, log = process.communicate(timeout=60)
    lines = [json.loads(line) for line in log.splitlines()]
    assert [(line["group_id"], line["before"], line["after"], line["generation"]) for line in lines] == [
        ("g\\nh", "Empty", "PreparingRebalance", 0),
        ("g\\nh", "PreparingRebalance", "CompletingRebalance", 1),
        ("g\\nh", "CompletingRebalance", "Stable", 1),
        ("g\\nh", "Stable", "PreparingRebalance", 1),
        ("g\\nh", "PreparingRebalance", "Empty", 2),
    ]
    assert {line["logger"] for line in lines} == {"loadwise.coordinator.groups"}
    assert all(datetime.fromisoformat(line["time"]).tzinfo for line in lines)


def test_its_options_are_listed_where_all_commands_are() -> None:
    shown = invoke(["--help"])
    assert "coordinator" in shown.stdout
    assert "--initial-rebalance-delay-ms" in invoke(["coordinator", "--help"]).stdout


async def test_it_ends_on_a_signal_where_the_loop_has_no_handlers_as_on_windows() -> None:
    class Loop:
        def add_signal_handler(self, number: int, callback: object) -> None:
            raise NotImplementedError

        def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
            asyncio.get_running_loop().call_soon_threadsafe(callback)

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        for number in before:
            stopping = asyncio.Event()
            set_on_signals(Loop(), stopping)  # type: ignore[arg-type]
            signal.raise_signal(number)
            await asyncio.wait_for(stopping.wait(), WAIT_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
