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

from loadwise.coordinator.errors import MissingLibraryError
from loadwise.installation import is_installed, pip_install
from loadwise.public_names import PublicNames

if not is_installed("crc32c"):  # asked here, so that one place names what is missing
    raise MissingLibraryError(
        f"the coordinator needs libraries that are not installed; get them with: {pip_install('coordinator')}"
    )

_names = PublicNames(__name__)
__getattr__, __dir__ = _names.get, _names.dir
