"""The served APIs: the kernel's, and those in the folders of the features.

An API is a module whose name ends in its key, or in the keys of all APIs that it answers. It has ``handle`` and its
``guard``, and is imported with its first request. The module of a feature replaces the kernel's module of the same key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

from loadwise.coordinator.features import folders
from loadwise.coordinator.kafka_cluster import Guard, Handler
from loadwise.protocol.messages import Api
from loadwise.protocol.schemas import api_name

_NEWEST = {"InitProducerId": 5}
"""The newest version that is served, where it is not Kafka's newest: v6 is two-phase commit (KIP-939)."""
_MODULE = re.compile(r"[a-z_]+((?:_\d+)+)")


class Service:
    """An API, with its handler and its guard."""

    def __init__(self, api: Api, module: str) -> None:
        self.api = api
        self._module_name = module

    @cached_property
    def _module(self) -> ModuleType:
        return import_module(self._module_name)

    @cached_property
    def handle(self) -> Handler:
        """Its handler."""
        handler: Handler = self._module.handle
        return handler

    @cached_property
    def guard(self) -> Guard:
        """Its guard."""
        guard: Guard = self._module.guard
        return guard


def services(packages: Sequence[str] | None = None) -> dict[int, Service]:
    """Return all served APIs by key, or those in these packages."""
    if packages is None:
        packages = ["loadwise.coordinator.apis", *folders()]
    return {service.api.key: service for package in packages for service in _services_in(package)}


def _services_in(package: str) -> Iterator[Service]:
    for each in iter_modules(import_module(package).__path__):
        match = _MODULE.fullmatch(each.name)
        if match is not None:
            for key in match[1].split("_")[1:]:
                name = api_name(int(key))
                yield Service(Api.of(name, max_version=_NEWEST.get(name)), f"{package}.{each.name}")
