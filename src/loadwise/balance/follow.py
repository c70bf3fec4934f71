"""Executes the batches of a plan on a running cluster, with kafka-python's admin client."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from loadwise.assignor.load.log_dirs import LogDirError, replica_sizes
from loadwise.balance.errors import SurpriseError, UnsettledError
from loadwise.balance.following import (
    GO_ON,
    Found,
    Seen,
    Step,
    Work,
    check_brokers,
    check_space,
    throttled_replicas,
    work_of,
)
from loadwise.balance.readings import Name, Sizes
from loadwise.counted import counted
from loadwise.running_group.admin import GroupAdmin

from kafka import TopicPartition  # isort: skip
from kafka.admin import AlterConfigOp, ConfigResource, ConfigResourceType  # isort: skip
from kafka.errors import KafkaError  # isort: skip

_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
_REPLICAS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_ALTERED = "OK"
_PREFERRED = 0
_POLL_S = 1.0
_LOOKS = 20
"""At what may be over in a moment: a broker that describes a topic may lag behind the controller."""
_ATTEMPTS = 5
"""Of what is undone at the end: a broker may have just stopped."""


class Follower:
    """Runs batches one after the other, and waits for each."""

    def __init__(
        self,
        admin: GroupAdmin,
        *,
        throttle_bytes_per_s: float | None,
        headroom_bytes: Mapping[int, float] | None = None,
        show: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``headroom_bytes`` are what disks of brokers may hold. ``show`` is called with each line of progress."""
        self._admin, self._throttle, self._show, self._sleep = admin, throttle_bytes_per_s, show, sleep
        self._headroom = headroom_bytes or {}

    def run(self, steps: Sequence[Step]) -> None:
        """Execute the batches; completed ones are skipped. Raises `SurpriseError`.

        Whatever ends it, reassignments that are under way are cancelled, and then the throttles are removed.
        """
        expected: frozenset[int] | None = None
        for number, step in enumerate(steps, start=1):
            title = f"batch {number} of {len(steps)}"
            seen, work = self._found(step, expected, is_started=False)
            expected = seen.brokers if expected is None else expected
            if work.is_done:
                self._remove_throttles(step, seen.brokers)  # those of a run that was killed
                self._show(f"{title}: complete already")
                continue
            if work.start and self._headroom:
                check_space(step, seen, work.start, self._sizes(seen), self._headroom)
            try:
                self._execute(title, step, seen, work)
            except BaseException:
                self._undo(step, expected)
                raise
            self._remove_throttles(step, expected)
            self._show(f"{title}: complete")

    def _execute(self, title: str, step: Step, seen: Seen, work: Work) -> None:
        started = (*work.start, *work.waiting)
        if started and self._throttle is not None:
            self._set_throttles(step, seen, [name for name in started if name in step.replicas])
        if work.start:
            self._show(f"{title}: starts {counted(len(work.start), 'reassignment')}")
            self._start(step, work.start)
        before = len(started) + 1
        while work.start or work.waiting:
            if work.waiting and len(work.waiting) < before:
                before = len(work.waiting)
                self._show(f"{title}: {len(started) - before} of {len(started)} partitions complete")
            self._sleep(_POLL_S)
            _, work = self._found(step, seen.brokers, is_started=True)
        if work.elect:
            self._show(f"{title}: elects {counted(len(work.elect), 'leader')}")
        while work.elect:
            self._elect(work.elect)
            self._sleep(_POLL_S)
            _, work = self._found(step, seen.brokers, is_started=True)

    def _found(self, step: Step, expected: frozenset[int] | None, *, is_started: bool) -> tuple[Seen, Work]:
        """What is found, and what is left; what may be over in a moment is looked at again."""
        looks = 1
        while True:
            seen = self._seen(step)
            check_brokers(expected or seen.brokers, seen)
            try:
                return seen, work_of(step, seen, is_started=is_started)
            except UnsettledError:
                if looks == _LOOKS:
                    raise
            looks += 1
            self._sleep(_POLL_S)

    def _seen(self, step: Step) -> Seen:
        with _explained():
            under_way = self._admin.list_partition_reassignments()
            brokers = self._admin.describe_cluster()["brokers"]
            topics = self._admin.describe_topics(sorted({topic for topic, _ in step.names}))
        return Seen(
            brokers=frozenset(each["broker_id"] for each in brokers if not each.get("is_fenced")),
            partitions={
                (topic["name"], each["partition_index"]): Found(
                    replicas=tuple(each["replica_nodes"]),
                    leader=each["leader_id"],
                    in_sync=frozenset(each["isr_nodes"]),
                    offline=frozenset(each.get("offline_replicas") or ()),
                )
                for topic in topics
                for each in topic["partitions"]
            },
            targets={
                (partition.topic, partition.partition): tuple(
                    broker for broker in state["replicas"] if broker not in state["removing_replicas"]
                )
                for partition, state in under_way.items()
            },
        )

    def _sizes(self, seen: Seen) -> Sizes:
        try:
            with _explained():
                return replica_sizes(self._admin.describe_all_log_dirs(sorted(seen.brokers)))
        except LogDirError as error:
            raise SurpriseError(f"{error}; {GO_ON}") from error

    def _start(self, step: Step, names: Iterable[Name]) -> None:
        with _explained():
            answers = self._admin.alter_partition_reassignments(
                {TopicPartition(*name): list(step.replicas[name]) for name in names}
            )
        for partition, refused in answers.items():
            if refused is not None:
                raise SurpriseError(
                    f"Kafka refuses to reassign partition {partition.topic}-{partition.partition}"
                    f" ({refused.__name__}); {GO_ON}"
                )

    def _elect(self, names: Iterable[Name]) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, number in names:
            by_topic.setdefault(topic, []).append(number)
        with _explained():
            self._admin.elect_leaders(_PREFERRED, by_topic)

    def _set_throttles(self, step: Step, seen: Seen, names: Iterable[Name]) -> None:
        replicas = throttled_replicas(step, seen, names)
        if replicas:
            rate = str(max(round(self._throttle or 0.0), 1))
            topics = {topic: dict(zip(_REPLICAS, lists, strict=True)) for topic, lists in replicas.items()}
            with _explained():
                self._alter(ConfigResourceType.TOPIC, topics)
                rates = {str(each): dict.fromkeys(_RATES, rate) for each in seen.brokers}
                self._alter(ConfigResourceType.BROKER, rates)

    def _remove_throttles(self, step: Step, brokers: Iterable[int]) -> None:
        """Remove those of topics first: without them the rates of brokers have no effect."""
        if self._throttle is None or not step.replicas:
            return
        topics = {topic: dict.fromkeys(_REPLICAS) for topic, _ in step.replicas}
        self._insist("remove the throttles of topics", lambda: self._alter(ConfigResourceType.TOPIC, topics))
        for broker in brokers:
            rates = {str(broker): dict.fromkeys(_RATES)}
            self._insist(
                f"remove the throttle of broker {broker}",
                lambda rates=rates: self._alter(ConfigResourceType.BROKER, rates),  # type: ignore[misc]
            )

    def _undo(self, step: Step, brokers: Iterable[int]) -> None:
        self._insist("cancel the reassignments", lambda: self._cancel(step))
        self._remove_throttles(step, brokers)

    def _cancel(self, step: Step) -> None:
        under_way = [
            partition
            for partition in self._admin.list_partition_reassignments()
            if (partition.topic, partition.partition) in step.replicas
        ]
        if under_way:
            self._admin.alter_partition_reassignments(dict.fromkeys(under_way))
            self._show(f"cancelled {counted(len(under_way), 'reassignment')}")

    def _insist(self, what: str, attempt: Callable[[], None]) -> None:
        """Try a few times; if it fails, say what is left to do, and go on with the rest."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                attempt()
                return
            except KafkaError as error:
                if not left:
                    self._show(f"could not {what} ({error}): run --follow again, or kafka-configs.sh and --cancel")
                else:
                    self._sleep(_POLL_S)

    def _alter(self, kind: ConfigResourceType, configs: Mapping[str, Mapping[str, str | None]]) -> None:
        """Set configs, or delete those that are None. Raises `KafkaError`."""
        resources = [
            ConfigResource(
                kind,
                name,
                {
                    key: (AlterConfigOp.DELETE if value is None else AlterConfigOp.SET, value)
                    for key, value in values.items()
                },
            )
            for name, values in configs.items()
        ]
        answers = self._admin.alter_configs(resources, raise_on_unknown=False, incremental=True)
        for kind_name, by_name in answers.items():
            for name, answer in by_name.items():
                if answer != _ALTERED:
                    raise KafkaError(f"the configs of {kind_name} {name} cannot be changed: {answer}")


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise SurpriseError(f"the cluster does not answer as expected: {error}; {GO_ON}") from error
