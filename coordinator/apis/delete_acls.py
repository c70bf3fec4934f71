"""DeleteAcls (31): refused as by a Kafka without an authorizer. v2 flexible."""

from __future__ import annotations

from kafka.protocol.admin import DeleteAclsRequest, DeleteAclsResponse

from loadwise.coordinator.apis.describe_acls import NO_AUTHORIZER
from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api


def handle(call: Call, _: Cluster) -> Message:
    """Refuse each."""
    row = DeleteAclsResponse.DeleteAclsFilterResult
    results = [
        row(error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, matching_acls=[])
        for _ in call.body.filters
    ]
    return call.response(throttle_time_ms=0, filter_results=results)


SERVICE = Service(Api.of(DeleteAclsRequest, DeleteAclsResponse), handle)
