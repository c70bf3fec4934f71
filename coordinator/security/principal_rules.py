r"""Maps a certificate's subject to a client's name by ``ssl.principal.mapping.rules``.

Mirrors Kafka's ``SslPrincipalMapper``: the first rule that matches the whole subject counts. A rule is ``DEFAULT``,
which keeps the subject, or ``RULE:pattern/replacement/`` with an optional L or U for lower or upper case. In the
replacement, ``$1`` is the first group of the pattern; a literal slash or backslash needs a backslash before it.

Like Java's ``replaceAll``, a rule replaces every match of the pattern, which may be several or only a part of the
subject: ``.*`` matches again, empty, at the end. ``\w`` and ``\d`` are ASCII only, as in Java.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from loadwise.coordinator.errors import BadSecurityError

DEFAULT = "DEFAULT"
_RULE = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,\s*|$)")
_REFERENCE = re.compile(r"\\(.)|\$(\d)", re.DOTALL)


class Rule(NamedTuple):
    """One rule."""

    pattern: re.Pattern[str] | None
    """Must match the whole subject; None matches every subject and keeps it."""
    replacement: str = ""
    case: str = ""
    """``L`` for lower case, ``U`` for upper case."""

    def apply(self, subject: str) -> str | None:
        """Return the name; None if the rule does not match."""
        if self.pattern is None:
            return subject
        if self.pattern.fullmatch(subject) is None:
            return None
        name = self.pattern.sub(lambda match: _REFERENCE.sub(partial(_referred, match), self.replacement), subject)
        return name.lower() if self.case == "L" else name.upper() if self.case == "U" else name


def _referred(match: re.Match[str], reference: re.Match[str]) -> str:
    escaped, number = reference.groups()
    if escaped is not None:
        return escaped
    if int(number) > match.re.groups:
        return reference[0]  # there is no such group: keep it literally
    return match[int(number)] or ""


def principal_rules(text: str) -> Sequence[Rule]:
    """Parse rules, separated by commas; an empty text means ``DEFAULT``. Raises `BadSecurityError`."""
    rules = []
    at = 0
    while at < len(text):
        found = _RULE.match(text, at)
        if found is None:
            raise BadSecurityError(
                f"ssl.principal.mapping.rules is not valid from {text[at:]!r} on; a rule is DEFAULT, or "
                "RULE:pattern/replacement/ with an optional L or U after it"
            )
        at = found.end()
        default, pattern, replacement, case = found.groups()
        try:
            rules.append(Rule(None) if default else Rule(re.compile(pattern, re.ASCII), replacement, case))
        except (re.error, ValueError) as problem:  # ValueError: (?u), which Java has and ASCII excludes
            raise BadSecurityError(f"ssl.principal.mapping.rules has the pattern {pattern!r}: {problem}") from None
    return rules or [Rule(None)]


def principal_name(rules: Sequence[Rule], subject: str) -> str | None:
    """Return the name for this subject; None if no rule matches."""
    names = (rule.apply(subject) for rule in rules)
    return next((name for name in names if name is not None), None)
