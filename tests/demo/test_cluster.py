"""The demo's own coordinator."""

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from loadwise.demo.cluster import own_coordinator


async def test_it_keeps_records_however_old_they_are() -> None:
    """The flights left in 2013: a topic that keeps a week would lose them five minutes after they were published."""
    async with own_coordinator("flights", 3) as cluster:
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
        try:
            told = admin.describe_configs([ConfigResource("TOPIC", "flights", {"retention.ms": None})])
        finally:
            admin.close()
    assert told["topic"]["flights"]["retention.ms"]["value"] == "-1"
