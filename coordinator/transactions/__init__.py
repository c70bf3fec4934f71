"""Transactions: one state machine a transactional id, their coordinator, and the offsets that wait for an end."""
