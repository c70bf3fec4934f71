"""The errors of ``loadwise.running_group``.

::

    RunningGroupError             a running group cannot be read
    ├── BadConnectionError        the address or the connection settings are wrong
    └── UnreadableGroupError      no broker answers, or the group cannot be described
        └── NoMembersError        it does not exist, or has no members
"""

from __future__ import annotations


class RunningGroupError(Exception):
    """A running group cannot be read."""


class BadConnectionError(RunningGroupError, ValueError):
    """The address or the connection settings are wrong; the message names the setting and the remedy."""


class UnreadableGroupError(RunningGroupError):
    """The group cannot be read; the message names the reason and the remedy."""


class NoMembersError(UnreadableGroupError):
    """The group does not exist, or has no members that read."""
