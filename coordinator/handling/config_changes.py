"""How AlterConfigs and IncrementalAlterConfigs change a resource's configs.

Mirrors Kafka's ``ConfigAdminManager`` and ``ConfigurationControlManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.calls.rights import Operation
from loadwise.coordinator.cluster.topics import is_topic_name, name_problem
from loadwise.coordinator.configs.definitions import BadConfigError, Definitions
from loadwise.coordinator.configs.resources import (
    CLIENT_METRICS_CONFIGS,
    DYNAMIC_BROKER_CONFIGS,
    OF_ALL_BROKERS,
    ConfigResourceType,
)
from loadwise.coordinator.configs.topic_configs import (
    RETENTION,
    TOPIC_CONFIGS,
    broker_configs_of_topics,
    check_local_retention,
    check_topic_configs,
)
from loadwise.coordinator.group_configs import check_values, group_configs
from loadwise.coordinator.handling.access import MESSAGES, Access
from loadwise.coordinator.handling.access import configs as may_change
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.settings import described
from loadwise.coordinator.turns import Turns, counted
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import AlterConfigsRequest, IncrementalAlterConfigsRequest

_MAY_CHANGE = may_change(Operation.ALTER_CONFIGS)
_DEFINITIONS: Mapping[int, Definitions] = {
    ConfigResourceType.TOPIC: TOPIC_CONFIGS,
    ConfigResourceType.BROKER: DYNAMIC_BROKER_CONFIGS,
    ConfigResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
}


_TELLS_BAD_CONFIG = (ConfigResourceType.TOPIC, ConfigResourceType.GROUP, ConfigResourceType.BROKER_LOGGER)
"""The resource types with INVALID_CONFIG; others get INVALID_REQUEST."""


@dataclass(frozen=True, slots=True)
class RefusedChangeError(Exception):
    """A change that is not valid."""

    error: ErrorCode
    message: str


_Resource = TypeVar(
    "_Resource", AlterConfigsRequest.AlterConfigsResource, IncrementalAlterConfigsRequest.AlterConfigsResource
)
Change: TypeAlias = Callable[[Mapping[str, str], Definitions, _Resource], Mapping[str, str]]
"""Returns a resource's new configs from the current ones and the request; may raise both errors."""
Row_co = TypeVar("Row_co", covariant=True)


class _ResultClass(Protocol[Row_co]):
    def __call__(
        self, *, error_code: int, error_message: str | None, resource_type: int, resource_name: str
    ) -> Row_co: ...


def changed(
    call: Call,
    cluster: Cluster,
    row: _ResultClass[Row_co],
    *,
    nulls: Callable[[_Resource], Sequence[str]],
    change: Change[_Resource],
    change_loggers: Callable[[Call, Cluster, _Resource], None],
) -> Turns[list[Row_co]]:
    """Change each resource separately; return a row of the response for each.

    ``nulls`` names the configs that need a value and have none. ``change_loggers`` checks the rights and changes
    loggers' levels; it may raise both errors.
    """
    resources: Sequence[_Resource] = call.body.resources
    times = yield from counted((each.resource_type, each.resource_name) for each in resources)
    rows = []
    for each in resources:
        error, message = ErrorCode.NONE, None
        try:
            if times[each.resource_type, each.resource_name] > 1:
                raise RefusedChangeError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            _check_keys(each, nulls(each))
            if each.resource_type == ConfigResourceType.BROKER_LOGGER:
                change_loggers(call, cluster, each)
            else:
                _change(call, cluster, each, change)
        except RefusedChangeError as refused:
            error, message = refused.error, refused.message
        except BadConfigError as problem:
            has_code = each.resource_type in _TELLS_BAD_CONFIG
            error = ErrorCode.INVALID_CONFIG if has_code else ErrorCode.INVALID_REQUEST
            message = str(problem)
        rows.append(
            row(
                error_code=error,
                error_message=message,
                resource_type=each.resource_type,
                resource_name=each.resource_name,
            )
        )
        yield
    return rows


def check_rights(call: Call, cluster: Cluster, resource: _Resource) -> None:
    """Raise `RefusedChangeError` if the client may not change the resource."""
    error = _MAY_CHANGE(call, cluster, Access(call, cluster), resource)
    if error is not ErrorCode.NONE:
        raise RefusedChangeError(error, MESSAGES[error])


def _check_keys(resource: _Resource, nulls: Sequence[str]) -> None:
    if len({each.name for each in resource.configs}) < len(resource.configs):
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if nulls:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")


def _change(call: Call, cluster: Cluster, resource: _Resource, change: Change[_Resource]) -> None:
    name = resource.resource_name
    is_of_group = resource.resource_type == ConfigResourceType.GROUP
    definitions = group_configs() if is_of_group else _DEFINITIONS.get(resource.resource_type)
    if definitions is None:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, f"Unexpected resource type {resource.resource_type}.")
    if resource.resource_type == ConfigResourceType.TOPIC:
        _change_topic(call, cluster, resource, change)
        return
    kind = ConfigResourceType(resource.resource_type)
    if kind is ConfigResourceType.BROKER:
        _check_broker(cluster, resource)
    else:
        check_rights(call, cluster, resource)
    before = cluster.resource_configs.of(kind, name)
    configs = change(before, definitions, resource)
    if kind is not ConfigResourceType.BROKER and not name:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, f"Default {kind.name.lower()} resources are not allowed.")
    definitions.check(configs)
    if kind is ConfigResourceType.GROUP:
        check_values(configs, {**described(cluster.settings), **cluster.settings.configs})
    if kind is ConfigResourceType.BROKER and any(before.get(each) != configs.get(each) for each in RETENTION):
        check_local_retention({**_started_with(cluster, name), **configs})
    if kind is ConfigResourceType.BROKER:  # Kafka's brokers check their own configs, and its controller the rights
        check_rights(call, cluster, resource)
    if not call.body.validate_only:
        cluster.resource_configs.put(kind, name, configs)
        if kind is ConfigResourceType.BROKER:
            cluster.configs_changed(cluster.topics)


def _change_topic(call: Call, cluster: Cluster, resource: _Resource, change: Change[_Resource]) -> None:
    check_rights(call, cluster, resource)
    name = resource.resource_name
    topic = cluster.topics.get(name)
    configs = change({} if topic is None else topic.configs, TOPIC_CONFIGS, resource)
    if not name:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    if not is_topic_name(name):
        raise RefusedChangeError(ErrorCode.INVALID_TOPIC_EXCEPTION, name_problem(name))
    check_topic_configs(configs)
    if topic is None:
        raise RefusedChangeError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic {name!r} does not exist.")
    if not call.body.validate_only:
        cluster.topics.configure(topic, configs)
        cluster.configs_changed([topic])


def _check_broker(cluster: Cluster, resource: _Resource) -> None:
    name = resource.resource_name
    if name != OF_ALL_BROKERS and name not in {str(node.id) for node in cluster.brokers.nodes}:
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, f"there is no broker {name!r}")
    fixed = sorted({each.name for each in resource.configs} - set(DYNAMIC_BROKER_CONFIGS.by_name))
    if fixed:
        message = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        raise RefusedChangeError(ErrorCode.INVALID_REQUEST, message)


def _started_with(cluster: Cluster, name: str) -> dict[str, str]:
    """Return the values of a broker, or of all, without dynamic changes; times in milliseconds."""
    of_all = {} if name == OF_ALL_BROKERS else cluster.resource_configs.of(ConfigResourceType.BROKER, OF_ALL_BROKERS)
    as_started = cluster.settings.configs
    return {**as_started, **broker_configs_of_topics(as_started), **of_all}
