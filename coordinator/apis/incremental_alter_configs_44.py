"""IncrementalAlterConfigs (44, v0 to v1): sets or deletes configs, or changes list items (KIP-339).

v1 flexible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.configs.definitions import Definitions, items
from loadwise.coordinator.configs.loggers import ROOT, check_level, check_logger, set_level
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.handling.config_changes import RefusedChangeError, changed, check_rights
from loadwise.coordinator.handling.config_rows import other_broker
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.turns import Turns
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

_Resource = IncrementalAlterConfigsRequest.AlterConfigsResource


class _Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


def handle(call: Call[IncrementalAlterConfigsRequest], cluster: Cluster) -> Turns[IncrementalAlterConfigsResponse]:
    """Change the configs of each resource."""
    row = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
    responses = yield from changed(call, cluster, row, nulls=_nulls, change=_operated, change_loggers=_set_levels)
    return IncrementalAlterConfigsResponse(responses=responses)


def _operated(configs: Mapping[str, str], definitions: Definitions, resource: _Resource) -> Mapping[str, str]:
    after = dict(configs)
    for each in resource.configs:
        value = each.value or ""
        match each.config_operation:
            case _Operation.SET:
                after[each.name] = value
            case _Operation.DELETE:
                after.pop(each.name, None)
            case _Operation.APPEND | _Operation.SUBTRACT:
                if not definitions.is_list(each.name):
                    verb = _Operation(each.config_operation).name
                    message = f"Can't {verb} to key {each.name} because its type is not LIST."
                    raise RefusedChangeError(ErrorCode.INVALID_CONFIG, message)
                now = items(after.get(each.name, definitions.by_name[each.name].default))
                asked = items(value)
                if each.config_operation == _Operation.APPEND:
                    result = [*now, *(item for item in asked if item not in now)]
                else:
                    result = [item for item in now if item not in asked]
                after[each.name] = ",".join(result)
            case unknown:
                raise RefusedChangeError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown operation type {unknown}")
    return after


def _nulls(resource: _Resource) -> Sequence[str]:
    return [each.name for each in resource.configs if each.value is None and each.config_operation != _Operation.DELETE]


def _set_levels(call: Call[IncrementalAlterConfigsRequest], cluster: Cluster, resource: _Resource) -> None:
    check_rights(call, cluster, resource)
    problem = other_broker(call, resource.resource_name)
    if problem is not None:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, problem)
    for each in resource.configs:
        match each.config_operation:
            case _Operation.SET:
                check_level(each.name, each.value)
            case _Operation.DELETE if each.name == ROOT:
                message = f"Removing the log level of the {ROOT} logger is not allowed"
                raise RefusedChangeError(ErrorCode.INVALID_REQUEST, message)
            case _Operation.DELETE:
                check_logger(each.name)
            case _Operation.APPEND | _Operation.SUBTRACT:
                message = (
                    f"{_Operation(each.config_operation).name} operation is not allowed for the BROKER_LOGGER resource"
                )
                raise RefusedChangeError(ErrorCode.INVALID_REQUEST, message)
            case unknown:
                raise RefusedChangeError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unknown operation type {unknown}")
    if not call.body.validate_only:
        for each in resource.configs:
            set_level(each.name, each.value if each.config_operation == _Operation.SET else None)


guard = open_to_all
