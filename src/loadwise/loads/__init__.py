"""``loadwise loads``: the load of topics by partition and hour, and the keys that make partitions uneven."""
