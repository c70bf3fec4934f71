"""Share groups (KIP-932) on the partition leaders: which member has acquired which records.

`loadwise.coordinator.groups.share` has the members and their assignments. This package mirrors Kafka's
``SharePartitionManager``. No I/O, no clock.
"""
