"""Committing offsets straight into the groups, as OffsetCommit does."""

from __future__ import annotations

from collections.abc import Mapping

from loadwise.coordinator.groups.effects import CommitReply
from loadwise.coordinator.groups.events import CommitOffsets, Committer
from loadwise.coordinator.groups.partitions import CommittedOffset, Partition
from loadwise.coordinator.groups.service.groups import Groups
from loadwise.protocol.error_codes import ErrorCode


def commit(
    groups: Groups, group_id: str, who: Committer, offsets: Mapping[Partition, CommittedOffset], now_ms: int = 0
) -> ErrorCode:
    """Commit, and answer with the error of all."""
    event = CommitOffsets(token=-1, who=who, offsets=offsets)
    (body,) = [reply.body for reply in groups.handle(group_id, event, now_ms) if reply.token == -1]
    assert isinstance(body, CommitReply)
    return body.error
