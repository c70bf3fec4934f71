"""How good answers are on seeded groups. A change of an algorithm shows in quality.txt, for better or worse.

Make it anew, and look at its difference, with
``python tests/assignor/algorithms/seeded_groups.py > tests/assignor/algorithms/quality.txt``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from seeded_groups import KINDS, seeded

KEPT = Path(__file__).with_name("quality.txt").read_text().splitlines()


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in KINDS.items() for kind in kinds])
def test_answers_are_as_good_as_before(name: str, kind: str) -> None:
    kept = [line for line in KEPT if line.startswith(f"{name} {kind} ")]
    assert [each.quality() for each in seeded() if (each.algorithm, each.kind) == (name, kind)] == kept
    assert kept
