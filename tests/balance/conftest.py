"""What tests of plans on a running cluster share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loadwise.coordinator import ThreadedCoordinator
from loadwise.running_group.admin import GroupAdmin, connected


@pytest.fixture
def admin(brokers: ThreadedCoordinator) -> Iterator[GroupAdmin]:
    """A connection to the cluster of the test's fixture ``brokers``."""
    with connected(brokers.bootstrap_servers, client_id="test") as connection:
        yield connection
