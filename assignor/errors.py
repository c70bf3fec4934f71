"""The errors of ``loadwise.assignor``.

::

    AssignorError                 base class
    ├── BadGroupError             the group is invalid: duplicate member, bad capacity, bad load
    ├── BadAnswerError            an algorithm returned an assignment that clients would reject
    ├── GroupTooLargeError        the algorithm supports small groups only (names the limit)
    ├── BadCaseError              a case in JSON cannot be read (names the field)
    ├── BadHistoryError           a file of a group's history cannot be read
    ├── UnknownAssignorError      there is no assignor of that name
    ├── MissingClientError        the optional client library is not installed (names the extra)
    └── UnsupportedByClientError  the client does not support this (a cooperative assignor in an eager client)

Errors caused by a wrong argument are also ``ValueError``, so that code which does not import loadwise can catch them.
"""

from __future__ import annotations


class AssignorError(Exception):
    """Base class of all errors of ``loadwise.assignor``."""


class BadGroupError(AssignorError, ValueError):
    """The group is invalid; the message names the member or topic and the problem."""


class BadAnswerError(AssignorError):
    """An algorithm returned an assignment that clients would reject; the message names partition and member."""


class GroupTooLargeError(AssignorError, ValueError):
    """The algorithm supports small groups only; the message has the limit and names an alternative."""


class BadCaseError(AssignorError, ValueError):
    """A case in JSON cannot be read; the message names the field and what it expects."""


class BadHistoryError(AssignorError, ValueError):
    """A file of a group's history cannot be read; the message names what is wrong."""


class UnknownAssignorError(AssignorError, ValueError):
    """There is no assignor of that name; the message lists the names that exist."""


class MissingClientError(AssignorError, ImportError):
    """An optional client library is not installed; the message names the extra that installs it."""


class UnsupportedByClientError(AssignorError, ValueError):
    """The client does not support the request; the message names an alternative."""
