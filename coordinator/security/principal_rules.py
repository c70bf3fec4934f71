r"""The name that a client goes by, made of the subject of its certificate by ``ssl.principal.mapping.rules``.

Mirrors Kafka's ``SslPrincipalMapper``: the first rule that fits the whole subject counts. A rule is ``DEFAULT``, which
leaves the subject as it is, or ``RULE:pattern/replacement/`` with L or U behind it for small or capital letters. In the
replacement ``$1`` is the first group of the pattern; a slash or a backslash that is meant has a backslash before it.

As Java's ``replaceAll`` does, the replacement is put wherever the pattern is found, which may be less than the whole
subject, or more than once: ``.*`` is found again, empty, at the end. Java's ``\w`` and ``\d`` stand for ASCII only.
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
    """What the whole subject has to look like; None for every subject, which then stays as it is."""
    replacement: str = ""
    case: str = ""
    """``L`` for small letters, ``U`` for capitals."""

    def apply(self, subject: str) -> str | None:
        """The name; None if the rule does not fit."""
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
        return reference[0]  # there is no such group: it is meant as it stands
    return match[int(number)] or ""


def principal_rules(text: str) -> Sequence[Rule]:
    """The rules, with commas between them; an empty text is the rule ``DEFAULT``. Raises `BadSecurityError`."""
    rules = []
    at = 0
    while at < len(text):
        found = _RULE.match(text, at)
        if found is None:
            raise BadSecurityError(
                f"ssl.principal.mapping.rules cannot be read from {text[at:]!r} on; a rule is DEFAULT, or "
                "RULE:pattern/replacement/ with L or U behind it"
            )
        at = found.end()
        default, pattern, replacement, case = found.groups()
        try:
            rules.append(Rule(None) if default else Rule(re.compile(pattern, re.ASCII), replacement, case))
        except (re.error, ValueError) as problem:  # ValueError: (?u), which Java has and ASCII excludes
            raise BadSecurityError(f"ssl.principal.mapping.rules has the pattern {pattern!r}: {problem}") from None
    return rules or [Rule(None)]


def principal_name(rules: Sequence[Rule], subject: str) -> str | None:
    """The name of a client whose certificate has this subject; None if no rule fits."""
    names = (rule.apply(subject) for rule in rules)
    return next((name for name in names if name is not None), None)
