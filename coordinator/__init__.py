"""A Kafka cluster in memory, without a JVM, for tests and demos. Real clients connect to it.

In asyncio code::

    async with Coordinator(topics={"flights": 36}) as coordinator:
        consumer = AIOKafkaConsumer("flights", bootstrap_servers=coordinator.bootstrap_servers)

In synchronous code, on its own thread::

    with Coordinator(topics={"flights": 36}).in_thread() as coordinator:
        producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap_servers)

As a program: ``loadwise coordinator --topic flights:36``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from loadwise.coordinator.errors import (
    BadAssignorError,
    BadClusterError,
    BadFaultError,
    BadSecurityError,
    BadSettingError,
    BadTopicError,
    CoordinatorError,
    DataDirError,
    LostWritesError,
    MissingLibraryError,
    NoSuchFaultError,
    NoSuchGroupError,
    NoSuchMemberError,
    NoSuchSnapshotError,
    NotLoopbackError,
    NotRunningError,
    WeakTokenError,
)
from loadwise.installation import is_installed, pip_install

if not is_installed("crc32c"):  # asked here, so that one place names what is missing
    raise MissingLibraryError(
        f"the coordinator needs libraries that are not installed; get them with: {pip_install('coordinator')}"
    )

from loadwise.coordinator.embedding.asynchronous import Coordinator
from loadwise.coordinator.embedding.coordinator_options import HttpOptions
from loadwise.coordinator.embedding.threaded import ThreadedCoordinator
from loadwise.coordinator.faults.rules import Fault, Faults
from loadwise.coordinator.groups.consumer.limits import ConsumerGroupLimits, MigrationPolicy
from loadwise.coordinator.groups.limits import GroupLimits
from loadwise.coordinator.keeper import Snapshot
from loadwise.coordinator.settings import BrokerSettings, configured

if TYPE_CHECKING:
    from loadwise.coordinator.authorization.acls import Acl
    from loadwise.coordinator.authorization.options import Authorization
    from loadwise.coordinator.embedding.kafka_container import KafkaContainer, RedpandaContainer
    from loadwise.coordinator.security.certificates import Certificates
    from loadwise.coordinator.security.options import Security
    from loadwise.coordinator.security.tls import TlsFiles
    from loadwise.coordinator.security.tokens import OAuthToken
    from loadwise.coordinator.share.limits import ShareGroupLimits
    from loadwise.coordinator.streams.limits import StreamsGroupLimits
    from loadwise.coordinator.transactions.limits import TransactionLimits

_LATER = {
    "Acl": "loadwise.coordinator.authorization.acls",
    "Authorization": "loadwise.coordinator.authorization.options",
    "Certificates": "loadwise.coordinator.security.certificates",
    "KafkaContainer": "loadwise.coordinator.embedding.kafka_container",
    "RedpandaContainer": "loadwise.coordinator.embedding.kafka_container",
    "OAuthToken": "loadwise.coordinator.security.tokens",
    "Security": "loadwise.coordinator.security.options",
    "ShareGroupLimits": "loadwise.coordinator.share.limits",
    "StreamsGroupLimits": "loadwise.coordinator.streams.limits",
    "TlsFiles": "loadwise.coordinator.security.tls",
    "TransactionLimits": "loadwise.coordinator.transactions.limits",
}
"""The names whose modules are imported when they are needed."""


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


__all__ = [
    "Acl",
    "Authorization",
    "BadAssignorError",
    "BadClusterError",
    "BadFaultError",
    "BadSecurityError",
    "BadSettingError",
    "BadTopicError",
    "BrokerSettings",
    "Certificates",
    "ConsumerGroupLimits",
    "Coordinator",
    "CoordinatorError",
    "DataDirError",
    "Fault",
    "Faults",
    "GroupLimits",
    "HttpOptions",
    "KafkaContainer",
    "LostWritesError",
    "MigrationPolicy",
    "MissingLibraryError",
    "NoSuchFaultError",
    "NoSuchGroupError",
    "NoSuchMemberError",
    "NoSuchSnapshotError",
    "NotLoopbackError",
    "NotRunningError",
    "OAuthToken",
    "RedpandaContainer",
    "Security",
    "ShareGroupLimits",
    "Snapshot",
    "StreamsGroupLimits",
    "ThreadedCoordinator",
    "TlsFiles",
    "TransactionLimits",
    "WeakTokenError",
    "configured",
]
