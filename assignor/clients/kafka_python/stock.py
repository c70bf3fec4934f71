"""kafka-python's own consumer; ``stock.pyi`` has its types."""

from __future__ import annotations

from kafka import KafkaConsumer

__all__ = ["KafkaConsumer"]
