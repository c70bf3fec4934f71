"""Numbers of things in sentences."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which is in the singular for 1 alone: ``1 member``, ``1,200 members``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
