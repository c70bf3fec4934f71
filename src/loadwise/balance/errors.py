"""The errors of ``loadwise.balance``.

::

    BalanceError              there is no plan
    ├── UnfitClusterError     what was given is no cluster that can be planned (names file, broker, partition or field)
    └── NoPlanError           no placement was found that keeps each broker within its stated capacity
"""

from __future__ import annotations


class BalanceError(Exception):
    """There is no plan."""


class UnfitClusterError(BalanceError, ValueError):
    """What was given is no cluster that can be planned; the message names the culprit and the remedy."""


class NoPlanError(BalanceError):
    """No placement keeps each broker within its stated capacity; the message names the broker and the remedy."""
