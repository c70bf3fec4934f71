"""Setting, describing and trying configs of a broker by hand; its answers are reduced to what can be compared."""

from __future__ import annotations

import time
from typing import Any
from uuid import uuid4

from client_messages import client_request
from kafka.record import MemoryRecords
from sessions import Session
from topics import WAIT_S, until

from loadwise.protocol.batches import read_header
from loadwise.protocol.record_times import record_times

NOW_MS = int(time.time() * 1000)
HOUR_MS = 3_600_000
TOPIC = 2


class Configurator(Session):
    """A session that sets, describes and tries configs."""

    def make(self, partitions: int = 1, **configs: str | None) -> tuple[int, str]:
        """Make a topic with these configs; the error, and the topic."""
        name = f"topic-{uuid4()}"
        rows = [{"name": _name(each), "value": value} for each, value in configs.items()]
        made = {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": rows}
        (answer,) = self.ask("CreateTopics", 7, topics=[made], timeout_ms=60_000).topics
        self.told = sorted((each.name, each.value, each.config_source) for each in answer.configs or ())
        if answer.error_code == 0:
            self.topic = name
            self.wait_for_topic()
            until(lambda: self.end()[0] == 0)
        return answer.error_code, name

    def end(self) -> tuple[int, int]:
        found = self.listed_offset()
        return found.error_code, found.offset

    def describe(self, kind: int, name: str, *keys: str) -> Any:
        row = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
        (found,) = self.ask("DescribeConfigs", 4, resources=[row], include_synonyms=True).results
        return found.error_code, sorted(
            (
                each.name, each.value, each.config_type, each.read_only, each.is_sensitive, each.config_source,
                [(synonym.name, synonym.value, synonym.source) for synonym in each.synonyms],
            )
            for each in found.configs
        )  # fmt: skip

    def alter(self, kind: int, name: str, *operations: tuple[int, str, str | None], check: bool = False) -> int:
        rows = [{"name": each, "config_operation": what, "value": value} for what, each, value in operations]
        return self._change("IncrementalAlterConfigs", 1, kind, name, rows, check=check)

    def replace(self, kind: int, name: str, *configs: tuple[str, str | None]) -> int:
        rows = [{"name": each, "value": value} for each, value in configs]
        return self._change("AlterConfigs", 2, kind, name, rows, check=False)

    def _change(self, api: str, version: int, kind: int, name: str, rows: list[Any], *, check: bool) -> int:
        resource = {"resource_type": kind, "resource_name": name, "configs": rows}
        (found,) = self.ask(api, version, resources=[resource], validate_only=check).responses
        return int(found.error_code)

    def settled(self, kind: int, name: str, key: str, value: str) -> Any:
        """Describe a config once it has this value: Kafka's broker hears of it some time after the answer."""
        deadline = time.monotonic() + WAIT_S
        while (rows := (found := self.describe(kind, name, key))[1]) == [] or rows[0][1] != value:
            assert time.monotonic() < deadline
        return found

    def append(self, records: bytes, acks: int = -1) -> Any:
        data = {"name": self.topic, "partition_data": [{"index": 0, "records": records}]}
        answer = self.ask("Produce", 9, acks=acks, timeout_ms=60_000, topic_data=[data])
        reply = answer.responses[0].partition_responses[0]
        errors = [each.batch_index for each in reply.record_errors]
        return reply.error_code, reply.base_offset, reply.log_append_time_ms > 0, errors

    def read(self) -> Any:
        row = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000_000}
        request = client_request(
            "Fetch", 12, cluster_id=None, max_wait_ms=0, min_bytes=1, max_bytes=1_000_000, rack_id="",
            topics=[{"topic": self.topic, "partitions": [row]}],
        )  # fmt: skip
        (found,) = self.exchange(request).responses[0].partitions
        seen, data = [], bytes(found.records or b"")
        for each in MemoryRecords(data):
            assert each.validate_crc()
            is_now = abs(each.max_timestamp - NOW_MS) < 10 * HOUR_MS and each.max_timestamp != NOW_MS
            size = read_header(data).size_bytes
            times = [(record.offset, record.timestamp_ms == each.max_timestamp) for record in record_times(data[:size])]
            seen.append((each.base_offset, each.compression_type, each.timestamp_type, is_now, times))
            data = data[size:]
        return seen


def _name(key: str) -> str:
    return key.replace("_", ".")
