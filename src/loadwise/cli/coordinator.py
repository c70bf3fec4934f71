"""``loadwise coordinator``: the group coordinator as a program of its own."""

from __future__ import annotations


def coordinator() -> None:
    """Start a Kafka group coordinator for tests and demos."""
