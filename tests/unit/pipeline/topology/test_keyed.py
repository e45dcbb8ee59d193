"""What happens to one key, against plain replays; the slots are a dictionary here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.topology.keyed import (
    LEFT,
    RIGHT,
    STREAM_SIDE,
    TABLE_SIDE,
    CogroupFold,
    Fold,
    ForeignKeyResponse,
    ForeignKeySubscription,
    InputRecord,
    KeyedProcessor,
    OutputRecord,
    RecordOrder,
    StreamTableJoin,
    TableChangesProcessor,
    TableTableJoin,
    in_order,
)


class PlainSlots:
    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.map: dict[Any, Any] = {}

    def get(self, slot: str) -> Any:
        return self.held.get(slot)

    def put(self, slot: str, value: Any) -> None:
        self.held[slot] = value

    def entries(self) -> Iterator[tuple[Any, Any]]:
        return iter(list(self.map.items()))

    def put_entry(self, key: Any, value: Any) -> None:
        if value is None:
            self.map.pop(key, None)
        else:
            self.map[key] = value


def _replay(logic: KeyedProcessor, arrivals: list[InputRecord], batch_ends: set[int]) -> list[OutputRecord]:
    """In batches that end at these positions: state must carry over."""
    slots = PlainSlots()
    emitted: list[OutputRecord] = []
    batch: list[InputRecord] = []
    for position, arrival in enumerate(arrivals):
        batch.append(arrival)
        if position in batch_ends or position == len(arrivals) - 1:
            emitted += logic.arrived(slots, iter(batch))
            batch = []
    return emitted


def _arrivals(sides: int) -> st.SearchStrategy[list[InputRecord]]:
    entry = st.tuples(st.integers(0, sides - 1), st.none() | st.integers(0, 3))
    return st.lists(entry, max_size=12).map(
        lambda entries: [
            InputRecord(side, RecordOrder(0, offset, 0), offset, value) for offset, (side, value) in enumerate(entries)
        ]
    )


cuts = st.sets(st.integers(0, 11))


class TestOrder:
    def test_partitions_are_merged_by_the_time_of_their_next_record(self) -> None:
        pile = [
            InputRecord(STREAM_SIDE, RecordOrder(0, 1, 0), 30, "b"),
            InputRecord(STREAM_SIDE, RecordOrder(0, 0, 0), 10, "a"),
            InputRecord(TABLE_SIDE, RecordOrder(3, 7, 0), 20, "t"),
        ]
        assert [arrival.value for arrival in in_order(pile)] == ["a", "t", "b"]

    def test_a_partition_keeps_its_order_whatever_its_times(self) -> None:
        pile = [InputRecord(0, RecordOrder(0, offset, 0), 100 - offset, offset) for offset in (2, 0, 1)]
        assert [arrival.value for arrival in in_order(pile)] == [0, 1, 2]

    def test_a_table_goes_first_at_the_same_time(self) -> None:
        pile = [
            InputRecord(STREAM_SIDE, RecordOrder(0, 0, 0), 5, "s"),
            InputRecord(TABLE_SIDE, RecordOrder(0, 9, 0), 5, "t"),
        ]
        assert [arrival.value for arrival in in_order(pile)] == ["t", "s"]

    def test_steps_of_one_record_stay_in_order(self) -> None:
        pile = [InputRecord(0, RecordOrder(0, 0, step), 5, step) for step in (1, 0, 2)]
        assert [arrival.value for arrival in in_order(pile)] == [0, 1, 2]


@given(_arrivals(1), cuts)
def test_changes_say_what_was_there(arrivals: list[InputRecord], ends: set[int]) -> None:
    expected = []
    current = None
    for arrival in arrivals:
        if (current, arrival.value) != (None, None):
            expected.append((current, arrival.value))
        current = arrival.value
    assert [emitted.values for emitted in _replay(TableChangesProcessor(), arrivals, ends)] == expected


@given(_arrivals(2), cuts, st.booleans())
def test_a_lookup_finds_the_last_value_before(arrivals: list[InputRecord], ends: set[int], is_left: bool) -> None:
    expected = []
    found = None
    for arrival in arrivals:
        if arrival.side == TABLE_SIDE:
            found = arrival.value
        elif arrival.value is not None and (is_left or found is not None):
            expected.append((arrival.value, found))
    assert [emitted.values for emitted in _replay(StreamTableJoin(is_left), arrivals, ends)] == expected


@given(_arrivals(2), cuts, st.sampled_from([(True, True), (True, False), (False, False)]))
def test_joined_tables_end_as_a_join_of_their_last_values(
    arrivals: list[InputRecord], ends: set[int], needs: tuple[bool, bool]
) -> None:
    emitted = [one.values for one in _replay(TableTableJoin(*needs), arrivals, ends)]
    last: dict[int, Any] = {LEFT: None, RIGHT: None}
    rows: list[tuple[Any, Any]] = []
    for arrival in arrivals:
        last[arrival.side] = arrival.value
        both = (last[LEFT], last[RIGHT])
        lacks = any(need and value is None for need, value in zip(needs, both, strict=True))
        rows.append((None, None) if lacks else both)
    # A tombstone leaves only where a row was: the rest of the replay is what every step said.
    expected = []
    was_row = False
    for row in rows:
        is_row = row != (None, None)
        if is_row or was_row:
            expected.append(row)
        was_row = is_row
    assert emitted == expected


@given(st.data())
def test_a_foreign_key_join_ends_as_the_join_of_the_last_values(data: st.DataObject) -> None:
    """Rows a, b, c point at x or y, at nothing, or are gone; x and y change. Answers of a batch come in any order."""
    is_left = data.draw(st.booleans())
    places = {"x": PlainSlots(), "y": PlainSlots()}
    settling = {row: PlainSlots() for row in "abc"}
    rights: dict[str, Any] = {"x": None, "y": None}
    rows: dict[str, tuple[str | None, int] | None] = dict.fromkeys("abc")
    told: dict[str, Any] = dict.fromkeys("abc")
    offset = 0
    for _ in range(data.draw(st.integers(1, 4))):
        asked: dict[str, list[InputRecord]] = {"x": [], "y": []}
        settled: dict[str, list[InputRecord]] = {row: [] for row in "abc"}
        for _ in range(data.draw(st.integers(0, 6))):
            offset += 1
            order = RecordOrder(0, offset, 0)
            if data.draw(st.booleans()):
                place = data.draw(st.sampled_from("xy"))
                rights[place] = data.draw(st.none() | st.integers(10, 12))
                asked[place].append(InputRecord(RIGHT, order, offset, rights[place]))
                continue
            row = data.draw(st.sampled_from("abc"))
            before = rows[row]
            rows[row] = data.draw(st.none() | st.tuples(st.none() | st.sampled_from("xy"), st.integers(0, 9)))
            old = before[0] if before else None
            after = rows[row]
            new = after[0] if after else None
            version = str(offset)
            if old is not None and old != new:
                asked[old].append(InputRecord(LEFT, order, offset, {"key": row, "version": None}))
            if new is not None:
                asked[new].append(InputRecord(LEFT, order, offset, {"key": row, "version": version}))
            value = {"value": after and after[1], "version": version, "points": new is not None}
            settled[row].append(InputRecord(LEFT, order, offset, value))
        for place in data.draw(st.permutations("xy")):
            for emitted in ForeignKeySubscription().arrived(places[place], iter(asked[place])):
                key, version, right = emitted.values
                answer = {"version": version, "value": right}
                settled[key].append(InputRecord(RIGHT, emitted.order, emitted.timestamp, answer))
        for row, arrivals in settled.items():
            for emitted in ForeignKeyResponse(is_left).arrived(settling[row], iter(arrivals)):
                left, right = emitted.values
                assert (left, right) != (None, None) or told[row] is not None
                told[row] = None if left is None else (left, right)
        for row, state in rows.items():
            right = rights[state[0]] if state and state[0] else None
            expected = (state[1], right) if state and (is_left or right is not None) else None
            assert told[row] == expected


@given(_arrivals(1), cuts)
def test_a_fold_tells_the_aggregate_once_a_batch(arrivals: list[InputRecord], ends: set[int]) -> None:
    total = 0
    expected = []
    is_new = False
    for position, arrival in enumerate(arrivals):
        if arrival.value is not None:
            total += arrival.value
            is_new = True
        if (position in ends or position == len(arrivals) - 1) and is_new:
            expected.append(total)
            is_new = False
    folded = _replay(Fold(0, lambda aggregate, value: aggregate + value), arrivals, ends)
    assert [one.values[0] for one in folded] == expected


def test_a_reduce_begins_with_its_first_value() -> None:
    arrivals = [InputRecord(0, RecordOrder(0, offset, 0), offset, value) for offset, value in enumerate([5, 3, 9])]
    assert [one.values for one in _replay(Fold(None, min), arrivals, set())] == [(3,)]


def test_what_leaves_a_group_is_subtracted() -> None:
    values = [{"is_added": True, "value": 5}, {"is_added": True, "value": 2}, {"is_added": False, "value": 5}]
    arrivals = [InputRecord(0, RecordOrder(0, offset, 0), offset, value) for offset, value in enumerate(values)]
    fold = Fold(0, lambda total, value: total + value, lambda total, value: total - value)
    assert [one.values for one in _replay(fold, arrivals, {0})] == [(5,), (2,)]


def test_the_time_of_an_aggregate_is_that_of_its_latest_record() -> None:
    arrivals = [InputRecord(0, RecordOrder(0, offset, 0), at, 1) for offset, at in enumerate([7, 30, 12])]
    assert [one.timestamp for one in _replay(Fold(0, lambda total, value: total + value), arrivals, set())] == [30]


@given(st.lists(st.tuples(st.integers(0, 2), st.one_of(st.none(), st.integers(0, 9)))), st.sets(st.integers(0, 20)))
def test_streams_of_a_cogroup_add_to_one_aggregate_each_in_its_way(
    values: list[tuple[int, int | None]], ends: set[int]
) -> None:
    arrivals = [InputRecord(side, RecordOrder(0, n, 0), n, value) for n, (side, value) in enumerate(values)]
    adders = (lambda text, value: f"{text}+{value}", lambda text, value: f"{text}-{value}", lambda text, value: None)
    told = [one.values[0] for one in _replay(CogroupFold("0", adders), arrivals, ends)]
    aggregate = None
    expected = []
    changed = False
    for position, (side, value) in enumerate(values):
        if value is not None:
            aggregate = adders[side](aggregate if aggregate is not None else "0", value)
            changed = True
        if (position in ends or position == len(values) - 1) and changed:
            expected.append(aggregate)
            changed = False
    assert told == expected
