"""What random tests begin with: the same in the default tier, a fresh seed and more examples in the long tier."""

from __future__ import annotations

import os
from unittest import TestCase

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine

SEED = int(os.environ.get("LOADWISE_SEED", "1"))
"""For tests that choose at random without hypothesis; ``make test-long`` prints its own."""

EXAMPLES = 30
"""How many examples hypothesis tries of a test that sets no number of its own, in the default tier always the same."""
LONG_EXAMPLES = 100
TIMES = int(os.environ.get("LOADWISE_TIMES", "10"))
"""The long tier tries this many times `LONG_EXAMPLES`, and this many times the examples of a random walk."""


def register_profiles() -> None:
    """Register hypothesis's profiles of both tiers, and load that of the default tier.

    No test asserts a time: examples that are slow on a busy machine are no failure.
    """
    common = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=EXAMPLES)
    settings.register_profile("default-tier", common, derandomize=True)
    settings.register_profile("long-tier", common, max_examples=LONG_EXAMPLES * TIMES, print_blob=True)
    settings.load_profile("default-tier")


def examples(number: int) -> settings:
    """Settings of a test that tries so many examples, for one that runs many times; the long tier tries more."""
    return settings(max_examples=number * (1 if settings().derandomize else TIMES))


def random_walk(machine: type[RuleBasedStateMachine], *, walks: int, steps: int) -> type[TestCase]:
    """The test of a state machine. In the long tier it tries more than so many ``walks``."""
    case = machine.TestCase
    case.settings = settings(examples(walks), stateful_step_count=steps)
    return case
