"""aiokafka's own producer; ``aiokafka_stock.pyi`` has its types."""

from __future__ import annotations

from aiokafka import AIOKafkaProducer

__all__ = ["AIOKafkaProducer"]
