"""The served APIs, one file for each API key. To add one, add a file and its name to this list."""

from __future__ import annotations

from importlib import import_module

from loadwise.coordinator.calls import Service

_MODULES = (
    "add_offsets_to_txn",
    "add_partitions_to_txn",
    "alter_client_quotas",
    "alter_configs",
    "alter_partition_reassignments",
    "alter_replica_log_dirs",
    "alter_user_scram_credentials",
    "alter_share_group_offsets",
    "api_versions",
    "consumer_group_describe",
    "consumer_group_heartbeat",
    "create_acls",
    "create_delegation_token",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_groups",
    "delete_records",
    "delete_share_group_offsets",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_delegation_token",
    "describe_groups",
    "describe_log_dirs",
    "describe_producers",
    "describe_quorum",
    "describe_share_group_offsets",
    "describe_topic_partitions",
    "describe_transactions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "end_txn",
    "expire_delegation_token",
    "fetch",
    "find_coordinator",
    "heartbeat",
    "incremental_alter_configs",
    "init_producer_id",
    "join_group",
    "leave_group",
    "list_config_resources",
    "list_groups",
    "list_offsets",
    "list_partition_reassignments",
    "list_transactions",
    "metadata",
    "offset_commit",
    "offset_delete",
    "offset_fetch",
    "offset_for_leader_epoch",
    "produce",
    "renew_delegation_token",
    "sasl_authenticate",
    "sasl_handshake",
    "share_acknowledge",
    "share_fetch",
    "share_group_describe",
    "share_group_heartbeat",
    "streams_group_describe",
    "streams_group_heartbeat",
    "sync_group",
    "txn_offset_commit",
    "unregister_broker",
    "update_features",
    "write_txn_markers",
)


def _service(module: str) -> Service:
    service: Service = import_module(f"{__name__}.{module}").SERVICE
    return service


SERVICES: dict[int, Service] = {service.api.key: service for service in map(_service, _MODULES)}
"""API key to service."""
