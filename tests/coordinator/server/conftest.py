"""Two clients by hand of the coordinator that a test runs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from peers import Peer

from loadwise.coordinator import Coordinator


@pytest.fixture
async def peer(coordinator: Coordinator) -> AsyncIterator[Peer]:
    made = await Peer.connect(coordinator)
    yield made
    await made.close()


other = peer
