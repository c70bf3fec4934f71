"""``loadwise loads``: what topics have held, by partition and hour, and which keys make their partitions uneven."""
