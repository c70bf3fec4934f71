"""Makes ``spark.read.format("loadwise")`` work with no ``register`` call.

Spark looks for installed top-level modules named ``pyspark_*`` and takes their ``DefaultSource``.
"""

from loadwise.spark_source.source import LoadwiseDataSource as DefaultSource

__all__ = ["DefaultSource"]
