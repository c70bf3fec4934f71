"""Spread the records of hot keys over several partitions: partial key grouping, with more choices for hotter keys.

Nasir et al., "The Power of Both Choices" (ICDE 2015), and "When Two Choices Are not Enough" (ICDE 2016, D-choices).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from loadwise.dispatcher.errors import BadDispatcherError
from loadwise.dispatcher.keys import murmur2, partition_of
from loadwise.dispatcher.space_saving import SpaceSaving

_SLACK = 8.0
"""A key gets this many times the partitions that its records would fill: room for those keys that cannot move."""

_DEVIATIONS = 3.5
"""A key is hot if it came so many standard deviations more often than a key at the limit does on average: few records
make none hot, nor does chance in many. With 5, Zipf keys are spread worse."""

_MEMORY_RECORDS = 2048
"""Counts are halved after this many records at least, so that keys that become hot are found soon..."""
_MEMORY_OF_PARTITION = 8
"""... and after this many for each partition: what fills one is a smaller share, and takes more records to see."""

PartitionOf = Callable[[bytes, int], int]
"""Returns the partition of a key, of so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadKeys:
    """Sends each record of a key to the least loaded of its candidate partitions, for consumers that merge keys.

    Records with the same key are no longer in order. They are spread over at most as many partitions as the key has
    candidates. Raises `BadDispatcherError`.
    """

    choices: int = 2
    """The candidates of each key: the partition that the client gives it, and others. Keys that alone exceed the share
    of their candidates get more, up to all partitions."""
    tracked_keys: int = 1000
    """How many keys are counted to find the hottest. A key needs more than this part of all records to be found."""

    def __post_init__(self) -> None:
        for name, given in (("choices", self.choices), ("tracked_keys", self.tracked_keys)):
            whole: object = given
            if not isinstance(whole, int) or whole < 1:
                raise BadDispatcherError(f"{name} is {whole!r}; it must be a whole number of at least 1")


class KeySpreader:
    """The keys of one topic, by one producer, which places a key that is not spread by ``home``."""

    def __init__(self, settings: SpreadKeys, partitions: int, home: PartitionOf = partition_of) -> None:
        self.partitions = partitions
        self._home = home
        self._choices = min(settings.choices, partitions)
        self._keys = SpaceSaving(settings.tracked_keys)
        self._loads = [0.0] * partitions
        """Bytes that this producer sent to each partition."""
        self._steps = [step for step in range(1, partitions) if math.gcd(step, partitions) == 1] or [1]
        """Numbers that reach every partition when added again and again."""
        self._records = 0
        self._memory_records = max(_MEMORY_RECORDS, _MEMORY_OF_PARTITION * partitions)

    def partition(self, key: bytes, size: int) -> int:
        """Return the partition for a record of this key and size."""
        count, loads = self.partitions, self._loads
        digest = murmur2(key)
        found = first = self._home(key, count)
        step = self._steps[(digest * 0x9E3779B1 >> 16 & 0xFFFF) % len(self._steps)]
        least = loads[first]
        width = self._width(digest, size)
        if width == count:  # in a fraction of the loop's time
            least = min(loads)
            found = first if loads[first] == least else loads.index(least)
        else:
            for each in range(1, width):
                candidate = (first + each * step) % count
                if loads[candidate] < least:
                    found, least = candidate, loads[candidate]
        loads[found] = least + size
        return found

    def _width(self, digest: int, size: int) -> int:
        """Return the number of a key's candidates."""
        self._records += 1
        if self._records >= self._memory_records:
            self._records = 0
            self._keys.halve()
            self._loads = [load / 2 for load in self._loads]
        count = self._keys.add(digest, size)
        wanted = count.least / self._keys.total * self.partitions * _SLACK
        if wanted <= self._choices:
            return self._choices
        # The root of a Poisson variable deviates by 1/2, whatever its mean.
        deviations = 2 * math.sqrt(count.additions) * (1 - math.sqrt(self._choices / wanted))
        return min(math.ceil(wanted), self.partitions) if deviations > _DEVIATIONS else self._choices


class SpreadTopics:
    """The topics whose keys are spread, by one producer. Raises `BadDispatcherError`."""

    def __init__(self, settings: Mapping[str, SpreadKeys]) -> None:
        for topic, keys in settings.items():
            if not isinstance(keys, SpreadKeys):
                raise BadDispatcherError(f"spread has {keys!r} for topic {topic}; it must be a SpreadKeys")
        self.settings = dict(settings)
        """Those of each topic."""
        self.home: PartitionOf = partition_of
        """Where the client places a key."""
        self._spreaders: dict[str, KeySpreader] = {}

    def partition(self, topic: str, key: bytes, size: int, partitions: int) -> int:
        """Return the partition for a record of this key and size, of so many."""
        spreader = self._spreaders.get(topic)
        if spreader is None or spreader.partitions != partitions:
            spreader = self._spreaders[topic] = KeySpreader(self.settings[topic], partitions, self.home)
        return spreader.partition(key, size)
