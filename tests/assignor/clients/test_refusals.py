"""What is refused, when, and in which words."""

import importlib.util
import re
import sys
from dataclasses import replace

import pytest
from confluent_kafka import KafkaException

import loadwise
from loadwise import FixedLoad, LiveSettings, Weighted, aiokafka_consumer, confluent_consumer, kafka_python_consumer
from loadwise.assignor.clients import versions
from loadwise.assignor.clients.aiokafka import consumer as aiokafka
from loadwise.assignor.clients.kafka_python import consumer as kafka_python
from loadwise.assignor.errors import BadGroupError, MissingClientError, UnknownAssignorError, UnsupportedByClientError
from loadwise.installation import pip_install


@pytest.mark.parametrize("name", ["cooperative-sticky", "cooperative-weighted"])
def test_aiokafka_s_own_consumer_cannot_be_cooperative(name):
    with pytest.raises(UnsupportedByClientError, match=f"cannot use '{name}'.*eager.*use aiokafka_consumer"):
        aiokafka.assignor(name)


@pytest.mark.parametrize("version", ["0.12.0", "0.15.0", "1.0"])
def test_an_aiokafka_that_was_never_tried_gets_what_needs_no_private_part(version, monkeypatch):
    monkeypatch.setattr(aiokafka, "TRIED", replace(aiokafka.TRIED, installed=version))
    for assignor in ("cooperative-weighted", ["cooperative-weighted", "range"]):
        with pytest.raises(UnsupportedByClientError, match=rf"aiokafka {version} was not tested.*0\.13\.0 to"):
            aiokafka.aiokafka_consumer("t", group_id="g", assignor=assignor)
    with pytest.raises(UnsupportedByClientError, match="give one eager assignor instead of a list"):
        aiokafka.aiokafka_consumer("t", group_id="g", assignor=["weighted", "range"])


@pytest.mark.parametrize("factory", [kafka_python.kafka_python_consumer, aiokafka.aiokafka_consumer])
def test_a_factory_refuses_what_it_cannot_use_before_it_connects(factory):
    with pytest.raises(UnknownAssignorError, match="no assignor is called 'best'"):
        factory("t", group_id="g", assignor="best")
    with pytest.raises(TypeError, match="partition_assignment_strategy is replaced by `assignor`"):
        factory("t", group_id="g", partition_assignment_strategy=[])
    with pytest.raises(TypeError, match=r"load is .*; it needs snapshot\(topics\), as FixedLoad has"):
        factory("t", group_id="g", load={"t": [1.0]})
    with pytest.raises(TypeError, match="load is None; it needs"):
        factory("t", group_id="g", load=lambda _: None)
    with pytest.raises(TypeError, match="group_id"):
        factory("t")
    with pytest.raises(TypeError, match="group_id is None; it must be the name of the group"):
        factory("t", group_id=None)
    with pytest.raises(ValueError, match="group_id is empty"):
        factory("t", group_id="")
    with pytest.raises(TypeError, match="capacity is '2'; it must be a number above 0"):
        factory("t", group_id="g", capacity="2")
    with pytest.raises(ValueError, match="capacity is nan"):
        factory("t", group_id="g", capacity=float("nan"))
    with pytest.raises(UnknownAssignorError, match="assignor is an empty list"):
        factory("t", group_id="g", assignor=[])
    with pytest.raises(TypeError, match="assignor is 5"):
        factory("t", group_id="g", assignor=5)
    with pytest.raises(TypeError, match="lag_interval_s is '5'"):
        factory("t", group_id="g", lag_interval_s="5")
    with pytest.raises(ValueError, match="lag_interval_s is 0"):
        factory("t", group_id="g", lag_interval_s=0)
    with pytest.raises(TypeError, match="session_timeout_ms is 'x'; it must be a number of milliseconds"):
        factory("t", group_id="g", session_timeout_ms="x")
    with pytest.raises(TypeError, match=r"\['t'\] is not a topic; pass topic names as separate arguments"):
        factory(["t"], group_id="g")
    with pytest.raises(TypeError, match=r"assignor is <class '.*Weighted'>; it must be the name"):
        factory("t", group_id="g", assignor=Weighted)
    with pytest.raises(TypeError, match="on_decision is 'log'; it must be a function"):
        factory("t", group_id="g", on_decision="log")
    with pytest.raises(TypeError, match="bootstrap_servers is 9092; it must be HOST:PORT, or a list"):
        factory("t", group_id="g", bootstrap_servers=9092)
    with pytest.raises(ValueError, match="bootstrap_servers has 'b:port'; it must be HOST:PORT"):
        factory("t", group_id="g", bootstrap_servers="a:9092,b:port")


def test_a_share_that_is_given_in_percent_is_refused():
    with pytest.raises(BadGroupError, match=r"healthy is 70; it must be a share from 0 to 1, such as 0\.7"):
        LiveSettings(healthy=70)


def test_a_group_id_under_a_misspelt_name_is_pointed_out():
    with pytest.raises(ValueError, match=r"^group.id is missing \(is it 'group.ip'\?\)"):
        confluent_consumer({"group.ip": "g"})


def test_a_misspelt_public_name_gets_the_nearest_one():
    with pytest.raises(AttributeError, match=r"'kafka_python_consumr' \(did you mean 'kafka_python_consumer'\?\)"):
        loadwise.kafka_python_consumr  # noqa: B018


def confluent(*_: str, group_id: str, **options: object) -> object:
    return confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": group_id, "log_level": 0}, **options)


