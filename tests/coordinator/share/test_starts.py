"""Where a share group begins in a partition that it has never read."""

from __future__ import annotations

import pytest
from record_batches import batch
from wires import Wire

from loadwise.coordinator.share.reset_strategies import is_reset_strategy
from loadwise.coordinator.share.starts import start_offset

_DAY_MS = 86_400_000


@pytest.mark.parametrize(
    ("strategy", "offset"),
    [
        ("latest", 9),
        ("earliest", 2),
        ("by_duration:P2D", 3),
        ("by_duration:PT47H59M59.998S", 5),
        ("by_duration:PT1H", 9),
        ("by_duration:P9D", 2),
        ("by_duration:PT999999999999999S", 2),
    ],
)
def test_a_group_begins_by_its_strategy(strategy: str, offset: int) -> None:
    log = Wire().cluster.topics.log("t", 0)
    assert log is not None
    for days in (1, 2):
        log.append(batch([b"x"] * 3, timestamp=days * _DAY_MS), now_ms=days * _DAY_MS)
    log.delete_before(2)
    assert is_reset_strategy(strategy)
    assert start_offset(strategy, log, 3 * _DAY_MS) == offset


@pytest.mark.parametrize("text", ["", "none", "by_duration:", "by_duration:P", f"by_duration:PT{'9' * 5000}S"])
def test_other_strategies_are_refused(text: str) -> None:
    assert not is_reset_strategy(text)
