"""ApiVersions (18, v0 to v4): lists the served APIs and versions.

v0; v1 throttle time; v2 throttled after the response; v3 flexible, client's name and version (KIP-511); v4 zero as a
feature's lowest version. An unsupported version gets a v0 response with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import re

from loadwise.coordinator.calls.call import Call
from loadwise.coordinator.handling.access import open_to_all
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import ApiVersionsRequest, ApiVersionsResponse

_PRODUCE = 0
_FEATURES = 3
_ZERO_AS_LOWEST = 4
_FLAGS = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    "kraft.version": (0, 1),
    "metadata.version": (7, 30),
}
"""The oldest and the newest version of each feature flag of the kernel.

Eligible leader replicas (KIP-966), consumer groups (KIP-848), a dynamic quorum (KIP-853), Kafka 4.3. Features add
theirs.
"""
_Supported = ApiVersionsResponse.SupportedFeatureKey
_Finalized = ApiVersionsResponse.FinalizedFeatureKey
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")


def handle(call: Call[ApiVersionsRequest], cluster: Cluster) -> ApiVersionsResponse:
    """List the services. A client's name that KIP-511 does not allow gets INVALID_REQUEST."""
    error = ErrorCode.NONE
    if call.version >= 3:
        names = (call.body.client_software_name, call.body.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in names):
            error = ErrorCode.INVALID_REQUEST
    if error is ErrorCode.NONE and call.login is not None:
        call.login.told_versions()
    api_keys = _advertised(cluster) if error is ErrorCode.NONE else []
    supported, finalized = _features(call, cluster)
    return ApiVersionsResponse(
        error_code=error,
        api_keys=api_keys,
        supported_features=supported,
        finalized_features_epoch=0,
        finalized_features=finalized,
    )


def _features(call: Call[ApiVersionsRequest], cluster: Cluster) -> tuple[list[_Supported], list[_Finalized]]:
    """Return the supported feature flags and the enabled ones: all, in their newest version."""
    if call.version < _FEATURES:
        return [], []
    added = {name: versions for feature in cluster.features for name, versions in feature.flags.items()}
    flags = sorted((_FLAGS | added).items())
    # Before v4 clients reject a lowest version of 0, so the feature is omitted, as in Kafka.
    supported = [
        _Supported(name=name, min_version=oldest, max_version=newest)
        for name, (oldest, newest) in flags
        if oldest > 0 or call.version >= _ZERO_AS_LOWEST
    ]
    finalized = [
        _Finalized(name=name, min_version_level=newest, max_version_level=newest) for name, (_, newest) in flags
    ]
    return supported, finalized


def unsupported(cluster: Cluster) -> ApiVersionsResponse:
    """Return the v0 response to a newer version, with the list for the client's next try."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_advertised(cluster))


def _advertised(cluster: Cluster) -> list[ApiVersionsResponse.ApiVersion]:
    row = ApiVersionsResponse.ApiVersion
    return [
        row(
            api_key=api.key,
            # Unsupported versions of Produce are listed too, because older librdkafka compress only then (KAFKA-18659).
            min_version=0 if api.key == _PRODUCE else api.min_version,
            max_version=api.max_version,
        )
        for api in cluster.apis
    ]


guard = open_to_all
