"""A restarted leader asks the broker for its assignment at a moment when another member has just begun to join."""

import asyncio
from types import SimpleNamespace

import pytest
from own_log import own_log

from loadwise.assignor.clients.aiokafka import assignor as aiokafka_assignor
from loadwise.assignor.clients.aiokafka import internals as aiokafka_internals
from loadwise.assignor.clients.kafka_python import assignor as kafka_python_assignor
from loadwise.assignor.clients.kafka_python import internals as kafka_python_internals

PREPARING = "PreparingRebalance"
"""As Kafka describes such a group (``ClassicGroup.describe``): no strategy, no subscriptions, no assignments."""


def with_aiokafka():
    async def described():
        return 0, "g", PREPARING, "consumer", "", [("m", "c", "h", b"", b""), ("n", "c", "h", b"", b"")]

    coordinator = aiokafka_internals.AiokafkaCoordinator.__new__(aiokafka_internals.AiokafkaCoordinator)
    coordinator.plugs = [aiokafka_assignor("weighted")]
    coordinator.group_id, coordinator._group_instance_id, coordinator.member_id = "g", "i", "m"
    coordinator._cluster, coordinator._described = None, described
    asyncio.run(coordinator._resume())


def with_kafka_python():
    async def described():
        members = [
            SimpleNamespace(member_id=name, group_instance_id=name, member_metadata=b"", member_assignment=b"")
            for name in "mn"
        ]
        return SimpleNamespace(error_code=0, group_state=PREPARING, protocol_data="", members=members)

    coordinator = SimpleNamespace(_described=described, _cluster=None, group_id="g")
    asyncio.run(kafka_python_internals.KafkaPythonCoordinator._resume(coordinator, kafka_python_assignor("weighted")))


@pytest.mark.parametrize("resume", [with_aiokafka, with_kafka_python])
def test_a_group_that_is_about_to_rebalance_is_not_resumed(resume, caplog):
    resume()
    assert not own_log(caplog)
