"""What brokers tell of topics: our coordinator, and Apache Kafka in its tier."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from topics import WAIT_S, make_topic

from loadwise.running_group.admin import connected
from loadwise.running_group.reading import read_retention_ms


def test_the_retention_of_topics(broker: str, topic_name: str) -> None:
    """Records of a compacted topic are not deleted by age."""
    compacted = f"{topic_name}-compacted"
    for topic in (topic_name, compacted):
        make_topic(broker, topic, 1)
    changes = {topic_name: ("retention.ms", "90000"), compacted: ("cleanup.policy", "compact")}
    admin = AdminClient({"bootstrap.servers": broker})
    for topic, (name, value) in changes.items():
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(WAIT_S)
    with connected(broker, client_id="test") as asking:
        assert read_retention_ms(asking, [topic_name, compacted]) == {topic_name: 90_000}
        assert read_retention_ms(asking, []) == {}
