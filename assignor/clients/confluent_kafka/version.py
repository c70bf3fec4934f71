"""The installed confluent-kafka; importing this fails if it is missing or too old."""

from __future__ import annotations

from loadwise.assignor.clients.versions import require

INSTALLED = require("confluent-kafka", "confluent_kafka", oldest=(2, 6, 0))
