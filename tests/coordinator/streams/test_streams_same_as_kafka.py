"""The same requests of streams groups (KIP-1071) to Apache Kafka and to ours: errors, epochs, tasks, topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from beside_kafka import Scenario, scenarios, sessions_agree
from doubled_requests import doubled
from share_session import ShareSession
from streams_session import StreamsSession, endpoint, tags, task_ids

from loadwise.coordinator import ThreadedCoordinator

pytestmark = pytest.mark.kafka


def has_tasks(answer: Any) -> bool:
    """Whether a heartbeat was answered with active tasks."""
    return bool(answer[2] and answer[2][0])


def tells(*codes: int) -> Callable[[Any], bool]:
    """Whether a heartbeat was answered with these statuses."""
    return lambda answer: [code for code, _ in answer[3]] == list(codes)


def what_is_advertised(broker: StreamsSession) -> Iterator[Any]:
    yield broker.advertised({88, 89}, "streams.version")


def what_a_first_heartbeat_needs(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    part = broker.subtopology("0", "t")
    yield broker.enter("", part), broker.enter("a", part, group_id="")
    yield [broker.enter("a", part, **{name: value}) for name in ("instance_id", "rack_id") for value in ("", " ")]
    yield broker.enter("a", part, instance_id="i"), broker.enter("a", part, rebalance_timeout_ms=-1)
    yield broker.enter("a", topology=None), broker.enter("a", part, topology=None)
    for kind in ("active", "standby", "warmup"):
        yield broker.enter("a", part, **{f"{kind}_tasks": task_ids({"0": [0]})})
        yield broker.enter("a", part, **{f"{kind}_tasks": None})
    yield broker.enter("a", part, task_offsets=[]), broker.enter("a", part, task_end_offsets=[])
    yield [broker.heartbeat("a", epoch) for epoch in (-3, -2, -1, 1)]
    yield [broker.heartbeat("a", epoch, instance_id="i") for epoch in (-2, -1, 1)]
    yield broker.heartbeat("", -1), broker.heartbeat("a", -1, group_id="")
    yield broker.describe_as_streams_group(), broker.listed()


def topologies_that_cannot_be(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    yield broker.enter("a", broker.subtopology("0", "t", source_topic_regex=["t.*"]))
    yield broker.enter("a", broker.subtopology("0", "t", source_topics=["__consumer_offsets"]))
    yield broker.enter("a", broker.subtopology("0", "t", source_topics=["__share_group_state"]))
    yield broker.enter("a", broker.subtopology("0", "t", source_topics=["no topic"]))
    yield broker.enter("a", broker.subtopology("0", "t", source_topics=["", "."]))
    yield broker.enter("a", broker.subtopology("0", "t", sinks=["no topic"]))
    yield broker.enter("a", broker.subtopology("0", "t", changelogs=["c" * 250]))
    yield broker.enter("a", broker.subtopology("0", "t", repartitioned={"/": 0}))
    made = broker.internal_topic("c", 3)
    yield broker.enter("a", broker.subtopology("0", "t", state_changelog_topics=[made]))
    yield broker.enter("a", broker.subtopology("0", "t"), broker.subtopology("0", "t"))
    yield broker.enter("a", broker.subtopology("0", "t"), topology_epoch=-1)
    yield broker.enter("a", broker.subtopology("0"))
    yield broker.enter("a", broker.subtopology("0", changelogs=["c"]))
    yield broker.enter("a", broker.subtopology("0", "t", repartitioned={"r": 0}))
    yield broker.enter("a", broker.subtopology("0", repartitioned={"r": 0}, sinks=["r"]))
    loop = broker.subtopology("0", repartitioned={"r": 0}, sinks=["s"])
    yield broker.enter("a", loop, broker.subtopology("1", repartitioned={"s": 0}, sinks=["r"]))
    yield broker.enter("a", broker.subtopology("0", "t", together=[([3], [])]))
    yield broker.enter("a", broker.subtopology("0", "t", together=[([], [])]))[:4]
    yield broker.enter("b")
    yield broker.describe_as_streams_group()


def sources_that_are_missing(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    part = broker.subtopology("0", "t", "later")
    yield broker.enter("a", part, broker.subtopology("1", "never", changelogs=["c"]))
    yield broker.describe_as_streams_group(), broker.listed()
    yield broker.heartbeat("a", 2), broker.heartbeat("a", 2, owned=[])
    yield broker.heartbeat("a", -1)
    broker.group += "-other"
    yield broker.enter("a", part)
    yield broker.enter("b", part)
    yield broker.heartbeat("a", 2)
    yield broker.describe_as_streams_group()
    broker.make("later", 4)
    answer = broker.until("a", 3, has_tasks)
    yield answer
    yield broker.describe_as_streams_group()
    yield broker.settle({"a": answer[1], "b": 3}), broker.tasks
    yield broker.describe_as_streams_group(), broker.listed()


def sources_that_change(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    broker.make("u", 1)
    part = broker.subtopology("0", "t", "u")
    yield broker.enter("a", part)
    broker.grow("t", 3)
    yield broker.until("a", 2, has_tasks)
    yield broker.describe_as_streams_group()
    broker.grow("u", 2)
    yield broker.until("a", 3, lambda answer: answer[1] == 4)
    yield broker.delete_topic("u")
    yield broker.until("a", 4, lambda answer: answer[3])
    yield broker.describe_as_streams_group()
    answer = broker.heartbeat("a", 4, owned=True)
    yield answer
    yield broker.describe_as_streams_group()


def internal_topics(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    broker.make("wide", 5)
    parts = [
        broker.subtopology("0", "t", sinks=["r", "fixed"], changelogs=["c"]),
        broker.subtopology("1", "wide", sinks=["s"]),
        broker.subtopology("2", repartitioned={"r": 0, "s": 0, "fixed": 4}),
    ]
    yield broker.enter("a", *parts)[:3]
    answer = broker.until("a", 2, has_tasks)
    yield answer
    yield broker.describe_as_streams_group()
    yield [broker.made(name, "cleanup.policy", "segment.bytes", "retention.ms") for name in ("c", "r", "s", "fixed")]
    yield broker.listed()
    yield broker.heartbeat("a", answer[1], owned=True)
    yield broker.delete_topic("c")
    answer = broker.until("a", answer[1], lambda answer: answer[3], owned=True)
    yield answer[:3], [code for code, _ in answer[3]]
    yield broker.until("a", answer[1], has_tasks, owned=True)[:4]
    yield broker.made("c", "cleanup.policy")


def internal_topics_that_are_together(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    broker.make("u", 2)
    first = broker.subtopology("0", "t", sinks=["r"])
    yield broker.enter("a", first, broker.subtopology("1", "u", repartitioned={"r": 0}, together=[([0], [0])]))
    yield broker.until("a", 2, has_tasks)
    yield broker.made("r", "cleanup.policy")
    broker.group += "-flexible"
    first = broker.subtopology("0", "t", sinks=["x", "y"])
    both = broker.subtopology("1", repartitioned={"x": 0, "y": 0}, together=[([], [0, 1])])
    yield broker.enter("a", first, both, broker.subtopology("2", "u", sinks=["x"]))[:3]
    yield broker.until("a", 2, has_tasks)
    yield [broker.made(name, "cleanup.policy") for name in "xy"]


def topics_of_wrong_sizes(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    broker.make("u", 2)
    yield broker.enter("a", broker.subtopology("0", "t", "u", together=[([0, 1], [])]))
    yield broker.describe_as_streams_group(), broker.listed()
    yield broker.heartbeat("a", 2)
    broker.grow("u", 3)
    yield broker.until("a", 2, has_tasks)
    broker.group += "-fixed"
    first = broker.subtopology("0", "t", sinks=["r"])
    yield broker.enter("a", first, broker.subtopology("1", "t", repartitioned={"r": 5}, together=[([0], [0])]))
    broker.group += "-two"
    second = broker.subtopology("1", repartitioned={"r": 5, "s": 4}, together=[([], [0, 1])])
    yield broker.enter("a", broker.subtopology("0", "t", sinks=["r", "s"]), second)
    broker.group += "-there"
    broker.make("c", 7)
    yield broker.enter("a", broker.subtopology("0", "t", changelogs=["c"]))
    yield broker.describe_as_streams_group()


def members_come_and_go(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 4)
    part = broker.subtopology("0", "t")
    yield broker.enter("a", part)
    yield broker.listed(), broker.describe_as_streams_group()
    yield broker.heartbeat("a", 2), broker.heartbeat("a", 2, owned=True)
    yield broker.enter("b", part)
    yield broker.listed(), broker.describe_as_streams_group()
    yield broker.heartbeat("b", 3, owned=True)
    yield broker.heartbeat("a", 2)
    yield broker.listed(), broker.describe_as_streams_group()
    yield broker.heartbeat("a", 2), broker.heartbeat("b", 3)
    yield broker.heartbeat("a", 2, owned=[{"0": [0, 1, 2, 3]}])
    yield broker.heartbeat("a", 2, owned=[{"0": [0, 1, 3]}])
    yield broker.heartbeat("b", 3)
    yield broker.heartbeat("a", 2, owned=True)
    yield broker.heartbeat("b", 3)
    yield broker.describe_as_streams_group()
    yield broker.enter("c", part)
    yield broker.settle({"a": 3, "b": 3, "c": 4}), broker.tasks
    yield broker.heartbeat("b", -1)
    yield broker.describe_as_streams_group()
    yield broker.heartbeat("c", 4), broker.heartbeat("b", 4), broker.heartbeat("b", -1)
    yield broker.settle({"a": 4, "c": 5}), broker.tasks
    yield broker.delete()
    yield broker.heartbeat("a", -1), broker.heartbeat("c", -1, shutdown_application=True)
    yield broker.listed(), broker.describe_as_streams_group()
    yield broker.enter("d", part)
    yield broker.heartbeat("d", -1), broker.delete(), broker.delete()
    yield broker.listed(), broker.describe_as_streams_group()


def threads_of_one_process(broker: StreamsSession) -> Iterator[Any]:
    """Members share the tasks evenly, two of one process and one of another."""
    broker.make("t", 6)
    parts = [broker.subtopology("0", "t", changelogs=["c"]), broker.subtopology("1", "t")]
    broker.enter("a", *parts, process_id="p")
    epoch = broker.until("a", 2, has_tasks)[1]
    epochs = {"a": epoch, "b": broker.enter("b", *parts, process_id="p")[1]}
    yield broker.settle(epochs), broker.tasks
    epochs["c"] = broker.enter("c", *parts, process_id="q")[1]
    yield broker.settle(epochs), broker.tasks
    yield broker.describe_as_streams_group()


def tasks_that_stand_by(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 4)
    parts = [broker.subtopology("0", "t", changelogs=["c"]), broker.subtopology("1", "t")]
    yield broker.configure(num_standby_replicas="1"), broker.configure(num_standby_replicas="3")
    broker.enter("a", *parts)
    answer = broker.until("a", 2, has_tasks)
    yield answer
    epochs = {"a": answer[1]}
    epochs["b"] = broker.enter("b", *parts)[1]
    yield broker.describe_as_streams_group()
    yield broker.settle(epochs), broker.tasks
    yield broker.describe_as_streams_group()
    yield broker.configure(num_standby_replicas="0")
    answer = broker.until("a", epochs["a"], lambda answer: answer[2], owned=True)
    yield answer
    epochs["a"] = answer[1]
    yield broker.settle(epochs), broker.tasks
    yield broker.configure(num_standby_replicas=None), broker.settle(epochs)
    yield broker.configure(num_standby_replicas="1")
    epochs["a"] = broker.until("a", epochs["a"], lambda answer: answer[1] > epochs["a"], owned=True)[1]
    broker.settle(epochs)
    yield broker.heartbeat("a", -1)
    yield broker.settle({"b": epochs["b"]}), broker.tasks["b"]


def topologies_that_differ(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    broker.make("u", 2)
    part = broker.subtopology("0", "t")
    yield broker.enter("a", part, topology_epoch=3)
    yield broker.enter("b", broker.subtopology("0", "u"), topology_epoch=3)
    yield broker.enter("b", part, topology_epoch=4)
    yield broker.describe_as_streams_group()
    yield broker.enter("b", broker.subtopology("0", "u"), topology_epoch=2)
    yield broker.heartbeat("b", 3)
    yield broker.settle({"a": 2, "b": 3}), broker.tasks
    yield broker.heartbeat("b", 3)
    yield broker.describe_as_streams_group()
    yield broker.enter("b", part, topology_epoch=3)
    yield broker.heartbeat("b", 4, topology=broker.topology(part, epoch=3))
    yield broker.enter("a", part, topology_epoch=2)
    yield broker.describe_as_streams_group()


def parts_in_another_order(broker: StreamsSession) -> Iterator[Any]:
    """Kafka compares a topology by the places of its topics, but not by those of its parts."""
    broker.make("t", 2)
    broker.make("u", 2)
    parts = [broker.subtopology("0", "t", "u"), broker.subtopology("1", "u")]
    yield broker.enter("a", *parts)[:4]
    yield broker.enter("a", *reversed(parts))
    yield broker.enter("a", broker.subtopology("0", "u", "t"), parts[1])


def an_application_that_shuts_down(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    part = broker.subtopology("0", "t")
    broker.enter("a", part)
    yield broker.heartbeat("a", 2, shutdown_application=True)
    yield broker.enter("b", part), broker.heartbeat("a", 2)
    yield broker.heartbeat("b", 3, shutdown_application=True)
    yield broker.heartbeat("a", -1), broker.heartbeat("b", 3)
    yield broker.heartbeat("b", -1)
    yield broker.enter("a", part)
    yield broker.enter("b", part)
    yield broker.heartbeat("b", -1, shutdown_application=True)
    yield broker.heartbeat("a", 8), broker.heartbeat("a", 6)


def fencing(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 4)
    part = broker.subtopology("0", "t")
    broker.enter("a", part)
    yield broker.heartbeat("a", 3), broker.heartbeat("a", 1), broker.heartbeat("b", 2)
    yield broker.heartbeat("a", 1, owned=True), broker.heartbeat("a", 1, owned=[])
    yield broker.heartbeat("a", 2, owned=[{"1": [0]}]), broker.heartbeat("a", 2, owned=[{"0": [4]}])
    yield broker.heartbeat("a", 2, owned=[{"0": [-1]}]), broker.heartbeat("a", 2, owned=[{}, {"0": [4]}])
    yield broker.heartbeat("a", 2, owned=[{}, {}, {"0": [0]}])
    yield broker.heartbeat("a", 2, active_tasks=[]), broker.heartbeat("a", 2, active_tasks=[], standby_tasks=[])
    yield broker.heartbeat("a", 2, topology=broker.topology(part))
    broker.enter("b", part)
    broker.settle({"a": 2, "b": 3})
    yield broker.heartbeat("a", 2), broker.heartbeat("a", 2, owned=True)
    yield broker.heartbeat("a", 2, owned=[{"0": [0]}]), broker.heartbeat("a", 2, owned=[{"0": [0, 1, 2]}])
    yield broker.heartbeat("a", 1, owned=True)
    yield broker.enter("a", part)
    yield broker.describe_as_streams_group()
    yield broker.enter("a", part, rack_id="r")
    yield broker.settle({"a": 4, "b": 3}), broker.tasks
    yield broker.describe_as_streams_group()


def what_members_tell_of_themselves(broker: StreamsSession) -> Iterator[Any]:
    """What changes makes a new epoch of the group."""
    broker.make("t", 2)
    part = broker.subtopology("0", "t")
    yield broker.enter("a", part, rack_id="r", client_tags=tags(zone="z"), user_endpoint=endpoint("h", 65535))
    yield broker.describe_as_streams_group()
    yield broker.heartbeat("a", 2, rack_id="r", client_tags=tags(zone="z"), rebalance_timeout_ms=60_000)
    yield broker.heartbeat("a", 2, rack_id="q")
    yield broker.heartbeat("a", 3, client_tags=tags(zone="z", cluster="c"))
    yield broker.heartbeat("a", 4, client_tags=[])
    yield broker.heartbeat("a", 5, process_id="other")
    yield broker.heartbeat("a", 6, rebalance_timeout_ms=1)
    yield broker.heartbeat("a", 7, user_endpoint=endpoint("h", 0))
    yield broker.heartbeat("a", 8, rack_id="")
    yield broker.describe_as_streams_group()


def endpoints(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 3)
    broker.make("u", 2)
    parts = [broker.subtopology("0", "t", "u", changelogs=["c"]), broker.subtopology("1", "t")]
    broker.configure(num_standby_replicas="1")
    yield broker.enter("a", *parts, user_endpoint=endpoint("first", 1))[4]
    answer = broker.until("a", 2, has_tasks)
    yield answer, broker.heartbeat("a", answer[1])
    epochs = {"a": answer[1]}
    answer = broker.enter("b", *parts, user_endpoint=endpoint("second", 2))
    yield answer
    epochs["b"] = answer[1]
    yield broker.settle(epochs), broker.tasks
    yield [broker.heartbeat(member, epoch)[4] for member, epoch in epochs.items()]
    yield broker.heartbeat("a", epochs["a"], endpoint_information_epoch=0)[4]
    yield broker.enter("c", *parts)
    yield broker.heartbeat("a", -1)
    yield broker.heartbeat("c", 5, endpoint_information_epoch=0)[:2]


def groups_of_other_kinds(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    part = broker.subtopology("0", "t")
    broker.enter("a", part)
    yield broker.join(), broker.join(protocol_type="streams")
    yield broker.sync("x"), broker.beat("x"), broker.leave(("x", None)), broker.beat("a", 2), broker.leave(("a", None))
    yield broker.describe(), broker.describe_as_consumer_group()[0][0], broker.join_as("b", "t")[:2]
    with closing(ShareSession(broker.address)) as other:
        other.group = broker.group
        yield other.beat_as("b", 0, broker.full("t"))[:2], other.describe_as_share_group()[0]
        broker.heartbeat("a", -1)
        yield broker.describe()
        yield other.beat_as("b", 0, broker.full("t"))[:2], broker.join_as("b", "t")[:2]
    yield broker.listed()
    yield broker.join()[:2]  # it is a classic group now; Kafka may list it as what it was for a moment
    yield broker.enter("a", part)[:2], broker.heartbeat("a", 1), broker.heartbeat("a", -1)
    yield broker.describe_as_streams_group()
    yield broker.leave((0, None)), broker.listed()
    yield broker.enter("a", part), broker.listed()


def groups_that_are_of_another_kind(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    part = broker.subtopology("0", "t")
    broker.join_as("a", "t")
    yield broker.enter("b", part), broker.heartbeat("a", 1), broker.heartbeat("a", -1)
    yield broker.describe_as_streams_group()
    broker.beat_as("a", -1)
    yield broker.enter("b", part), broker.listed(), broker.delete()
    yield broker.enter("b", part), broker.listed()
    broker.group += "-share"
    with closing(ShareSession(broker.address)) as other:
        other.group = broker.group
        other.beat_as("b", 0, broker.full("t"))
    yield broker.enter("b", part), broker.heartbeat("a", 1), broker.describe_as_streams_group()
    broker.group += "-offsets"
    yield broker.commit_as("", -1, 0), broker.listed()
    yield broker.enter("b", part), broker.listed(), broker.fetch_as(None, -1)


def committing(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 4)
    broker.make("none", 1)
    part = broker.subtopology("0", "t")
    broker.enter("a", part)
    yield broker.commit_as("a", 2, 0, 1, 2, 3), broker.commit_as("a", 1, 0), broker.commit_as("a", 3, 0)
    yield broker.commit_as("b", 2, 0), broker.commit_as("", -1, 0), broker.commit_as("", 2, 0)
    yield broker.commit_as("a", 2, 0, version=8), broker.commit_as("a", -1, 0)
    yield broker.commit_as("a", 2, 0, name="none")
    broker.enter("b", part)
    yield broker.heartbeat("a", 2)
    yield broker.commit_as("a", 2, 0, 1, 2, 3), broker.commit_as("b", 3, 0, 1, 2, 3)
    yield broker.settle({"a": 2, "b": 3})
    yield broker.commit_as("a", 3, 0, 1, 2, 3), broker.commit_as("a", 2, 0, 1, 2, 3), broker.commit_as("a", 1, 0)
    yield broker.commit_as("b", 3, 0, 1, 2, 3), broker.commit_as("b", 2, 0, 2)
    yield broker.commit_as("a", 2, 0, name="none"), broker.commit_as("a", 3, 0, name="none")
    yield broker.fetch_as(None, -1), broker.fetch_as("a", 3), broker.fetch_as("a", 2), broker.fetch_as("c", 3)
    yield broker.fetch_as("", -1), broker.fetch_as("a", -1)
    yield broker.forget("t", "none"), broker.delete()
    broker.heartbeat("a", -1)
    broker.heartbeat("b", -1)
    yield broker.commit_as("", -1, 0), broker.commit_as("a", 3, 0), broker.commit_as("", -1, 0, version=8)
    yield broker.fetch_as(None, -1), broker.fetch_as("a", 3)
    yield broker.forget("t"), broker.fetch_as(None, -1), broker.delete(), broker.fetch_as(None, -1)
    yield broker.commit_as("a", 3, 0)


def states_that_are_listed(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    broker.enter("a", broker.subtopology("0", "missing"))
    states = ["NotReady", "notready", "not_ready", "Not_Ready", "stable", "Stable", "Empty", "Assigning", "Reconciling"]
    yield [broker.listed(states=[state]) for state in states]
    yield [broker.listed(kind) for kind in ("streams", "Streams", "STREAMS", "consumer", "share")]
    broker.heartbeat("a", -1)
    yield [broker.listed("streams", states=[state]) for state in states]
    yield broker.describe_as_streams_group("none"), broker.describe_as_streams_group("")


def a_group_that_waits_for_members(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 4)
    part = broker.subtopology("0", "t")
    # Both come before the delay is over, however slow the machine is.
    yield broker.configure(initial_rebalance_delay_ms="5000", heartbeat_interval_ms="700")
    yield broker.enter("a", part)
    yield broker.enter("b", part)
    answer = broker.until("a", 1, tells())
    yield answer[0], answer[1], answer[3]
    epochs = broker.settle({"a": answer[1], "b": broker.heartbeat("b", 1)[1]})
    yield epochs, sorted(len(active["0"]) for active, *_ in broker.tasks.values())


def members_that_do_not_give_up_tasks(broker: StreamsSession) -> Iterator[Any]:
    broker.make("t", 2)
    part = broker.subtopology("0", "t")
    broker.enter("a", part, rebalance_timeout_ms=300)
    broker.enter("b", part)
    yield broker.heartbeat("a", 2)
    yield broker.until("b", 3, lambda answer: answer[2] and len(answer[2][0].get("0", ())) == 2)
    yield broker.heartbeat("a", 2), broker.describe_as_streams_group()


def elements_twice(broker: StreamsSession) -> Iterator[Any]:
    """One element of each array doubled. Java fails where it makes a map of it, and takes it otherwise."""
    broker.make("t", 2)
    broker.make("r", 2)
    first = broker.subtopology("0", "t", changelogs=["c"], sinks=["r"])
    second = broker.subtopology("1", "r", repartitioned={"p": 2}, together=[([0], [0])])
    second["repartition_source_topics"][0]["topic_configs"] = [{"key": "retention.ms", "value": "-1"}]
    whole = {"topology": broker.topology(first, second), "client_tags": [{"key": "k", "value": "v"}]}
    group = broker.group
    for number, (place, fields) in enumerate(doubled(whole)):
        broker.group = f"{group}-{number}"
        error, epoch, *_ = broker.enter("a", **fields)
        yield place, error, epoch
    broker.group = group
    yield broker.enter("a", **whole)[:2]
    for number, (place, fields) in enumerate(doubled(whole)):
        error, *_ = broker.enter(f"a{number}", **fields)
        yield place, error


@scenarios(
    elements_twice,
    what_is_advertised,
    what_a_first_heartbeat_needs,
    topologies_that_cannot_be,
    sources_that_are_missing,
    sources_that_change,
    internal_topics,
    internal_topics_that_are_together,
    topics_of_wrong_sizes,
    members_come_and_go,
    threads_of_one_process,
    tasks_that_stand_by,
    topologies_that_differ,
    parts_in_another_order,
    an_application_that_shuts_down,
    fencing,
    what_members_tell_of_themselves,
    endpoints,
    groups_of_other_kinds,
    groups_that_are_of_another_kind,
    committing,
    states_that_are_listed,
    a_group_that_waits_for_members,
    members_that_do_not_give_up_tasks,
)
def test_ours_answers_as_kafka_does(apache_kafka: str, coordinator: ThreadedCoordinator, scenario: Scenario) -> None:
    sessions_agree(scenario, StreamsSession, apache_kafka, coordinator.bootstrap_servers)
