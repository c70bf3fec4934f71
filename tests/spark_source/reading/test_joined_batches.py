"""Small Arrow batches become fewer, with the same records: checked against Arrow's own tables."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs PySpark, which the extra spark brings")

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from loadwise.spark_source.reading.tasks import FEW_BYTES, FEW_RECORDS, joined

SIZES = st.lists(st.sampled_from([1, 10, 400, 700, FEW_RECORDS, 5_000]), max_size=30)


def batches(sizes, bytes_of_record=8):
    schema = pa.schema([("n", pa.int64()), ("value", pa.binary())])
    value, at = bytes(bytes_of_record), 0
    for size in sizes:
        yield pa.record_batch([pa.array(range(at, at + size)), pa.array([value] * size, pa.binary())], schema)
        at += size


@given(SIZES, st.sampled_from([1, 300, 10_000]))
def test_the_records_and_their_order_stay(sizes, most):
    found = list(joined(batches(sizes), most))
    assert [n for batch in found for n in batch["n"].to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows <= max(most, *sizes) for batch in found)
    assert len(found) <= len(sizes)


def test_many_small_batches_become_one():
    assert [batch.num_rows for batch in joined(batches([1] * 12), 10_000)] == [12]
    assert [batch.num_rows for batch in joined(batches([400] * 5), 10_000)] == [800, 800, 400]
    assert [batch.num_rows for batch in joined(batches([1] * 5), 2)] == [2, 2, 1]


def test_large_records_are_not_held_back():
    sizes = [batch.nbytes for batch in joined(batches([1] * 6, FEW_BYTES // 3 + 1), 10_000)]
    assert len(sizes) == 3
    first = joined(batches([1] * 3, 2 * FEW_BYTES), 10_000)
    assert [batch.num_rows for batch in first] == [1, 1, 1]


def test_batches_without_columns_keep_their_rows():
    empty = pa.RecordBatch.from_struct_array(pa.array([{}] * 3, pa.struct([])))
    assert [batch.num_rows for batch in joined(iter([empty] * 4), 10_000)] == [12]
