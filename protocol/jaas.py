"""Reads ``sasl.jaas.config``, the login line of Java's clients and brokers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_LINE = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<rest>.*?);?\s*", re.DOTALL
)
_OPTION = re.compile(
    r"""\s*(?P<name>[\w.-]+)\s*=\s*(?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<bare>[^\s;"']+))\s*""",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class JaasLogin:
    """A login module and its options. Its text shows no secret."""

    module: str
    """The class, without its package."""
    options: Mapping[str, str] = field(repr=False)


def read_jaas(line: str) -> JaasLogin:
    """Parse a login line. Raises `ValueError` for another form, without the line, which has secrets."""
    login = _LINE.fullmatch(line)
    if login is None:
        raise ValueError("it has no login module")
    rest, at = login["rest"].rstrip(), 0
    options: dict[str, str] = {}
    while at < len(rest):
        found = _OPTION.match(rest, at)
        if found is None:
            raise ValueError("its options are not name=value")
        double = found["double"]
        options[found["name"]] = (
            re.sub(r"\\(.)", r"\1", double) if double is not None else found["single"] or found["bare"] or ""
        )
        at = found.end()
    return JaasLogin(login["module"].rpartition(".")[2], options)
