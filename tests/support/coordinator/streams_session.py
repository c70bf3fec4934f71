"""Asking a broker by hand for what streams groups need (KIP-1071); answers are reduced to what can be compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from consumer_session import ConsumerSession
from topics import WAIT_S

_Tasks = Mapping[str, Sequence[int]]
_TOPIC = 2
_KINDS = ("active", "standby", "warmup")


class StreamsSession(ConsumerSession):
    """One connection that speaks for members of a streams group; they have the ids that they choose.

    Topics have short names here, which are told apart from those of other tests by a prefix.
    """

    def __init__(self, bootstrap_servers: str) -> None:
        super().__init__(bootstrap_servers)
        self.address = bootstrap_servers
        self.first = 0  # epochs are compared as they are
        self.tasks: dict[str, tuple[dict[str, list[int]], ...]] = {}
        """What each member was given last: active, standby and warm-up tasks."""
        self.endpoint_epochs: dict[str, int] = {}
        self._configured = 0

    def subtopology(
        self,
        number: str,
        *sources: str,
        repartitioned: Mapping[str, int] | None = None,
        sinks: Sequence[str] = (),
        changelogs: Sequence[str] = (),
        together: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
        **changes: Any,
    ) -> Any:
        """One part of a topology.

        ``repartitioned`` are its sources that are made for it with so many partitions (0: as many as are needed);
        ``together`` are groups of sources and of those that must have the same partitions, by their places.
        """
        configs = [{"key": "cleanup.policy", "value": "compact"}, {"key": "segment.bytes", "value": "2000000"}]
        fields: dict[str, Any] = {
            "subtopology_id": number,
            "source_topics": [self.full(name) for name in sources],
            "source_topic_regex": [],
            "state_changelog_topics": [self.internal_topic(name, 0, configs) for name in changelogs],
            "repartition_sink_topics": [self.full(name) for name in sinks],
            "repartition_source_topics": [
                self.internal_topic(name, partitions) for name, partitions in (repartitioned or {}).items()
            ],
            "copartition_groups": [
                {"source_topics": sources, "repartition_source_topics": others} for sources, others in together
            ],
        }
        return {**fields | changes}

    def internal_topic(self, name: str, partitions: int, configs: Sequence[Any] = ()) -> Any:
        return {
            "name": self.full(name),
            "partitions": partitions,
            "replication_factor": 0,
            "topic_configs": list(configs),
        }

    def topology(self, *subtopologies: Any, epoch: int = 0) -> Any:
        return {"epoch": epoch, "subtopologies": list(subtopologies)}

    def enter(self, member: str, *subtopologies: Any, topology_epoch: int = 0, **changes: Any) -> Any:
        """A first heartbeat with a topology; each member is a process of its own, unless it is told otherwise."""
        fields: dict[str, Any] = {
            "rebalance_timeout_ms": 60_000,
            "topology": self.topology(*subtopologies, epoch=topology_epoch),
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
            "process_id": f"process-{member}",
        }
        return self.heartbeat(member, 0, **fields | changes)

    def heartbeat(
        self, member: str, epoch: int, owned: bool | Sequence[_Tasks] | None = None, **changes: Any
    ) -> tuple[Any, ...]:
        """A heartbeat: error, epoch, tasks, statuses, endpoints, and what it tells the client to do.

        ``owned`` are the tasks of each kind that the member has, True: those that it was given last.
        """
        if owned is True:
            owned = self.tasks.get(member, ({}, {}, {}))
        kinds = (
            dict.fromkeys(_KINDS)
            if owned is None or owned is False
            else dict(zip(_KINDS, (*owned, {}, {}, {}), strict=False))
        )
        fields: dict[str, Any] = {
            "version": 0,
            "group_id": self.group,
            "member_id": member,
            "member_epoch": epoch,
            "endpoint_information_epoch": self.endpoint_epochs.get(member, -1),
            "instance_id": None,
            "rack_id": None,
            "rebalance_timeout_ms": -1,
            "topology": None,
            **{f"{kind}_tasks": None if tasks is None else task_ids(tasks) for kind, tasks in kinds.items()},
            "process_id": None,
            "user_endpoint": None,
            "client_tags": None,
            "task_offsets": None,
            "task_end_offsets": None,
            "shutdown_application": False,
        }
        reply = self.ask("StreamsGroupHeartbeat", **fields | changes)
        given = [getattr(reply, f"{kind}_tasks") for kind in _KINDS]
        tasks = None if None in given else tuple(_by_subtopology(each) for each in given)
        if tasks is not None:
            self.tasks[member] = tasks
        if not reply.error_code:
            self.endpoint_epochs[member] = reply.endpoint_information_epoch
        told = (reply.heartbeat_interval_ms, reply.acceptable_recovery_lag, reply.task_offset_interval_ms)
        return (
            reply.error_code,
            reply.member_epoch,
            tasks if tasks is not None else given if any(each is not None for each in given) else None,
            None
            if reply.status is None
            else [(each.status_code, self.short(each.status_detail)) for each in reply.status],
            (reply.endpoint_information_epoch, self._endpoints(reply.partitions_by_user_endpoint)),
            (reply.member_id == member, *told),
        )

    def until(self, member: str, epoch: int, reached: Callable[[Any], bool], **changes: Any) -> Any:
        """Heartbeats until one is answered so; Kafka does some things when it comes to it."""
        deadline = time.monotonic() + WAIT_S
        while not reached(answer := self.heartbeat(member, epoch, **changes)):
            assert time.monotonic() < deadline, answer
            assert answer[0] == 0, answer
            epoch = answer[1]
        return answer

    def settle(self, epochs: dict[str, int]) -> dict[str, int]:
        """Let all members send heartbeats with what they have until nobody gets anything new; their epochs."""
        while True:
            before = (dict(epochs), dict(self.tasks))
            for member, epoch in epochs.items():
                answer = self.heartbeat(member, epoch, owned=True)
                assert answer[0] == 0, answer
                epochs[member] = answer[1]
            if before == (epochs, self.tasks):
                return epochs

    def short(self, text: str) -> str:
        """A text without the prefix of topics; its words are sorted, since Kafka names topics in any order."""
        return " ".join(sorted(text.replace(f"{self.topic}.", "").replace(",", " ").split()))

    def _endpoints(self, endpoints: Any) -> Any:
        if endpoints is None:
            return None
        return sorted(
            (
                (each.user_endpoint.host, each.user_endpoint.port),
                self._partitions(each.active_partitions),
                self._partitions(each.standby_partitions),
            )
            for each in endpoints
        )

    def _partitions(self, topics: Any) -> list[Any]:
        return sorted((self.short(each.topic), sorted(each.partitions)) for each in topics)

    def describe_as_streams_group(self, group_id: str | None = None) -> Any:
        answer = self.ask(
            "StreamsGroupDescribe",
            0,
            group_ids=[self.group if group_id is None else group_id],
            include_authorized_operations=False,
        )
        (group,) = answer.groups
        members = [
            (
                (each.member_id, each.member_epoch, each.instance_id, each.rack_id, each.client_id, each.client_host),
                (each.topology_epoch, each.process_id, each.is_classic),
                None if each.user_endpoint is None else (each.user_endpoint.host, each.user_endpoint.port),
                sorted((tag.key, tag.value) for tag in each.client_tags),
                (list(each.task_offsets), list(each.task_end_offsets)),
                [_by_subtopology(getattr(each.assignment, f"{kind}_tasks")) for kind in _KINDS],
                [_by_subtopology(getattr(each.target_assignment, f"{kind}_tasks")) for kind in _KINDS],
            )
            for each in group.members
        ]
        topology = None
        if group.topology is not None:
            parts = group.topology.subtopologies
            topology = group.topology.epoch, None if parts is None else [self._described(each) for each in parts]
        head = (group.error_code, group.group_state, group.group_epoch, group.assignment_epoch)
        return head, topology, sorted(members, key=str)

    def _described(self, part: Any) -> Any:
        made = [
            [
                (
                    self.short(each.name),
                    each.partitions,
                    each.replication_factor,
                    sorted((config.key, config.value) for config in each.topic_configs),
                )
                for each in topics
            ]
            for topics in (part.state_changelog_topics, part.repartition_source_topics)
        ]
        sources, sinks = (
            [self.short(name) for name in names] for names in (part.source_topics, part.repartition_sink_topics)
        )
        return part.subtopology_id, sources, sinks, made

    def made(self, name: str, *configs: str) -> Any:
        """What was made of a topic: an error, its partitions, and these configs of it."""
        (topic,) = self.ask("Metadata", 12, topics=[{"name": self.full(name)}], allow_auto_topic_creation=False).topics
        resource = {"resource_type": _TOPIC, "resource_name": self.full(name), "configuration_keys": list(configs)}
        (found,) = self.ask("DescribeConfigs", 4, resources=[resource], include_synonyms=False).results
        return topic.error_code, len(topic.partitions), sorted((each.name, each.value) for each in found.configs)

    def delete_topic(self, name: str) -> int:
        row = {"name": self.full(name)}
        return int(self.ask("DeleteTopics", 6, topics=[row], timeout_ms=60_000).responses[0].error_code)

    def configure(self, **configs: str | None) -> int:
        """Set configs of the group, named as Kafka's without ``streams.`` and with underscores; None takes one away.

        Kafka's groups learn of them a moment after its answer. A group whose heartbeats tell its configs gets one too.
        """
        self._configured += 1
        shown, other = str(5000 + self._configured), f"{self.group}-configured"
        wanted = {f"streams.{name.replace('_', '.')}": value for name, value in configs.items()}
        errors = self.alter_groups({self.group: wanted, other: {"streams.heartbeat.interval.ms": shown}})
        deadline = time.monotonic() + WAIT_S
        while (answer := self.enter("m", self.subtopology("0", "t"), group_id=other))[-1][1] != int(shown):
            assert time.monotonic() < deadline, answer
        return errors[self.group]

    def forget(self, *names: str) -> Any:
        """OffsetDelete of partition 0 of these topics."""
        topics = [{"name": self.full(name), "partitions": [{"partition_index": 0}]} for name in names]
        reply = self.ask("OffsetDelete", 0, group_id=self.group, topics=topics)
        return reply.error_code, [each.error_code for topic in reply.topics for each in topic.partitions]


def endpoint(host: str, port: int) -> Any:
    """Where a member's process answers interactive queries."""
    return {"host": host, "port": port}


def tags(**values: str) -> list[Any]:
    """What a member's process is told apart by, such as its zone."""
    return [{"key": key, "value": value} for key, value in values.items()]


def task_ids(tasks: _Tasks) -> list[Any]:
    """Tasks by subtopology, as heartbeats carry them."""
    return [{"subtopology_id": each, "partitions": list(numbers)} for each, numbers in tasks.items()]


def _by_subtopology(tasks: Any) -> dict[str, list[int]]:
    return {each.subtopology_id: sorted(each.partitions) for each in tasks or ()}
