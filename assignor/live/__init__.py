"""Decides from readings when a running group should move partitions: pure, with time as an argument."""
