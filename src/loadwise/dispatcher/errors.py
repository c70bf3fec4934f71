"""The errors of ``loadwise.dispatcher``.

::

    DispatcherError           base class
    └── BadDispatcherError    a wrong argument: an unknown metric, a bad weight (names it and the remedy)
"""

from __future__ import annotations


class DispatcherError(Exception):
    """Base class of all errors of ``loadwise.dispatcher``."""


class BadDispatcherError(DispatcherError, ValueError):
    """An argument is wrong; the message names it and the remedy."""
