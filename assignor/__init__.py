"""Who reads which partition: the assignors, the group they are given and the ways they are plugged into clients."""

from loadwise.assignor.model import Assignment, Assignor, GroupSnapshot, Member, TopicPartition

__all__ = ["Assignment", "Assignor", "GroupSnapshot", "Member", "TopicPartition"]
