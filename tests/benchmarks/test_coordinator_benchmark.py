"""The coordinator's benchmark runs to its end; how fast is no test's business."""

from __future__ import annotations

import pytest

from benchmarks.coordinator.__main__ import main


def test_it_says_how_fast_each_phase_was(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--partitions", "1000", "--members", "5", "--beats", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("consumer protocol (KIP-848), 1,000 partitions, 5 members")
    assert sum(line.endswith("/s") for line in lines) == 8
