"""What lists leave out for a client without the rights that Kafka's ``KafkaApis`` asks for."""

from __future__ import annotations

from transaction_exchanges import ID, writing
from wires import Wire, allow


def listed(wire: Wire) -> list[str]:
    answer = wire.ask("ListGroups", 4)
    return [each.group_id for each in answer.groups]


def transactions(wire: Wire) -> list[str]:
    return [each.transactional_id for each in wire.ask("ListTransactions", 0).transaction_states]


def topics_of_transaction(wire: Wire) -> list[str]:
    answer = wire.ask("DescribeTransactions", 0, transactional_ids=[ID])
    return [topic.topic for each in answer.transaction_states for topic in each.topics]


def test_groups() -> None:
    wire = Wire()
    for granted, seen in (
        ((), []),
        (("GROUP READ g",), ["g"]),
        (("GROUP DESCRIBE other",), []),
        (("CLUSTER DESCRIBE kafka-cluster",), ["g"]),
    ):
        allow(wire, *granted)
        assert listed(wire) == seen


def test_transactions_and_their_topics() -> None:
    wire = Wire()
    writing(wire)
    assert (transactions(wire), topics_of_transaction(wire)) == ([ID], ["t"])
    allow(wire)
    assert transactions(wire) == []
    allow(wire, f"TRANSACTIONAL_ID DESCRIBE {ID}")
    assert (transactions(wire), topics_of_transaction(wire)) == ([ID], [])
    allow(wire, f"TRANSACTIONAL_ID DESCRIBE {ID}", "TOPIC DESCRIBE t")
    assert topics_of_transaction(wire) == ["t"]
