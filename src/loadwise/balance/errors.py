"""The errors of ``loadwise.balance``.

::

    BalanceError                  there is no plan
    ├── UnfitClusterError         the input cannot be planned (names file, broker, partition or field)
    ├── UnreadableClusterError    a running cluster cannot be read
    ├── ChangedClusterError       a running cluster changed during planning
    ├── NoPlanError               no placement was found that keeps each broker within its stated capacity
    └── SurpriseError             while a batch is executed, the cluster is not as its plan expects
        └── UnsettledError        this may be over in a moment
"""

from __future__ import annotations


class BalanceError(Exception):
    """There is no plan."""


class UnfitClusterError(BalanceError, ValueError):
    """The input is not a cluster that can be planned; the message names the culprit and the remedy."""


class UnreadableClusterError(BalanceError):
    """A running cluster cannot be read; the message names the reason and the remedy."""


class ChangedClusterError(BalanceError):
    """A running cluster changed during planning; the message names the change and the remedy."""


class NoPlanError(BalanceError):
    """No placement keeps each broker within its stated capacity; the message names the broker and the remedy."""


class SurpriseError(BalanceError):
    """While a batch is executed, the cluster is not as its plan expects; the message says how and what to do."""


class UnsettledError(SurpriseError):
    """The surprise may be over in a moment, because brokers learn one by one that a reassignment has ended."""
