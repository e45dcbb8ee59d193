"""What is left of a table, and what the stream has to leave out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.connect.postgres.chunks import (
    Bound,
    DoneChunk,
    chunk_partition,
    done_chunks,
    gaps_of,
    reach_of,
)
from millbeck.pipeline.connect.postgres.copy_text import cells_of_line
from millbeck.pipeline.connect.postgres.offsets import (
    half_read,
    is_snapshot_under_way,
    offset_problem,
    resume_lsn,
    snapshot_begun,
    snapshot_completed,
)
from millbeck.pipeline.connect.postgres.snapshot_reach import SnapshotReach
from tests.unit.pipeline.connect.postgres.messages import table_of


def bound(number: int | None) -> Bound:
    return None if number is None else (str(number),)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.data())
def test_the_gaps_are_what_is_not_done(sizes: list[int], draw: st.DataObject) -> None:
    # Chunks end at running sums; the last one has no end.
    ends = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    chunks = [
        DoneChunk(number=place + 1, after=bound(([0, *ends])[place] or None), until=bound(end), lsn=1)
        for place, end in enumerate(ends)
    ]
    chunks.append(DoneChunk(number=len(ends) + 1, after=bound(ends[-1]), until=None, lsn=1))
    done = [chunk for chunk in chunks if draw.draw(st.booleans())]
    covered = {number for chunk in done for number in rows_of(chunk.after, chunk.until)}
    left: set[int] = set()
    for gap in gaps_of(done):
        assert gap.number not in {chunk.number for chunk in done}
        assert gap.is_closed or gap.until is None
        rows = rows_of(gap.after, gap.until)
        assert not left & rows
        left |= rows
    assert covered | left == set(range(1, 100))
    assert not covered & left


def rows_of(after: Bound, until: Bound) -> set[int]:
    first = 0 if after is None else int(after[0])
    last = 99 if until is None else int(until[0])
    return set(range(first + 1, last + 1))


def test_done_chunks_are_found_among_the_offsets() -> None:
    chunk = DoneChunk(number=2, after=("5",), until=None, lsn=9)
    positions = [
        ({"server": "shop"}, {"lsn": 1}),
        (chunk_partition("shop", "public.orders", 2), chunk.as_json()),
        (chunk_partition("other", "public.orders", 3), chunk.as_json()),
    ]
    assert done_chunks(positions, "shop") == {"public.orders": [chunk]}


def test_a_snapshot_in_one_piece_leaves_nothing_to_leave_out() -> None:
    table = table_of(id="int4!")
    done = {"public.orders": [DoneChunk(number=1, after=None, until=None, lsn=50)]}
    assert reach_of([table], done, 50).as_json() is None


def test_a_resumed_snapshot_has_ranges() -> None:
    first = DoneChunk(number=1, after=None, until=("10",), lsn=50)
    second = DoneChunk(number=2, after=("10",), until=("20",), lsn=100)
    third = DoneChunk(number=3, after=("20",), until=None, lsn=100)
    by_number = table_of(id="int4!")
    by_text = table_of("names", id="text!")
    done = {"public.orders": [third, first, second], "public.names": [first, second, third]}
    found = reach_of([by_number, by_text], done, 50)
    # The order of texts is the database's: such a table counts as read at the first position.
    assert found.as_json() == {"public.orders": [[10, 50], [None, 100]]}
    assert SnapshotReach.of(found.as_json()) == found
    assert found.has(by_number, [b"20"], 99)
    assert not found.has(by_number, [b"20"], 100)
    assert not found.has(by_number, [b"10"], 99)
    assert not found.has(by_text, [b"z"], 60)


def test_offsets_of_a_snapshot() -> None:
    begun, completed = snapshot_begun(9, 1, ["a.b"]), snapshot_completed(9, 1, None)
    assert is_snapshot_under_way(begun)
    assert not is_snapshot_under_way(completed)
    assert resume_lsn(completed) == 9
    assert half_read(completed) is None
    # As Debezium writes them.
    assert is_snapshot_under_way({"lsn": 9, "snapshot": "INITIAL", "snapshot_completed": False})
    assert not is_snapshot_under_way({"lsn": 9, "lsn_proc": 9})


def test_offsets_of_debezium_in_a_transaction() -> None:
    half = half_read({"lsn": 20, "lsn_commit": 5, "lsn_proc": 5, "txId": 7, "lsn_events_processed": 2})
    assert half is not None
    assert (half.transaction_id, half.lsn, half.count) == (7, 20, 2)
    assert half_read({"lsn": 20, "lsn_commit": 20, "txId": 7}) is None


def test_offsets_that_administrators_set() -> None:
    server = {"server": "shop"}
    assert offset_problem(server, {"lsn": 9}) is None
    assert offset_problem(server, None) is None
    assert offset_problem({}, {"lsn": 9}) is not None
    assert offset_problem(server, {}) is not None
    assert offset_problem(server, {"lsn": "9"}) is not None
    assert offset_problem(server, {"lsn": 9, "lsn_commit": -1}) is not None


def test_lines_of_copy() -> None:
    assert cells_of_line(b"1\t\\N\ta\\tb\\\\N\\n\t\n") == [b"1", None, b"a\tb\\N\n", b""]
    assert cells_of_line(b"\\b\\f\\r\\v\n") == [b"\b\f\r\v"]
