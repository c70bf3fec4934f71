"""Share groups (KIP-932) on the side of the partitions' leaders: which member has which records, and until when.

Who is in a group and which partitions its members read is the business of `loadwise.coordinator.groups.share`. Here is
what Kafka's ``SharePartitionManager`` does. No I/O, no clock.
"""
