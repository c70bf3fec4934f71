"""The APIs that are served: one file an API key. A new one is a file and a name in this list."""

from __future__ import annotations

from loadwise.coordinator.apis import (
    api_versions,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_groups,
    delete_topics,
    describe_cluster,
    describe_configs,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from loadwise.coordinator.calls import Service

SERVICES: dict[int, Service] = {
    module.SERVICE.api.key: module.SERVICE
    for module in (
        api_versions,
        consumer_group_describe,
        consumer_group_heartbeat,
        create_partitions,
        create_topics,
        delete_groups,
        delete_topics,
        describe_cluster,
        describe_configs,
        describe_groups,
        fetch,
        find_coordinator,
        heartbeat,
        init_producer_id,
        join_group,
        leave_group,
        list_groups,
        list_offsets,
        metadata,
        offset_commit,
        offset_delete,
        offset_fetch,
        offset_for_leader_epoch,
        produce,
        sync_group,
    )
}
"""API key to service."""