FACTORIES = [kafka_python_consumer, aiokafka_consumer, confluent]


@pytest.mark.parametrize("factory", FACTORIES)
def test_an_unknown_name_is_refused_with_the_nearest_one(factory):
    with pytest.raises(TypeError, match=r"has no argument 'capcity' \(did you mean 'capacity'\?\)"):
        factory("t", group_id="g", capcity=2.0)
    with pytest.raises(UnknownAssignorError, match=r"called 'wieghted' \(did you mean 'weighted'\?\)"):
        factory("t", group_id="g", assignor="wieghted")


@pytest.mark.parametrize(
    ("name", "value", "nearest"),
    [
        ("auto_offset_reset", "erliest", "earliest"),
        ("isolation_level", "read_comitted", "read_committed"),
        ("security_protocol", "SASL-SSL", "SASL_SSL"),
    ],
)
@pytest.mark.parametrize("factory", FACTORIES)
def test_a_value_that_a_client_takes_for_another_is_refused_with_the_nearest_one(factory, name, value, nearest):
    if factory is confluent:
        name = name.replace("_", ".")
        with pytest.raises(ValueError, match=rf"(?i)^{name} is '{value}'.* \(did you mean '{nearest}'\?\)"):
            confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", name: value})
    else:
        with pytest.raises(ValueError, match=rf"^{name} is '{value}'.* \(did you mean '{nearest}'\?\)"):
            factory("t", group_id="g", **{name: value})


@pytest.mark.parametrize(
    ("name", "nearest"), [("auto.ofset.reset", "auto.offset.reset"), ("fetch.wait.ms", "fetch.wait.max.ms")]
)
def test_an_unknown_setting_of_librdkafka_is_refused_with_the_nearest_one(name, nearest):
    with pytest.raises(KafkaException, match=rf'property: "{name}" \(did you mean \'{nearest}\'\?\)'):
        confluent_consumer({"bootstrap.servers": "localhost:1", "group.id": "g", name: "1"})


def test_a_setting_of_librdkafka_as_an_argument_is_refused_with_its_place():
    with pytest.raises(TypeError, match=r"^config is 't'; it must be a dict .* such as \{'group.id': 'billing'\}"):
        confluent_consumer("t", group_id="g")
    with pytest.raises(TypeError, match=r"no argument 'group_id'; other settings are in a dict .*'group.id'"):
        confluent_consumer({"group.id": "g"}, group_id="g")


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize(
    "useless",
    [
        {"capacity": 2.0},
        {"live": True},
        {"live": LiveSettings()},
        {"load": FixedLoad(load={"t": [1.0]})},
        {"load": lambda lag: lag},
        {"on_decision": print},
    ],
)
def test_an_argument_that_the_assignor_does_not_use_is_refused(factory, useless):
    [name] = useless
    for assignor in ("range", "cooperative-sticky", ["range", "sticky"]):
        with pytest.raises(ValueError, match=f"{name} has no effect with assignor="):
            factory("t", group_id="g", assignor=assignor, **useless)


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("useless", [{"live": True}, {"live": LiveSettings(dry_run=True)}, {"on_decision": print}])
def test_an_argument_that_a_load_of_ones_own_makes_useless_is_refused(factory, useless):
    [name] = useless
    for load in (FixedLoad(load={"t": [1.0]}), lambda lag: lag):
        with pytest.raises(ValueError, match=f"{name} has no effect with load="):
            factory("t", group_id="g", load=load, **useless)


async def test_a_list_with_one_assignor_that_uses_the_load_takes_all_arguments():
    options = {"assignor": ["weighted", "range"], "capacity": 2.0, "live": LiveSettings(healthy=0.5)}
    first, second = aiokafka_consumer("t", group_id="g", **options), confluent(group_id="g", **options)
    for made in (first, second):
        assert (made.capacity, made.live) == (2.0, LiveSettings(healthy=0.5))
        assert made.load is made.assignor.participant.leader
        assert (made.assignor.name, made.explain(), made.rebalances.led) == ("weighted", None, 0)
    await first.stop()
    second.close()


def imported_again(folder: str) -> None:
    importlib.reload(importlib.import_module(f"loadwise.assignor.clients.{folder}.version"))


CLIENTS = [
    ("kafka_python", "kafka", "kafka-python"),
    ("aiokafka", "aiokafka", "aiokafka"),
    ("membership", "kafka", "confluent-kafka"),
    ("confluent_kafka", "confluent_kafka", "confluent-kafka"),
]


@pytest.mark.parametrize(("folder", "client", "extra"), CLIENTS)
def test_without_the_client_the_error_names_the_extra(folder, client, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, client, None)
    with pytest.raises(MissingClientError, match=f"is not installed.*{re.escape(pip_install(extra))}"):
        imported_again(folder)


@pytest.mark.parametrize(
    ("folder", "needed", "extra"),
    [
        ("kafka_python", "3.0.0", "kafka-python"),
        ("aiokafka", "0.13.0", "aiokafka"),
        ("membership", "3.0.12", "confluent-kafka"),
        ("confluent_kafka", "2.6.0", "confluent-kafka"),
    ],
)
def test_a_client_that_is_too_old_is_refused_with_both_versions(folder, needed, extra, monkeypatch):
    monkeypatch.setattr(versions, "version", lambda _: "0.12.0rc1")
    remedy = re.escape(pip_install(extra))
    with pytest.raises(MissingClientError, match=f"0.12.0rc1 is installed, but loadwise needs {needed}.*{remedy}"):
        imported_again(folder)
