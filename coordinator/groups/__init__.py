"""Groups: their state, their protocols and their records. No I/O, no clock.

There are three layers. `service` finds the group for an event, stores records and offsets, and carries out effects.
Below it are the protocols `classic`, `consumer`, `share` and `streams`, which do not depend on each other. The lowest
layer has events, effects, records, limits, offsets and deadlines, and `heartbeat_group`, which share groups and streams
groups have in common.
"""
