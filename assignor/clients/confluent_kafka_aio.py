"""The former place of `loadwise.confluent_aio_consumer`."""

from __future__ import annotations

from loadwise.assignor.clients.confluent_kafka.aio import confluent_aio_consumer

aio_confluent_consumer = confluent_aio_consumer

__all__ = ["aio_confluent_consumer"]
