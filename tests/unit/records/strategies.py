"""Records for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from millbeck.records.record import Record

KEYS = st.one_of(st.none(), st.binary(max_size=12))
VALUES = st.one_of(
    st.none(), st.binary(max_size=12), st.integers(60, 70).map(bytes), st.integers(8180, 8200).map(bytes)
)
HEADERS = st.lists(st.tuples(st.text(max_size=4), st.one_of(st.none(), st.binary(max_size=4))), max_size=3).map(tuple)
TIMESTAMPS = st.one_of(st.integers(-1, 2**41), st.integers(1_700_000_000_000, 1_700_000_000_100))


def records(min_size: int = 1, max_size: int = 8) -> st.SearchStrategy[list[Record]]:
    """Records without offsets."""
    one = st.builds(Record, st.just(-1), TIMESTAMPS, KEYS, VALUES, HEADERS)
    return st.lists(one, min_size=min_size, max_size=max_size)
