"""The errors of ``loadwise.demo``.

::

    DemoError                  the demo cannot go on, or something that it checks does not hold; the exit status is 1
    ├── MissingPartError       an optional part is not installed (names the extra)
    ├── ChildDiedError         a process of the demo ended before its time (quotes the last it wrote)
    ├── RefusedError           the Kafka refuses a request (names its error)
    ├── StuckError             nothing more happens and the topic is not drained (names what is missing)
    └── CheckFailedError       records lost, not committed, or counted differently
"""

from __future__ import annotations


class DemoError(Exception):
    """The demo cannot go on, or something that it checks does not hold."""


class MissingPartError(DemoError, ImportError):
    """An optional part is not installed; the message names the extra that brings it."""


class ChildDiedError(DemoError):
    """A process of the demo ended before its time; the message quotes the last lines of its standard error."""


class RefusedError(DemoError):
    """The Kafka refuses a request; the message has its error."""


class StuckError(DemoError):
    """A step did not finish in time; the message names what was still missing."""


class CheckFailedError(DemoError):
    """Records were lost, not committed, or counted differently."""
