"""Assign partitions to the members of a consumer group: algorithms, load sources and client adapters."""

from loadwise.assignor.model import Assignment, Assignor, GroupSnapshot, Member, TopicPartition

__all__ = ["Assignment", "Assignor", "GroupSnapshot", "Member", "TopicPartition"]
