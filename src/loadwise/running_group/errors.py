"""The errors of ``loadwise.running_group``.

::

    RunningGroupError             a running group cannot be looked at
    ├── BadConnectionError        the address or the connection settings cannot be right, whatever runs there
    └── UnreadableGroupError      no broker answers, there is no such group, or it has no members
"""

from __future__ import annotations


class RunningGroupError(Exception):
    """A running group cannot be looked at."""


class BadConnectionError(RunningGroupError, ValueError):
    """The address or the connection settings cannot be right; the message names the setting and what to write there."""


class UnreadableGroupError(RunningGroupError):
    """The group cannot be read; the message tells what stands in the way and what to do about it."""
