"""docs/apis.md lists what is served, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from loadwise.coordinator.services import services

PAGE = Path(__file__).parents[2] / "docs" / "apis.md"


def test_the_page_lists_every_api_with_its_versions() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)(?: to (\d+))? \|$", PAGE.read_text(), re.MULTILINE)
    listed = [(name, int(key), int(low), int(high or low)) for name, key, low, high in rows]
    apis = (service.api for _, service in sorted(services().items()))
    assert listed == [(api.name, api.key, api.min_version, api.max_version) for api in apis]
