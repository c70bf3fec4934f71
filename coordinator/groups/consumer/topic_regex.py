"""Regular expressions that members subscribe with, in RE2's syntax: Kafka has RE2J, we have Google's RE2 itself.

RE2 takes time linear in the name, whatever the expression, so that no member can keep the coordinator busy with one.
Mirrors Kafka's ``TopicRegexResolver``.
"""

from __future__ import annotations

from collections.abc import Iterable

from loadwise.coordinator.errors import BadRegexError

MAX_LENGTH = 4096
"""Longest expression that is accepted; Kafka has no such limit."""


def matching(regex: str, names: Iterable[str]) -> frozenset[str]:
    """The names that an expression matches as a whole. Raises `BadRegexError`."""
    try:
        import re2  # noqa: PLC0415  (only who subscribes with expressions needs it)
    except ImportError as missing:
        raise BadRegexError(
            "subscribing with a regular expression needs google-re2: pip install google-re2 where the coordinator runs"
        ) from missing
    if len(regex) > MAX_LENGTH:
        raise BadRegexError(f"a regular expression of {len(regex):,} characters; at most {MAX_LENGTH:,} are accepted")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(regex, options)
    except re2.error as problem:
        raise BadRegexError(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}") from problem
    return frozenset(name for name in names if pattern.fullmatch(name))
