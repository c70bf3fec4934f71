"""CreateAcls (30): refused as by a Kafka without an authorizer. v2 flexible."""

from __future__ import annotations

from kafka.protocol.admin import CreateAclsRequest, CreateAclsResponse

from loadwise.coordinator.apis.describe_acls import NO_AUTHORIZER
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Refuse each."""
    row = CreateAclsResponse.AclCreationResult
    results = [row(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER) for _ in call.body.creations]
    return call.response(throttle_time_ms=0, results=results)


SERVICE = Service(Api.of(CreateAclsRequest, CreateAclsResponse), handle)
