"""FindCoordinator (10, v0 to v6): returns the coordinator of a group or a transactional id.

v1 key type (group or transaction), throttle time; v3 flexible; v4 many keys at once (KIP-699); v5, v6 further errors.
"""

from __future__ import annotations

from typing import Any

from loadwise.coordinator.calls.call import Call, Outcome
from loadwise.coordinator.calls.rights import Operation, ResourceType
from loadwise.coordinator.cluster.brokers import CONSUMER_OFFSETS, TRANSACTION_STATE
from loadwise.coordinator.handling.access import FAILED, Access, allowed, item_by_item, refused
from loadwise.coordinator.kafka_cluster import Cluster, Handler
from loadwise.coordinator.turns import Turns, listed
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import FindCoordinatorRequest, FindCoordinatorResponse

_GROUP = 0
_SHARE = 2
_TOPICS = {_GROUP: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}
"""Key types, and the topic whose partition leaders are the coordinators."""
_ACL_TYPES = {_GROUP: ResourceType.GROUP, 1: ResourceType.TRANSACTIONAL_ID}
_KEY_TYPE = 1
_MANY_KEYS = 4
_SHARES = 6
"""The version since which shares have coordinators. Only brokers may ask, so clients get an error."""


def handle(call: Call[FindCoordinatorRequest], cluster: Cluster) -> Turns[FindCoordinatorResponse]:
    """Return each key's broker, or an error for shares."""
    if call.version < _MANY_KEYS:
        return FindCoordinatorResponse(**_found(call, cluster, call.body.key))
    row = FindCoordinatorResponse.Coordinator
    keys = call.body.coordinator_keys
    coordinators = yield from listed(row(key=key, **_found(call, cluster, key)) for key in keys)
    return FindCoordinatorResponse(coordinators=coordinators)


def _found(call: Call[FindCoordinatorRequest], cluster: Cluster, key: str) -> dict[str, Any]:
    topic = _TOPICS.get(call.body.key_type if call.version >= _KEY_TYPE else _GROUP)
    if topic is None:
        message = "only groups and transactional ids have a coordinator here"
        return {
            "error_code": ErrorCode.INVALID_REQUEST, "error_message": message, "node_id": -1, "host": "", "port": -1
        }  # fmt: skip
    if topic == CONSUMER_OFFSETS:
        cluster.offsets_topic.make()
    node = cluster.brokers.coordinator_of(key, topic)
    return {
        "error_code": ErrorCode.NONE, "error_message": None, "node_id": node.id, "host": node.host, "port": node.port
    }  # fmt: skip


def guard(call: Call[FindCoordinatorRequest], cluster: Cluster, handle: Handler) -> Outcome:
    if call.version >= _MANY_KEYS:
        return item_by_item(_check, call, cluster, handle)
    error = _check(call, cluster, Access(call, cluster), call.body.key)
    return refused(call, error) if error else handle(call, cluster)


def _check(call: Call[FindCoordinatorRequest], _: Cluster, access: Access, key: str) -> ErrorCode:
    key_type = call.body.key_type if call.version >= _KEY_TYPE else _GROUP
    if key_type == _SHARE and call.version >= _SHARES:
        return allowed(access, Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
    kind = _ACL_TYPES.get(key_type)
    return ErrorCode.NONE if kind is None or access.may(Operation.DESCRIBE, kind, key) else FAILED[kind]
