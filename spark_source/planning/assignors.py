"""Which `Assignor` the option ``assignor`` means: one of ours by its name, or the user's own by its dotted name."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module

from loadwise.assignor.algorithms import ALGORITHMS, ON_REQUEST, algorithm
from loadwise.assignor.model import Assignor
from loadwise.assignor.strategy import strategies
from loadwise.spark_source.errors import OptionError

OURS = (*ALGORITHMS, *ON_REQUEST)
"""The names of our algorithms. A plan has no rebalance, so there is no eager or cooperative in it."""


def assignor_named(name: str) -> Assignor:
    """Find an assignor: a name in `OURS`, or ``package.module.Name`` of a class without arguments, or of an object.

    Raises `OptionError` where there is none, or what is there is no `Assignor`.
    """
    if name in OURS:
        return algorithm(name)
    module, dot, attribute = name.rpartition(".")
    if not dot:
        # A name on the wire, as cooperative-weighted, is known too: what is meant is its algorithm.
        on_the_wire = strategies().get(name)
        near = [on_the_wire.algorithm] if on_the_wire is not None else get_close_matches(name, OURS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(OURS)}, or your own by its dotted name"
        raise OptionError("assignor", f"there is no {name!r}; {hint}")
    if not module or module.startswith("."):
        raise OptionError("assignor", f"{name!r} is relative to a module; write the whole name: package.module.Name")
    try:
        found = getattr(import_module(module), attribute)
    except ImportError as error:
        raise OptionError("assignor", f"cannot import {module!r} in Spark's Python process: {error}") from error
    except AttributeError:
        raise OptionError("assignor", f"module {module!r} has no {attribute!r}") from None
    if isinstance(found, type):
        try:
            found = found()
        except TypeError as error:
            raise OptionError("assignor", f"class {name} must be made without arguments: {error}") from error
    if not callable(getattr(found, "assign", None)) or not isinstance(getattr(found, "name", None), str):
        raise OptionError("assignor", f"{name} is no Assignor: it needs a name (str) and assign(group) -> Assignment")
    assignor: Assignor = found
    return assignor
