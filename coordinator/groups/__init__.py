"""Groups: what they are, how they change, and what is remembered of them. No I/O, no clock.

Three floors: `service` finds the group for an event, keeps records and offsets, and carries effects out. Below it are
the protocols, `classic`, `consumer`, `share` and `streams`, which know nothing of each other. On the ground are events,
effects, records, limits, offsets and deadlines, which all share, and what the two last have in common
(`heartbeat_group`).
"""
