"""DescribeAcls (29): refused as by a Kafka without an authorizer: everybody may do everything. v2 flexible."""

from __future__ import annotations

from kafka.protocol.admin import DescribeAclsRequest, DescribeAclsResponse

from loadwise.coordinator.calls import Call, Message, Service
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.messages import Api

NO_AUTHORIZER = "No Authorizer is configured."


def handle(call: Call, _: Cluster) -> Message:
    """Refuse."""
    return call.response(
        throttle_time_ms=0, error_code=ErrorCode.SECURITY_DISABLED, error_message=NO_AUTHORIZER, resources=[]
    )


SERVICE = Service(Api.of(DescribeAclsRequest, DescribeAclsResponse), handle)
