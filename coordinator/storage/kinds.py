"""The values that a data directory has, as JSON: which kinds there are, and how each is written and read.

The names of the kinds and of their fields are the format. A change that an older reader would not understand needs
another `FORMAT`; a new kind, or a new field with a default, does not, as long as the older reader may pass it over.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints
from uuid import UUID

from loadwise.coordinator.cluster.records import CoordinatorsRecord, PartitionRecord, ProducerIdsRecord, TopicRecord
from loadwise.coordinator.configs.resources import ConfigsRecord
from loadwise.coordinator.errors import MissingLibraryError
from loadwise.coordinator.features import features
from loadwise.coordinator.groups.consumer_records import (
    GroupEpoch,
    MemberAssignment,
    MemberSubscription,
    MemberTarget,
    ResolvedRegex,
    TargetEpoch,
)
from loadwise.coordinator.groups.records import GroupRecord, OffsetRecord, PendingOffsetRecord
from loadwise.coordinator.keeper import Place
from loadwise.installation import pip_install

FORMAT = 1
"""The version of the format. A directory of a newer one is refused."""

KINDS: dict[str, type] = {
    "coordinators": CoordinatorsRecord,
    "producer ids": ProducerIdsRecord,
    "topic": TopicRecord,
    "partition": PartitionRecord,
    "configs": ConfigsRecord,
    "group": GroupRecord,
    "offset": OffsetRecord,
    "pending offset": PendingOffsetRecord,
    "consumer group": GroupEpoch,
    "member": MemberSubscription,
    "target epoch": TargetEpoch,
    "target": MemberTarget,
    "current": MemberAssignment,
    "regex": ResolvedRegex,
}
"""Each kind of value by its name in the directory."""
for _feature in features():
    KINDS |= _feature.kinds()

_NAMES = {kind: name for name, kind in KINDS.items()}


class Codec:
    """Writes values as JSON, and reads them. Raises `MissingLibraryError` without cattrs."""

    def __init__(self) -> None:
        # Here, not above: a coordinator without a data directory starts without it.
        try:
            from cattrs.cols import is_namedtuple  # noqa: PLC0415
            from cattrs.preconf.json import make_converter  # noqa: PLC0415
        except ImportError as missing:
            raise MissingLibraryError(
                "a data directory is written by cattrs, which is not installed; get it with:"
                f" {pip_install('coordinator')}"
            ) from missing
        self._converter = make_converter()
        self._converter.register_unstructure_hook(UUID, str)
        self._converter.register_structure_hook(UUID, lambda text, _: UUID(text))
        # cattrs' own do not resolve annotations that are texts.
        self._converter.register_unstructure_hook_func(is_namedtuple, self._list_of)
        self._converter.register_structure_hook_factory(is_namedtuple, self._reads)

    def encoded(self, value: object) -> tuple[str, str]:
        """The name of a value's kind, and the value."""
        return _NAMES[type(value)], json.dumps(self._converter.unstructure(value), separators=(",", ":"))

    def _list_of(self, value: tuple[Any, ...]) -> list[Any]:
        return [self._converter.unstructure(each) for each in value]

    def _reads(self, kind: type) -> Callable[[Sequence[Any], type], object]:
        types = list(get_type_hints(kind).values())

        def read(row: Sequence[Any], _: type) -> object:
            # A row may be shorter: from before the last field, with a default, was added.
            return kind(*(self._converter.structure(each, of) for each, of in zip(row, types, strict=False)))

        return read

    def decoded(self, kind: str, text: str) -> object:
        """The value. Raises `KeyError`, `ValueError` or cattrs' errors, which are groups of them, for what is none."""
        value: object = self._converter.structure(json.loads(text), KINDS[kind])
        return value


def place_text(place: Place) -> str:
    """A place as a key of the directory."""
    return json.dumps(place, separators=(",", ":"))


def place_of(text: str) -> Place:
    """The place that `place_text` wrote."""
    return tuple(json.loads(text))
