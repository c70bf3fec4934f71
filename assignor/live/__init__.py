"""When a running group should move partitions, decided from readings: pure, with time as an argument.

A reading passes the stages reading, arrivals, backlog, capacity, demand, judgement, restraint and decision, each a
module of that name. `watch` is the whole, for the member that leads a group or for a coordinator. `work` is what each
member measures of itself.
"""
