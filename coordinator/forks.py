"""Sockets and child processes: one that is forked must not keep the coordinator's sockets open.

Python closes them where a child executes a program. A child that is only forked (multiprocessing's ``fork``) would hold
the port after the coordinator is gone, and clients would connect to nobody.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable


def close_in_children(descriptors: Callable[[], Iterable[int]]) -> None:
    """Close what the bound method ``descriptors`` names, in every child that is forked from now on.

    Its object is not kept alive. Nothing happens on a system that does not fork.
    """
    if not hasattr(os, "register_at_fork"):
        return
    named = weakref.WeakMethod(descriptors)

    def close() -> None:
        name = named()
        if name is None:
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in name():
            if descriptor >= 0:
                # Not os.close: the number would be given to another file, which the socket's object would then close.
                os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)

    os.register_at_fork(after_in_child=close)
