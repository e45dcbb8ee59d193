from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from millbeck.coordinator.share.batches import combine
from millbeck.coordinator.share.states import StateBatch

_batches = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(first, first + size, state, count),
        st.integers(0, 30),
        st.integers(0, 8),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


def _by_offset(batches: list[StateBatch], start_offset: int) -> dict[int, tuple[int, int]]:
    """What is said last of each offset."""
    return {
        offset: (batch.delivery_state, batch.delivery_count)
        for batch in batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
        if offset >= start_offset
    }


@given(_batches, _batches, st.integers(0, 40))
def test_what_is_said_last_of_an_offset_counts(
    first: list[StateBatch], second: list[StateBatch], start_offset: int
) -> None:
    known = combine([], first, 0)
    result = combine(known, second, start_offset)
    assert _by_offset(result, start_offset) == _by_offset(first + second, start_offset)
    for before, after in itertools.pairwise(result):
        assert before.last_offset < after.first_offset
        assert before.last_offset + 1 < after.first_offset or before[2:] != after[2:]
    assert all(batch.first_offset >= start_offset for batch in result)


def test_a_batch_in_the_middle_of_another_splits_it() -> None:
    assert combine([StateBatch(0, 9, 0, 1)], [StateBatch(3, 4, 2, 2)], 0) == [
        StateBatch(0, 2, 0, 1),
        StateBatch(3, 4, 2, 2),
        StateBatch(5, 9, 0, 1),
    ]
