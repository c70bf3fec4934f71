"""``loadwise demo``: a real skewed stream through every assignor."""

from __future__ import annotations


def demo() -> None:
    """Run a real, skewed stream through every assignor and compare them."""
