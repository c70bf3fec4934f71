"""The errors of ``loadwise.compare``.

::

    CompareError              there is nothing to compare
    ├── BadInputError         what was given cannot be read or makes no group (names file, line, column or field)
    └── LiveGroupError        a running group cannot be compared now, because it rebalances
"""

from __future__ import annotations


class CompareError(Exception):
    """There is nothing to compare."""


class BadInputError(CompareError, ValueError):
    """What was given cannot be read or makes no group; the message names the place in it and what to write there."""


class LiveGroupError(CompareError):
    """A running group cannot be compared now; the message names the reason and the remedy."""
