"""The former place of `loadwise.assignor.clients.confluent_kafka.aio`."""

from __future__ import annotations

from loadwise.assignor.clients.confluent_kafka.aio import AioConfluentConsumer, aio_confluent_consumer

__all__ = ["AioConfluentConsumer", "aio_confluent_consumer"]
