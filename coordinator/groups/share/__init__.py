"""Share groups (KIP-932), whose members read the same partitions together.

Partition leaders decide which member gets which record.
"""
