"""What loadwise logs in a test: a client that an earlier test has left may log in its own thread meanwhile."""

from __future__ import annotations

import logging

import pytest


def own_log(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """The records of loadwise's loggers."""
    return [record for record in caplog.records if record.name.partition(".")[0] == "loadwise"]
