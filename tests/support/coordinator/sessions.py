"""Asking a broker by hand, over one connection, and reducing its answers to what two brokers can be compared by."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Mapping, Sequence, Set
from typing import Any

from client_messages import client_request, client_response, request_bytes
from topics import WAIT_S, until

_GROUP = 32


class Session:
    """One connection, and shorthands for what is asked over it; answers are reduced to what can be compared."""

    def __init__(self, bootstrap_servers: str) -> None:
        host, _, port = bootstrap_servers.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_S)
        self.group = f"group-{uuid.uuid4()}"
        self.topic = f"topic-{uuid.uuid4()}"
        self.ids: list[str] = []
        self.is_kafka = False

    def close(self) -> None:
        self.socket.close()

    def ask(self, api: str, /, version: int, **values: Any) -> Any:
        return self.exchange(client_request(api, version, **values))

    def exchange(self, request: Any) -> Any:
        self.socket.sendall(request_bytes(request, framed=True))
        (size,) = struct.unpack(">i", self._read(4))
        return client_response(request).decode(self._read(size), version=request.API_VERSION, header=True)

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += (more := self.socket.recv(size - len(data)))
            assert more, "the broker hung up"
        return data

    def member(self, member_id: str | int) -> str:
        """A member by its number in the order of joining, or an id that is none."""
        return self.ids[member_id] if isinstance(member_id, int) else member_id

    def join(self, member_id: str | int = "", instance: str | None = None, **changes: Any) -> tuple[Any, ...]:
        fields: dict[str, Any] = {
            "version": 9,
            "group_id": self.group,
            "session_timeout_ms": 60_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"m"}],
            "reason": None,
        }
        reply = self.ask("JoinGroup", **fields | changes, member_id=self.member(member_id), group_instance_id=instance)
        if reply.member_id and reply.member_id not in self.ids:
            self.ids.append(reply.member_id)
        who = self.ids.index(reply.member_id) if reply.member_id in self.ids else reply.member_id
        leader = self.ids.index(reply.leader) if reply.leader in self.ids else reply.leader
        protocol = (reply.protocol_type, reply.protocol_name)
        return reply.error_code, reply.generation_id, protocol, leader, who, reply.skip_assignment, len(reply.members)

    def sync(self, member_id: str | int, generation: int = 1, instance: str | None = None, **changes: Any) -> Any:
        fields: dict[str, Any] = {
            "version": 5,
            "group_id": self.group,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [{"member_id": each, "assignment": b"for %d" % n} for n, each in enumerate(self.ids)],
        }
        reply = self.ask(
            "SyncGroup",
            **fields | changes,
            generation_id=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
        )
        return reply.error_code, reply.protocol_type, reply.protocol_name, reply.assignment

    def beat(self, member_id: str | int, generation: int = 1, instance: str | None = None) -> int:
        answer = self.ask(
            "Heartbeat",
            4,
            group_id=self.group,
            generation_id=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
        )
        return int(answer.error_code)

    def leave(self, *leavers: tuple[str | int, str | None]) -> Any:
        members = [{"member_id": self.member(each), "group_instance_id": instance} for each, instance in leavers]
        reply = self.ask("LeaveGroup", 5, group_id=self.group, members=members)
        return reply.error_code, [member.error_code for member in reply.members]

    def commit(self, member_id: str | int, generation: int, instance: str | None = None, version: int = 9) -> int:
        partition = {"partition_index": 0, "committed_offset": 5, "committed_metadata": None}
        answer = self.ask(
            "OffsetCommit",
            version,
            group_id=self.group,
            generation_id_or_member_epoch=generation,
            member_id=self.member(member_id),
            group_instance_id=instance,
            topics=[{"name": self.topic, "partitions": [partition]}],
        )
        return int(answer.topics[0].partitions[0].error_code)

    def describe(self) -> Any:
        (group,) = self.ask("DescribeGroups", 6, groups=[self.group]).groups
        members = [(member.client_id, member.member_metadata, member.member_assignment) for member in group.members]
        return group.error_code, group.group_state, group.protocol_type, group.protocol_data, members

    def listed(self, *types: str, states: Sequence[str] = ()) -> Any:
        """What ListGroups tells of the group, asked for groups of these types in these states (all without any)."""
        groups = self.ask("ListGroups", 5, states_filter=list(states), types_filter=list(types)).groups
        mine = [group for group in groups if group.group_id == self.group]
        return [(group.protocol_type, group.group_state, group.group_type) for group in mine]

    def alter_groups(self, configs: Mapping[str, Mapping[str, str | None]]) -> dict[str, int]:
        """Set configs of groups, or take them away where they are None; each group's error."""
        resources = [
            {
                "resource_type": _GROUP,
                "resource_name": group,
                "configs": [
                    {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
                    for name, value in wanted.items()
                ],
            }
            for group, wanted in configs.items()
        ]
        told = self.ask("IncrementalAlterConfigs", 1, resources=resources, validate_only=False).responses
        return {each.resource_name: int(each.error_code) for each in told}

    def delete(self) -> int:
        return int(self.ask("DeleteGroups", 2, groups_names=[self.group]).results[0].error_code)

    def create_topic(self, name: str | None = None, partitions: int = 1, replicas: int = 1) -> int:
        row = {
            "name": self.topic if name is None else name,
            "num_partitions": partitions,
            "replication_factor": replicas,
        }
        return int(self.ask("CreateTopics", 7, topics=[row], timeout_ms=60_000).topics[0].error_code)

    def wait_for_topic(self) -> None:
        """Wait until the broker leads all partitions: Kafka's metadata shows a leader before it is one."""
        request = client_request("Metadata", 12, topics=[{"name": self.topic}], allow_auto_topic_creation=False)
        until(lambda: not self.exchange(request).topics[0].error_code)
        for partition in range(len(self.exchange(request).topics[0].partitions)):
            until(lambda: not self.listed_offset(partition=partition).error_code)  # noqa: B023

    def advertised(self, keys: Set[int], feature: str) -> Any:
        """The versions of these APIs and of a feature, and the feature's level."""
        reply = self.ask("ApiVersions", 4, client_software_name="test", client_software_version="1")
        return (
            {each.api_key: (each.min_version, each.max_version) for each in reply.api_keys if each.api_key in keys},
            [(each.min_version, each.max_version) for each in reply.supported_features if each.name == feature],
            [each.max_version_level for each in reply.finalized_features if each.name == feature],
        )

    def listed_offset(
        self, timestamp: int = -1, *, version: int = 7, partition: int = 0, epoch: int = -1, isolation: int = 0
    ) -> Any:
        """What ListOffsets tells of one partition of the topic; by default, where it ends."""
        row = {"partition_index": partition, "current_leader_epoch": epoch, "timestamp": timestamp}
        topics = [{"name": self.topic, "partitions": [row]}]
        answer = self.ask("ListOffsets", version, isolation_level=isolation, topics=topics, timeout_ms=1000)
        (found,) = answer.topics[0].partitions
        return found

    def produce(self, records: bytes, acks: int = -1) -> tuple[int, int]:
        data = {"name": self.topic, "partition_data": [{"index": 0, "records": records}]}
        answer = self.ask("Produce", 9, acks=acks, timeout_ms=60_000, topic_data=[data])
        reply = answer.responses[0].partition_responses[0]
        return reply.error_code, reply.base_offset
