"""How much steering processes write into __consumer_offsets."""

from hypothesis import given
from hypothesis import strategies as st

from loadwise.steer.budget import MOST_BYTES, WINDOW_S, Budget


@given(st.lists(st.tuples(st.integers(1, 300_000), st.floats(0.1, 40.0)), max_size=60), st.integers(1, 4))
def test_no_minute_has_more_than_a_megabyte_of_all_processes(notes, processes):
    budget, now_s, written = Budget(), 0.0, []
    for size, gap_s in notes:
        now_s += gap_s
        if budget.refusal(size, processes, now_s) is None:
            budget.wrote(size, now_s)
            written.append((now_s, size * processes))
    for end_s, _ in written:
        assert sum(size for at_s, size in written if end_s - WINDOW_S < at_s <= end_s) <= MOST_BYTES
    assert budget.total * processes == sum(size for _, size in written)


def test_a_refusal_has_the_figures():
    budget = Budget()
    assert budget.refusal(300_000, 3, 0.0) is None
    assert "so 1,200,000 in __consumer_offsets" in budget.refusal(300_000, 4, 0.0)
    budget.wrote(300_000, 0.0)
    assert "600,000 were written into __consumer_offsets in the last minute" in budget.refusal(300_000, 2, 59.0)
    assert budget.refusal(300_000, 2, 60.0) is None
