"""Groups: what they are, how they change, and what is remembered of them. No I/O, no clock.

Three floors: `service` finds the group for an event, keeps records and offsets, and carries effects out. Below it are
the two protocols, `classic` and `consumer`, which know nothing of each other. On the ground are events, effects,
records, limits, offsets and deadlines, which all share.
"""
