"""AlterConfigs (33, v0 to v2): replaces all configs of a resource.

v1 throttled after the response; v2 flexible.
"""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.access import configs, per_item
from loadwise.coordinator.apis.config_changes import RefusedChangeError, changed, no_duplicates, no_nulls
from loadwise.coordinator.calls import Call
from loadwise.coordinator.configs.definitions import Definitions
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterConfigsRequest, AlterConfigsResponse

_Resource = AlterConfigsRequest.AlterConfigsResource


def handle(call: Call[AlterConfigsRequest], cluster: Cluster) -> AlterConfigsResponse:
    """Replace the configs of each resource."""
    row = AlterConfigsResponse.AlterConfigsResourceResponse
    body = call.body
    responses = changed(cluster, body.resources, row, _replaced, _no_loggers, validate_only=body.validate_only)
    return AlterConfigsResponse(responses=responses)


def _replaced(_: Mapping[str, str], __: Definitions, resource: _Resource) -> Mapping[str, str]:
    no_duplicates([each.name for each in resource.configs])
    no_nulls([each.name for each in resource.configs if each.value is None])
    return {each.name: each.value for each in resource.configs if each.value is not None}


def _no_loggers(_: _Resource) -> None:
    message = "AlterConfigs is deprecated and does not support the resource type BROKER_LOGGER."
    raise RefusedChangeError(ErrorCode.INVALID_REQUEST, message)


guard = per_item(configs(Operation.ALTER_CONFIGS), message=True)
