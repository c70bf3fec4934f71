"""The APIs of configs, each asked over a wire in one of its versions: for ``test_every_version.py``."""

from __future__ import annotations

from typing import Any

from loadwise.protocol.error_codes import ErrorCode

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)


def alter_configs(wire: Any, version: int) -> None:
    def resource(kind: int, name: str, **configs: str) -> Any:
        rows = [{"name": each.replace("_", "."), "value": value} for each, value in configs.items()]
        return {"resource_type": kind, "resource_name": name, "configs": rows}

    asked = [
        resource(TOPIC, "t", max_message_bytes="70"),
        resource(TOPIC, "none", max_message_bytes="70"),
        resource(BROKER, "1", log_retention_bytes="x"),
        resource(GROUP, "g", consumer_session_timeout_ms="50000"),
    ]
    answer = wire.ask("AlterConfigs", version, resources=asked, validate_only=False)
    assert [(each.resource_name, each.error_code) for each in answer.responses] == [
        ("t", 0),
        ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("1", ErrorCode.INVALID_REQUEST),
        ("g", 0),
    ]
    assert wire.cluster.topics.get("t").configs == {"max.message.bytes": "70"}
    assert wire.cluster.topics.log("t", 0).config.max_message_bytes == 70


def incremental_alter_configs(wire: Any, version: int) -> None:
    def alter(*operations: tuple[int, str, str | None]) -> int:
        rows = [{"name": name, "value": value, "config_operation": operation} for operation, name, value in operations]
        asked = [{"resource_type": TOPIC, "resource_name": "t", "configs": rows}]
        (found,) = wire.ask("IncrementalAlterConfigs", version, resources=asked, validate_only=False).responses
        return int(found.error_code)

    topic = wire.cluster.topics.get("t")
    assert alter((SET, "retention.ms", "5"), (APPEND, "cleanup.policy", "compact")) == 0
    assert topic.configs == {"retention.ms": "5", "cleanup.policy": "delete,compact"}
    assert alter((DELETE, "retention.ms", None), (SUBTRACT, "cleanup.policy", "delete")) == 0
    assert topic.configs == {"cleanup.policy": "compact"}
    assert alter((APPEND, "retention.ms", "5")) == ErrorCode.INVALID_CONFIG
    assert alter((9, "retention.ms", "5")) == ErrorCode.UNKNOWN_SERVER_ERROR


def list_config_resources(wire: Any, version: int) -> None:
    alter_configs(wire, 2)

    def listed(*kinds: int) -> list[tuple[int, str]]:
        answer = wire.ask("ListConfigResources", version, resource_types=list(kinds))
        assert answer.error_code == 0
        return [(each.resource_type, each.resource_name) for each in answer.config_resources]

    if version == 0:
        assert listed() == []
        return
    assert listed(TOPIC, GROUP) == [(TOPIC, "t"), (GROUP, "g")]
    assert (BROKER, "1") in listed()
