"""Decides from readings when a running group should move partitions: pure, with time as an argument.

A reading passes the stages reading, arrivals, backlog, capacity, demand, judgement, restraint and decision, each a
module of that name; `watch` joins them. `work` measures the speed of each member, within that member.
"""
