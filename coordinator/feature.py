"""The interface between a cluster and a feature, which has a folder of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, ClassVar, Self, TypeVar, cast
from uuid import UUID

from loadwise.coordinator.calls.call import Answer, Call
from loadwise.coordinator.calls.logins import Login
from loadwise.coordinator.calls.refusal_shapes import Refused
from loadwise.coordinator.cluster.log import PartitionLog
from loadwise.coordinator.configs.definitions import Definition
from loadwise.coordinator.configs.group_numbers import GroupNumber
from loadwise.coordinator.configs.setting import Setting
from loadwise.coordinator.groups.events import Token
from loadwise.coordinator.groups.kind import GroupKind
from loadwise.coordinator.keeper import Place, Snapshot
from loadwise.protocol.batches import BatchHeader
from loadwise.protocol.error_codes import ErrorCode


class Feature:
    """The state of a feature in one cluster. The cluster calls these hooks; here they do nothing."""

    flags: ClassVar[Mapping[str, tuple[int, int]]] = {}
    """The feature flags that ApiVersions lists, each with its oldest and its newest version."""

    refusals: ClassVar[Mapping[str, Refused]] = {}
    """How requests of its APIs are refused as a whole, by Kafka's names."""

    settings: ClassVar[Mapping[str, Setting]] = {}
    """Its settings by Kafka's names."""
    other_settings: ClassVar[Sequence[str]] = ()
    """The names of settings that are read before a cluster begins."""
    group_numbers: ClassVar[Sequence[GroupNumber]] = ()
    """The numbers that groups of its kind can have in place of the broker's."""
    group_configs: ClassVar[Sequence[Definition]] = ()
    """The other configs of groups of its kind."""

    group_kind: GroupKind | None = None
    """The kind of group that it adds."""

    def __init__(self, cluster: Any) -> None:
        """Begin without state in this `Cluster`."""

    @classmethod
    def kinds(cls) -> Mapping[str, type]:
        """Return the kinds of values that it keeps, by their names in a data directory."""
        return {}

    @classmethod
    def of(cls, cluster: Any) -> Self:
        """Return the feature of a `Cluster`."""
        features: Features = cluster.features
        return features.of(cls)

    def load(self, state: Snapshot) -> None:
        """Load its values from a state, once the rest of the cluster has loaded."""

    def values(self) -> Iterable[tuple[Place, object]]:
        """Return its values with their places."""
        return ()

    @property
    def next_deadline_ms(self) -> int | None:
        """Return when `expire` must be called next; None if nothing is due."""
        return None

    def expire(self, now_ms: int) -> None:
        """Complete everything that is due."""

    @property
    def has_unfinished(self) -> bool:
        """Return whether `go_on` has something to do."""
        return False

    def go_on(self) -> None:
        """Continue long work for a while, whatever the clock says."""

    def take_answers(self, now_ms: int) -> Iterable[Answer]:  # noqa: ARG002
        """Return the answers to calls whose outcome was `LATER`, as far as they are ready."""
        return ()

    def new_login(self, certificate: Mapping[str, Any] | None) -> Login | None:  # noqa: ARG002
        """Return the login of a new connection; None if clients need not log in. Raises `LoginRefusedError`."""
        return None

    def forget(self, token: Token) -> None:
        """Drop a call that waits for its answer."""

    def disconnected(self, connection_id: int) -> None:
        """Note that a connection was closed."""

    def log_changed(self, log: PartitionLog) -> None:
        """Note that a log grew, lost records, was deleted or has another leader."""

    def topics_deleted(self, topic_ids: Set[UUID]) -> None:
        """Note that topics were deleted: all of one turn at once."""

    def group_deleted(self, group_id: str) -> None:
        """Note that a group was deleted."""

    def produce_error(self, call: Call, topic: str, partition: int, header: BatchHeader) -> ErrorCode | None:  # noqa: ARG002
        """Return whether a producer may write to a partition in its transaction; None: another feature decides."""
        return None


F = TypeVar("F", bound=Feature)


class Features:
    """The features of one cluster. Hooks that are called often know which features have them."""

    def __init__(self, kinds: Iterable[type[Feature]], cluster: Any) -> None:
        self.kinds = tuple(kinds)
        self._all = {kind: kind(cluster) for kind in self.kinds}
        self.answering = self._with("take_answers")
        self.expiring = self._with("expire")
        self.working = self._with("go_on")
        self.watching_logs = self._with("log_changed")

    def __iter__(self) -> Iterator[Feature]:
        return iter(self._all.values())

    def of(self, kind: type[F]) -> F:
        """Return the feature of this class."""
        return cast("F", self._all[kind])

    def _with(self, hook: str) -> Sequence[Feature]:
        return [each for each in self if getattr(type(each), hook) is not getattr(Feature, hook)]
