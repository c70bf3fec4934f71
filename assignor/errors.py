"""The errors of ``loadwise.assignor``.

::

    AssignorError                 anything this package refuses
    ├── BadGroupError             the group as described cannot be: duplicate member, bad capacity, bad load
    ├── BadAnswerError            an algorithm's answer is none that a client can take
    ├── GroupTooLargeError        the algorithm is for small groups only (names its ceiling)
    ├── BadCaseError              a case in JSON cannot be read (names the place in it)
    ├── UnknownStrategyError      no assignor has that name
    ├── MissingClientError        the optional client library is not installed (names the extra)
    └── UnsupportedByClientError  the client cannot do this (a cooperative assignor in an eager client)

All are ``ValueError`` too where a caller passed something wrong, so that code which knows nothing of loadwise catches
what it expects.
"""

from __future__ import annotations


class AssignorError(Exception):
    """Anything that ``loadwise.assignor`` refuses."""


class BadGroupError(AssignorError, ValueError):
    """The group as described cannot be; the message names the member or topic and what is wrong with it."""


class BadAnswerError(AssignorError):
    """An algorithm has answered what no client can take; the message names the partition and the member."""


class GroupTooLargeError(AssignorError, ValueError):
    """The algorithm is for small groups only; the message tells up to which size, and what to use instead."""


class BadCaseError(AssignorError, ValueError):
    """A case written as JSON cannot be read; the message names the place in it and what was expected there."""


class UnknownStrategyError(AssignorError, ValueError):
    """No assignor has that name; the message lists those that there are."""


class MissingClientError(AssignorError, ImportError):
    """An optional client library is not installed; the message names the extra that brings it."""


class UnsupportedByClientError(AssignorError, ValueError):
    """The client cannot do what was asked of it; the message tells what can."""
