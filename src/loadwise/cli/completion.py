"""Completion in bash, zsh and fish: the shells' scripts call ``loadwise __complete WORD...``."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from loadwise.cli import COMMANDS, parser_of, top_parser

_SCRIPTS = {
    "bash": """\
_loadwise() {
    local IFS=$'\\n'
    COMPREPLY=($(loadwise __complete "${COMP_WORDS[@]:1:COMP_CWORD}"))
}
complete -o default -F _loadwise loadwise
""",
    "zsh": """\
_loadwise() {
    local found=(${(f)"$(loadwise __complete "${(@)words[2,CURRENT]}")"})
    if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _loadwise loadwise
""",
    "fish": """\
function __loadwise_complete
    loadwise __complete (commandline -opc)[2..-1] (commandline -ct)
end
complete -c loadwise -a '(__loadwise_complete)'
""",
}


def script(shell: str) -> str:
    """The script that makes a shell complete ``loadwise``."""
    return _SCRIPTS[shell]


def complete(words: Sequence[str]) -> list[str]:
    """What the last word may become, ``words`` being those behind ``loadwise``; nothing where it may be a file."""
    *before, prefix = words or [""]
    before = [word for word in before if word != "="]  # bash makes three words of --name=value
    prefix = "" if prefix == "=" else prefix
    if not before:
        return _beginning(prefix, [*COMMANDS, *_names(top_parser().options)])
    command = before[0]
    if command not in COMMANDS:
        return _beginning(prefix, _values(top_parser().options, before[-1]) or ())
    options = parser_of(command).options
    values = _values(options, before[-1])
    if values is not None:
        return _beginning(prefix, values)
    name, equals, begun = prefix.partition("=")
    if equals:
        return [f"{name}={value}" for value in _beginning(begun, _values(options, name) or ())]
    return _beginning(prefix, _names(options)) if prefix.startswith("-") or not _takes_files(options) else []


def _beginning(prefix: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(prefix)]


def _names(options: Sequence[argparse.Action]) -> list[str]:
    return [name for option in options for name in option.option_strings if name.startswith("--")]


def _takes_files(options: Sequence[argparse.Action]) -> bool:
    return any(not option.option_strings for option in options)


def _values(options: Sequence[argparse.Action], name: str) -> list[str] | None:
    """The values of the option that stands before; None where it takes none."""
    for option in options:
        if name in option.option_strings and option.nargs != 0:
            return list(map(str, option.choices or ()))
    return None
