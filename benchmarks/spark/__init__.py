"""The Spark source beside Spark's own: wall time and CPU seconds. ``python -m benchmarks.spark``."""
