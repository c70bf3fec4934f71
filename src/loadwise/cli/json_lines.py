"""Log records as JSON, one object a line: the record's own fields, and those that came with it as ``extra``."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_OF_EVERY_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class JsonLines(logging.Formatter):
    """A record as one JSON object: ``time`` (ISO 8601, UTC), ``level``, ``logger``, ``message``, then its extras."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, without its end."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        fields |= {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
        return json.dumps(fields, default=str)
