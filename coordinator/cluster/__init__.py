"""Brokers, topics and what is in them: leaders, logs, producers. No I/O and no clock."""
