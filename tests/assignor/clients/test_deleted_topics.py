"""Topics that are deleted while a group reads them: its members drop what they cannot commit, and rebalance as ever."""

import logging

import pytest
from confluent_kafka.admin import AdminClient
from topics import WAIT_S, fill, make_topic

QUICK = {
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 600_000,  # so the first commit is that in front of a rebalance
    "auto_offset_reset": "earliest",
    "metadata_max_age_ms": 300,
}


@pytest.mark.parametrize("assignor", ["weighted", "cooperative-weighted"])
@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
async def test_a_group_goes_on_without_a_topic_that_was_deleted(  # noqa: PLR0917 (fixtures)
    broker, group, topic_name, client, assignor, caplog, until
):
    """Brokers make such a topic again as soon as a consumer asks for it, with one partition."""
    kept, deleted = f"{topic_name}-kept", f"{topic_name}-deleted"
    group.settings["bootstrap_servers"] = broker
    for topic in (kept, deleted):
        make_topic(broker, topic, 2)
        fill(broker, topic, [10, 10])
    config = QUICK | {"assignor": assignor}
    first = await group.join(client, kept, deleted, **config)
    await group.settle(4)
    subscription = first.consumer._subscription
    if client == "aiokafka":
        for _ in range(40):
            await first.consumer.getone()
    else:
        await until(lambda: sum(at.offset for at in subscription.all_consumed_offsets().values()) == 40)
    with caplog.at_level(logging.WARNING, "loadwise.assignor.clients.deleted_topics"):
        admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})
        admin.delete_topics([deleted])[deleted].result(WAIT_S)
        second = await group.join(client, kept, deleted, **config)

        def shared():
            owned = [first.owned(), second.owned()]
            both = set().union(*owned)
            return (
                all(owned) and {(kept, 0), (kept, 1)} <= both and (deleted, 1) not in both and not owned[0] & owned[1]
            )

        await until(shared)
    told = [record.getMessage() for record in caplog.records if "partitions are gone" in record.getMessage()]
    assert len(told) == 1
    assert deleted in told[0]
    assert kept not in told[0]
