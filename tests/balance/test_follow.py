"""Batches that are executed on a running cluster: our coordinator, which completes a reassignment at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from command_line import invoke
from kafka import TopicPartition
from kafka.admin import ConfigResource
from kafka.errors import KafkaTimeoutError
from skewed_topics import described, make_skewed_topics

from loadwise.balance.errors import SurpriseError
from loadwise.balance.follow import Follower
from loadwise.balance.following import Step
from loadwise.coordinator import Coordinator, ThreadedCoordinator
from loadwise.running_group.admin import GroupAdmin

STEPS = [
    Step(replicas={("orders", 0): (3, 2)}, elected=(("orders", 0),)),
    Step(replicas={("orders", 1): (1, 3)}),
    Step(replicas={("orders", 2): (2, 1)}, elected=(("orders", 2),)),
]


@pytest.fixture
def brokers() -> Iterator[ThreadedCoordinator]:
    with Coordinator(brokers=3).in_thread() as running:
        make_skewed_topics(running.bootstrap_servers, "")
        yield running


def _follow(admin: GroupAdmin, shown: list[str], sleep: Callable[[float], None] = lambda _: None) -> None:
    Follower(admin, throttle_bytes_per_s=1e6, show=shown.append, sleep=sleep).run(STEPS)


def _throttles(admin: GroupAdmin) -> dict[str, str]:
    resources = [ConfigResource("TOPIC", "orders"), *(ConfigResource("BROKER", str(each)) for each in (1, 2, 3))]
    found = {}
    for by_name in admin.describe_configs(resources).values():
        for name, configs in by_name.items():
            throttled = {key: config["value"] for key, config in configs.items() if "replication.throttled" in key}
            found |= {f"{name} {key}": value for key, value in throttled.items() if value}
    return found


def test_batches_are_executed_one_after_the_other(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    shown: list[str] = []
    throttled = []
    _follow(admin, shown, sleep=lambda _: throttled.append(_throttles(admin)))
    now = described(brokers.bootstrap_servers, "")
    assert [now["orders", each] for each in range(3)] == [([3, 2], 3), ([1, 3], 1), ([2, 1], 2)]
    assert throttled[0] == {
        "orders leader.replication.throttled.replicas": "0:1,0:2",
        "orders follower.replication.throttled.replicas": "0:3",
        **{
            f"{each} {side}.replication.throttled.rate": "1000000"
            for each in (1, 2, 3)
            for side in ("leader", "follower")
        },
    }
    assert _throttles(admin) == {}
    assert [line for line in shown if line.endswith("complete")] == [
        f"batch {each} of 3: complete" for each in (1, 2, 3)
    ]
    again: list[str] = []
    _follow(admin, again)
    assert again == [f"batch {each} of 3: complete already" for each in (1, 2, 3)]


@pytest.mark.parametrize("end", [KeyboardInterrupt, KafkaTimeoutError])
def test_whatever_ends_a_batch_its_throttles_are_removed(end: type[BaseException], admin: GroupAdmin) -> None:
    def stop(_: float) -> None:
        raise end

    with pytest.raises(end):
        _follow(admin, [], sleep=stop)
    assert _throttles(admin) == {}
    shown: list[str] = []
    _follow(admin, shown)
    assert shown[-1] == "batch 3 of 3: complete"


def test_a_broker_that_stops_is_a_surprise(brokers: ThreadedCoordinator, admin: GroupAdmin) -> None:
    stopped = []

    def stop(_: float) -> None:
        if not stopped:
            stopped.append(brokers.stop_broker(3))

    shown: list[str] = []
    with pytest.raises(SurpriseError, match="broker 3 is no longer up; run --follow again when this is fixed"):
        _follow(admin, shown, sleep=stop)
    assert any(line.startswith("could not remove the throttle of broker 3 (") for line in shown)
    assert {name.split()[0] for name in _throttles_of_others(admin)} == set()


def _throttles_of_others(admin: GroupAdmin) -> dict[str, str]:
    resources = [ConfigResource("TOPIC", "orders"), ConfigResource("BROKER", "1"), ConfigResource("BROKER", "2")]
    return {
        f"{name} {key}": config["value"]
        for by_name in admin.describe_configs(resources).values()
        for name, configs in by_name.items()
        for key, config in configs.items()
        if "replication.throttled" in key and config["value"]
    }


def test_a_new_plan_is_followed_at_once(brokers: ThreadedCoordinator) -> None:
    asked = ["balance", "--bootstrap-servers", brokers.bootstrap_servers, "--interval", "0.1", "--follow"]
    told = invoke([*asked, "--throttle", "50MB"])
    assert told.exit_code == 0, told.output
    assert "batch 1 of " in told.stdout
    again = invoke(asked).stdout
    assert "Nothing to change." in again
    assert again.endswith("\nAll batches are complete.\n")


@pytest.mark.parametrize(
    ("flags", "culprit"),
    [
        (["--follow", "plan"], "--follow needs --bootstrap-servers"),
        (["--bootstrap-servers", "x:1", "--json", "--follow"], "--follow prints lines of progress; leave --json out"),
        (["--bootstrap-servers", "x:1", "--follow", "/nowhere"], "/nowhere has no batch-*.json; write a plan there"),
    ],
)
def test_wrong_flags_beside_follow(flags: list[str], culprit: str) -> None:
    result = invoke(["balance", *flags])
    assert (result.exit_code, result.stdout) == (2, "")
    assert culprit in result.stderr


def test_a_topic_that_was_deleted_is_a_surprise(admin: GroupAdmin) -> None:
    admin.delete_topics(["orders"])
    with pytest.raises(SurpriseError, match=r"partition orders-0 no longer exists; plan again"):
        _follow(admin, [])


def test_a_broker_that_lags_behind_the_controller_is_no_surprise(
    admin: GroupAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It describes orders-0 as it was before the reassignment for a while."""
    describe = admin.describe_topics
    before, lagging = describe(["orders"]), [3]

    def describe_late(topics: list[str]) -> object:
        now = describe(topics)
        if now != before and lagging[0]:
            lagging[0] -= 1
            return before
        return now

    monkeypatch.setattr(admin, "describe_topics", describe_late)
    shown: list[str] = []
    _follow(admin, shown)
    assert lagging == [0]
    assert shown[-1] == "batch 3 of 3: complete"


def test_a_reassignment_that_was_replaced_is_a_surprise(admin: GroupAdmin) -> None:
    def replace(_: float) -> None:
        admin.alter_partition_reassignments({TopicPartition("orders", 0): [2, 1]})

    with pytest.raises(SurpriseError, match="partition orders-0 ended with replicas 2, 1, but the plan says 3, 2"):
        _follow(admin, [], sleep=replace)
