"""The features: parts of the coordinator that the rest works without. Each is a folder and a line here.

A folder has all of a feature: its APIs, and in ``feature.py`` the `Feature` that keeps its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from loadwise.coordinator.feature import Feature

FEATURES = (
    "authorization",
    "quotas",
    "security",
    "share",
    "streams",
    "transactions",
)  # fmt: skip
"""The folders."""


def folders() -> Sequence[str]:
    """Return the packages of the features."""
    return [f"loadwise.coordinator.{name}" for name in FEATURES]


def features() -> Sequence[type[Feature]]:
    """Return the class of each feature."""
    return [import_module(f"{folder}.feature").FEATURE for folder in folders()]
