"""docs/apis.md lists what is served, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from loadwise.coordinator.routing.services import services

COORDINATOR = Path(__file__).parents[3] / "coordinator"
KERNELS_OWN = {COORDINATOR / "apis" / "init_producer_id_22.py"}
"""The modules that a feature replaces."""
PAGE = Path(__file__).parents[3] / "docs" / "apis.md"


def test_the_page_lists_every_api_with_its_versions() -> None:
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (\d+)(?: to (\d+))? \|$", PAGE.read_text(), re.MULTILINE)
    listed = [(name, int(key), int(low), int(high or low)) for name, key, low, high in rows]
    apis = (service.api for _, service in sorted(services().items()))
    assert listed == [(api.name, api.key, api.min_version, api.max_version) for api in apis]


def test_each_module_names_its_apis_with_their_versions() -> None:
    for service in services().values():
        api = service.api
        (module,) = {
            path for path in COORDINATOR.rglob(f"*_{api.key}*.py") if str(api.key) in path.stem.split("_")
        } - KERNELS_OWN
        versions = f"v{api.min_version}" + (f" to v{api.max_version}" if api.max_version > api.min_version else "")
        assert f"{api.name} ({api.key}, {versions})" in module.read_text().split('"""')[1]
