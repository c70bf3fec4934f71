"""The Spark source beside Spark's own: wall time, CPU seconds, even tasks. ``python -m benchmarks.spark``."""
