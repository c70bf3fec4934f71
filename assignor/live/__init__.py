"""When a running group should move partitions, decided from readings: pure, with time as an argument.

A reading of the group's offsets gives arrival rates (`rates`) and what members manage (`capacity`). Both together are
the utilisation of every member (`demand`), now and after a rebalance (`judgement`). `restraint` decides whether that is
worth one, and `watch` is the whole, for the member that leads a group or for a coordinator.
"""
