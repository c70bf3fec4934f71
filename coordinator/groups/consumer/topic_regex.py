"""Members' regular expressions, in RE2's syntax: Kafka uses RE2J, this Google's RE2.

RE2 takes time linear in the name for any expression, so no member can block the coordinator with one. Mirrors Kafka's
``TopicRegexResolver``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from loadwise.coordinator.errors import BadRegexError
from loadwise.coordinator.turns import Turns
from loadwise.installation import pip_install

MAX_LENGTH = 4096
"""Maximum length of an expression; Kafka has no such limit."""


def matching(regex: str, names: Iterable[str], may_describe: Callable[[str], bool] | None) -> Turns[frozenset[str]]:
    """Return the names that an expression matches as a whole, and that a client may describe (None: all).

    Raises `BadRegexError`.
    """
    matches = matcher(regex)
    found = set()
    for name in names:
        if matches(name) and (may_describe is None or may_describe(name)):
            found.add(name)
        yield
    return frozenset(found)


def matcher(regex: str) -> Callable[[str], object]:
    """Return a function that says whether an expression matches a name as a whole. Raises `BadRegexError`."""
    try:
        import re2  # noqa: PLC0415  (only who subscribes with expressions needs it)
    except ImportError as missing:
        raise BadRegexError(
            "subscribing with a regular expression needs google-re2 where the coordinator runs; get it with:"
            f" {pip_install('coordinator')}"
        ) from missing
    if len(regex) > MAX_LENGTH:
        raise BadRegexError(f"the regular expression has {len(regex):,} characters; the limit is {MAX_LENGTH:,}")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(regex, options)
    except re2.error as problem:
        raise BadRegexError(f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}") from problem
    matches: Callable[[str], object] = pattern.fullmatch
    return matches
