"""FindCoordinator (10): which broker coordinates a group. There is one broker, so it does.

v1 key type (group or transaction), throttle time; v3 flexible; v4 many keys at once (KIP-699); v5, v6 further errors.
"""

from __future__ import annotations

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from loadwise.coordinator.broker import NODE_ID, Broker
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

_GROUP = 0
_MANY_KEYS = 4


def handle(call: Call, broker: Broker) -> Message:
    """Name this broker for groups, and say no for transactions and share groups."""
    is_group = call.body.key_type == _GROUP
    error = ErrorCode.NONE if is_group else ErrorCode.INVALID_REQUEST
    fields = {
        "error_code": error,
        "error_message": None if is_group else "only groups have a coordinator here, not transactions or shares",
        "node_id": NODE_ID if is_group else -1,
        "host": broker.host if is_group else "",
        "port": broker.port if is_group else -1,
    }
    if call.version < _MANY_KEYS:
        return call.response(throttle_time_ms=0, **fields)
    row = FindCoordinatorResponse.Coordinator
    coordinators = [row(key=key, **fields) for key in call.body.coordinator_keys]
    return call.response(throttle_time_ms=0, coordinators=coordinators)


SERVICE = Service(Api.of(FindCoordinatorRequest, FindCoordinatorResponse), handle)
