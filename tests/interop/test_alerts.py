"""The alerts of examples/kubernetes, with series that set them off and series that do not, played by promtool."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from made_once import made_once
from missing import unavailable

PROMTOOL = "github.com/prometheus/prometheus/cmd/promtool@v0.316.0"
RULES = Path(__file__).resolve().parents[2] / "examples/kubernetes/alerts.yaml"
SERIES = Path(__file__).with_name("alerts_test.yaml")

# Compiling promtool takes many minutes, once on each machine.
pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def promtool() -> str:
    if found := shutil.which("promtool"):
        return found
    go = shutil.which("go")
    if go is None:
        unavailable("promtool is neither installed nor can it be made: apt-get install golang-go")

    def build(folder: Path) -> None:
        done = subprocess.run(
            [go, "install", PROMTOOL],
            env=os.environ | {"GOBIN": str(folder), "GOTOOLCHAIN": "auto"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            unavailable(f"promtool could not be built: {done.stderr}")

    return str(made_once("promtool", PROMTOOL.encode(), build) / "promtool")


@pytest.fixture
def play(promtool: str, tmp_path: Path) -> Callable[[Any], subprocess.CompletedProcess[str]]:
    """Play the series against rules."""

    def played(spec: Any) -> subprocess.CompletedProcess[str]:
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump(spec))
        shutil.copy(SERIES, tmp_path)
        command = [promtool, "test", "rules", SERIES.name]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return played


def test_each_alert_fires_and_is_silent_when_it_should(play: Callable[[Any], Any]) -> None:
    done = play(yaml.safe_load(RULES.read_text())["spec"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_alert_can_be_left_out_or_fire_always(play: Callable[[Any], Any]) -> None:
    """Otherwise the series would not show anything."""
    spec = yaml.safe_load(RULES.read_text())["spec"]
    [group] = spec["groups"]
    for index, rule in enumerate(group["rules"]):
        others = [each for each in group["rules"] if each is not rule]
        always = {**rule, "expr": "sum by (group, member) ({__name__=~'loadwise_.+'}) > -1e9", "for": "0s"}
        for rules in (others, [*others[:index], always, *others[index:]]):
            assert play({"groups": [{**group, "rules": rules}]}).returncode != 0, rule["alert"]
