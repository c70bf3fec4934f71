import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadwise.demo.coverage import Coverage

intervals = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1])), max_size=25
)


@given(intervals)
def test_the_union_is_that_of_sets(added: list[tuple[int, int]]) -> None:
    coverage = Coverage()
    offsets: set[int] = set()
    for start, stop in added:
        coverage.add(start, stop)
        offsets.update(range(start, stop))
    assert coverage.distinct == len(offsets)
    assert coverage.repeated == sum(stop - start for start, stop in added) - len(offsets)


@pytest.mark.parametrize("bad", [(3, 3), (4, 2), (-1, 2)])
def test_what_is_no_interval_is_refused(bad: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="not an interval"):
        Coverage().add(*bad)
