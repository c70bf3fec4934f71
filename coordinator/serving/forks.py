"""Keeps forked child processes from holding the coordinator's sockets open.

Python closes them if a child executes a program. A child that is only forked (multiprocessing's ``fork``) would keep
the port open after the coordinator has stopped, and clients would connect without getting an answer.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable


def close_in_children(descriptors: Callable[[], Iterable[int]]) -> None:
    """Close the descriptors that the bound method returns, in every child forked from now on.

    Its object is not kept alive. Does nothing on a system without fork.
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
                # Not os.close, because the socket's object would later close another file with the same number.
                os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)

    os.register_at_fork(after_in_child=close)
