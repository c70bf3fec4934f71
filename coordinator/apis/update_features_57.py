"""UpdateFeatures (57, v0 to v2): finalizes another version of a feature.

v1 kinds of upgrades, validation only (KIP-778); v2 no results for single features. The newest version of each feature
is finalized and cannot be changed. A request for the current state succeeds, and so does a validation of what Kafka
would allow.
"""

from __future__ import annotations

from loadwise.coordinator.access import of_cluster
from loadwise.coordinator.apis.api_versions_18 import FEATURES
from loadwise.coordinator.calls import Call, Message
from loadwise.coordinator.kafka_cluster import Cluster
from loadwise.coordinator.rights import Operation
from loadwise.protocol.error_codes import ErrorCode
from loadwise.protocol.kafka_messages import UpdateFeaturesResponse

_KINDS = 1
_RESULTS_END = 2
_UPGRADE = 1
_UNSAFE = 3


def handle(call: Call, cluster: Cluster) -> Message:
    """Apply all updates, or none if one of them is not allowed."""
    body = call.body
    problems = [problem for each in body.feature_updates if (problem := _problem(call, cluster, each)) is not None]
    error, message = ErrorCode.NONE, None
    results = []
    if problems:
        error = ErrorCode.INVALID_UPDATE_VERSION
        message = f"The update failed for all features since the following feature had an error: {problems[0]}"
    elif call.version < _RESULTS_END:
        row = UpdateFeaturesResponse.UpdatableFeatureResult
        results = [row(feature=each.feature, error_code=ErrorCode.NONE, error_message="NONE")
                   for each in body.feature_updates]  # fmt: skip
    return call.response(throttle_time_ms=0, error_code=error, error_message=message, results=results)


def _problem(call: Call, cluster: Cluster, asked: Message) -> str | None:
    feature = FEATURES.get(asked.feature)
    asked_version = asked.max_version_level
    wrong = f"Invalid update version {asked_version} for feature {asked.feature}."
    is_downgrade = asked.upgrade_type != _UPGRADE if call.version >= _KINDS else asked.allow_downgrade
    if feature is None and asked_version < 1:
        return f"{wrong} Feature {asked.feature} not found."
    controller = f"Local controller {cluster.brokers.controller.id}"
    if feature is None:
        return f"{wrong} {controller} does not support this feature."
    oldest, newest = feature
    if not oldest <= asked_version <= newest:
        return f"{wrong} {controller} only supports versions {oldest}-{newest}"
    if asked_version == newest:
        return None
    if asked.feature == "kraft.version":
        return f"{wrong} Can't downgrade the version of this feature."
    if not is_downgrade:
        return (
            f"{wrong} Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if asked.feature == "metadata.version":
        unsafe = call.version >= _KINDS and asked.upgrade_type == _UNSAFE
        why = (
            "Unsafe metadata downgrade is not supported in this version."
            if unsafe
            else "Refusing to perform the requested downgrade because it might delete metadata information."
        )
        return f"Unsupported metadata.version downgrade from {newest} to {asked_version}. {why}"
    if call.version >= _KINDS and call.body.validate_only:
        return None
    return f"{wrong} The newest version of each feature is finalized here and cannot be changed."


guard = of_cluster(Operation.ALTER)
