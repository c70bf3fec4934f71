"""aiokafka's own consumer; ``stock.pyi`` has its types."""

from __future__ import annotations

from aiokafka import AIOKafkaConsumer

__all__ = ["AIOKafkaConsumer"]
