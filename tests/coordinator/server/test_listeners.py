"""Which listener of a Kafka's server.properties clients connect to."""

from __future__ import annotations

import pytest

from loadwise.coordinator import BadSettingError
from loadwise.coordinator.security.listeners import Listener, client_listener

MAP = "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"


def of(**settings: str) -> Listener | None:
    return client_listener({name.replace("_", "."): value for name, value in settings.items()})


def test_it_is_that_of_no_controller() -> None:
    found = of(
        listeners="CONTROLLER://:9093, PLAINTEXT://:9092",
        advertised_listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
        controller_listener_names="CONTROLLER",
        listener_security_protocol_map=MAP,
        inter_broker_listener_name="PLAINTEXT",
    )
    assert found == Listener("PLAINTEXT", "PLAINTEXT", "", 9092, ("localhost", 9092))


def test_it_is_not_that_of_brokers_among_themselves_where_there_is_another() -> None:
    found = of(
        listeners="BROKER://0.0.0.0:9092,OUTSIDE://0.0.0.0:9093,MORE://:9094",
        listener_security_protocol_map="BROKER:PLAINTEXT,OUTSIDE:SASL_SSL,MORE:PLAINTEXT",
        inter_broker_listener_name="BROKER",
    )
    assert found == Listener("OUTSIDE", "SASL_SSL", "0.0.0.0", 9093)


def test_without_a_map_a_listener_is_named_as_its_protocol() -> None:
    assert of(listeners="SASL_PLAINTEXT://[::1]:9092") == Listener("SASL_PLAINTEXT", "SASL_PLAINTEXT", "::1", 9092)
    assert of(listener_security_protocol_map=MAP) is None


def test_two_may_have_a_port_where_one_is_for_ipv4_and_one_for_ipv6() -> None:
    both = of(listeners="PLAINTEXT://127.0.0.1:9092,SSL://[::1]:9092")
    assert both == Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)
    assert (
        of(listeners="PLAINTEXT://[::1]:1,SSL://127.0.0.1:1,SASL_SSL://[::1]:2,SASL_PLAINTEXT://127.0.0.1:2")
        is not None
    )
    assert of(listeners="PLAINTEXT://:0,SSL://:0") is not None, "any free port"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"listeners": "localhost:9092"}, "'localhost:9092' is not a listener; write PLAINTEXT://127.0.0.1:9092"),
        ({"listeners": "PLAINTEXT://:99999"}, "is not a listener"),
        ({"listeners": "C://:9093", "controller_listener_names": "C"}, "it needs a listener for clients"),
        ({"listeners": "MINE://:1", "listener_security_protocol_map": MAP}, "has no protocol for the listener MINE"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "the name PLAINTEXT is used twice"),
        (
            {"listeners": "PLAINTEXT://:1", "advertised_listeners": "A://a:1,A://b:1"},
            "advertised.listeners: the name A",
        ),
        ({"listeners": "PLAINTEXT://127.0.0.1:1,PLAINTEXT://[::1]:1"}, "the name PLAINTEXT is used twice"),
        *(
            ({"listeners": each}, "the port 1 is used twice")
            for each in (  # as in Kafka's KafkaConfigTest.testIPv4AndIPv6SamePortListeners
                "PLAINTEXT://:1,SSL://:1",
                "PLAINTEXT://[::1]:1,SSL://[::1]:1",
                "PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:1",
                "SSL://[::1]:1,PLAINTEXT://127.0.0.1:1,SASL_SSL://:1",
                "PLAINTEXT://apache.org:1,SSL://[::1]:1",
                "PLAINTEXT://apache.org:1,SSL://127.0.0.1:1",
            )
        ),
        ({"listeners": "MINE://:1", "listener_security_protocol_map": "MINE"}, "a list of listener:protocol"),
    ],
)
def test_what_is_none_is_refused(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadSettingError, match=complaint):
        of(**settings)
