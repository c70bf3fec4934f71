"""Public names that are imported when they are first used (PEP 562), listed once: in a package's ``__init__.pyi``."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from typing import Any

_IMPORT = re.compile(r"^from (\S+) import (\([^)]*\)|.*)$", re.MULTILINE)
_NAME = re.compile(r"(\w+) as \1\b")  # how a stub exports a name


class PublicNames:
    """The names of one package, each with its module."""

    def __init__(self, package: str) -> None:
        self._package = sys.modules[package]
        spec = self._package.__spec__
        assert spec is not None
        assert spec.origin is not None
        stub = spec.loader.get_data(f"{spec.origin}i").decode()  # type: ignore[union-attr]  # from a zip too
        self.modules = {name: module for module, names in _IMPORT.findall(stub) for name in _NAME.findall(names)}

    def get(self, name: str) -> Any:
        """Return what a name stands for: the ``__getattr__`` of the package."""
        if name == "__all__":
            return sorted(filter(self._is_there, self.modules))
        if name not in self.modules:
            from loadwise.nearest import did_you_mean  # noqa: PLC0415  (seldom needed)

            near = did_you_mean(name, self.modules)
            # With the name, and without the object, Python adds no second suggestion.
            raise AttributeError(f"module {self._package.__name__!r} has no attribute {name!r}{near}", name=name)
        value = getattr(import_module(self.modules[name]), name)
        setattr(self._package, name, value)
        return value

    def dir(self) -> list[str]:
        """Return all names: the ``__dir__`` of the package."""
        return sorted(vars(self._package).keys() | self.modules.keys())

    def _is_there(self, name: str) -> bool:
        """Return whether everything that a name needs is installed, for ``from … import *``."""
        try:
            self.get(name)
        except ImportError:
            return False
        return True
