"""The README's Spark program prints what stands below it."""

from __future__ import annotations

from typing import Any

import pytest
from readme import programs


@pytest.mark.spark
def test_the_readmes_program_prints_what_stands_below_it(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    program, output = programs()["Even Spark tasks"]
    exec(compile(program, "README.md", "exec"), {})
    assert output in capsys.readouterr().out
