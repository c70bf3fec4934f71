"""The levels of the brokers' loggers as configs, which a running broker can change (resources BROKER_LOGGER, KIP-412).

They are Python's loggers whose names begin with ``loadwise``; that one itself is also ``root``, so that no client
changes what the rest of a program logs. All brokers of a coordinator share them. Mirrors Kafka's
``RuntimeLoggerManager`` and ``LoggingController``.
"""

from __future__ import annotations

import logging

from loadwise.coordinator.configs.definitions import BadConfigError

ROOT = "root"
_OURS = "loadwise"
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}
"""Kafka's words; Python has none for the lowest."""


def levels() -> dict[str, str]:
    """The loggers that there are, by name, with what each logs: its own level or that of the one above it."""
    names = [name for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)]
    ours = sorted(name for name in names if name == _OURS or name.startswith(f"{_OURS}."))
    return {name: _word(_logger(name).getEffectiveLevel()) for name in (ROOT, *ours)}


def set_level(name: str, word: str | None) -> None:
    """Let a logger log from a level on; None: from that of the logger above it on."""
    _logger(name).setLevel(logging.NOTSET if word is None else LEVELS[word])


def check_level(name: str, word: str | None) -> None:
    """Raise `BadConfigError` for a logger that there is not, and for what is no level."""
    if word not in LEVELS:
        raise BadConfigError(
            f"Cannot set the log level of {name} to {word} as it is not a supported log level. Valid log levels are "
            f"{', '.join(LEVELS)}"
        )
    check_logger(name)


def check_logger(name: str) -> None:
    """Raise `BadConfigError` for a logger that there is not."""
    if name not in levels():
        raise BadConfigError(f"Logger {name} does not exist!")


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(_OURS if name == ROOT else name)


def _word(level: int) -> str:
    """The word for a level: of one in between that below it, from which on as much is logged."""
    reached = [word for word, each in LEVELS.items() if each <= level]
    return max(reached, key=LEVELS.__getitem__, default="TRACE")
