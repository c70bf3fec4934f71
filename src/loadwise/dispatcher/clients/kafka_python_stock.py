"""kafka-python's own producer; ``kafka_python_stock.pyi`` has its types."""

from __future__ import annotations

from kafka import KafkaProducer

__all__ = ["KafkaProducer"]
