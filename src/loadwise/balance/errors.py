"""The errors of ``loadwise.balance``.

::

    BalanceError                  there is no plan
    ├── UnfitClusterError         what was given cannot be planned (names file, broker, partition or field)
    ├── UnreadableClusterError    a running cluster cannot be read
    ├── ChangedClusterError       a running cluster changed while it was planned
    ├── NoPlanError               no placement was found that keeps each broker within its stated capacity
    └── SurpriseError             a batch that is executed finds what its plan does not expect
        └── UnsettledError        it may be over in a moment
"""

from __future__ import annotations


class BalanceError(Exception):
    """There is no plan."""


class UnfitClusterError(BalanceError, ValueError):
    """The input is no cluster that can be planned; the message names the culprit and the remedy."""


class UnreadableClusterError(BalanceError):
    """A running cluster cannot be read; the message names the reason and the remedy."""


class ChangedClusterError(BalanceError):
    """A running cluster changed while it was planned; the message names what changed, and the remedy."""


class NoPlanError(BalanceError):
    """No placement keeps each broker within its stated capacity; the message names the broker and the remedy."""


class SurpriseError(BalanceError):
    """A batch that is executed finds what its plan does not expect; the message names it and the remedy."""


class UnsettledError(SurpriseError):
    """What is found may be over in a moment, as brokers learn of a reassignment's end one after the other."""
