"""The logic of stateful operators for one key: pure Python, the same in Spark's state and in tests.

A processor gets the records of its key in order and keeps its state in `KeyState`; it yields its output. Records of
several inputs arrive unordered in each batch. `in_order` orders them as a Kafka Streams task would: each input
partition by offset; among the partitions, the next record is the one with the smallest timestamp, and with equal
timestamps a table's record precedes a stream's.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from millbeck.pipeline.topology.partials import PartialResults

TABLE_SIDE: Final = 0
STREAM_SIDE: Final = 1
LEFT: Final = 0
RIGHT: Final = 1


class RecordOrder(NamedTuple):
    """The origin of a record; ``step`` numbers the records derived from one record."""

    partition: int
    offset: int
    step: int


class InputRecord(NamedTuple):
    side: int
    order: RecordOrder
    timestamp: Any
    value: Any


class OutputRecord(NamedTuple):
    """``values`` are the values of the output columns."""

    values: tuple[Any, ...]
    timestamp: Any
    order: RecordOrder


class KeyState(Protocol):
    """The state of one key: named slots that hold a value or None, and one map."""

    def get(self, slot: str) -> Any: ...

    def put(self, slot: str, value: Any) -> None:
        """Set a slot; None clears it."""

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """The entries of the map."""

    def put_entry(self, key: Any, value: Any) -> None:
        """Set an entry of the map; None removes it."""


def in_order(arrivals: Iterable[InputRecord]) -> Iterator[InputRecord]:
    lanes: dict[tuple[int, int], list[InputRecord]] = defaultdict(list)
    for arrival in arrivals:
        lanes[arrival.side, arrival.order.partition].append(arrival)
    heads: list[tuple[Any, int, int, int]] = []
    for (side, partition), lane in lanes.items():
        lane.sort(key=lambda arrival: arrival.order)
        heapq.heappush(heads, (lane[0].timestamp, side, partition, 0))
    while heads:
        _, side, partition, position = heapq.heappop(heads)
        lane = lanes[side, partition]
        yield lane[position]
        if position + 1 < len(lane):
            heapq.heappush(heads, (lane[position + 1].timestamp, side, partition, position + 1))


class KeyedProcessor(Protocol):
    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        """Process the records of one key in one batch, in order."""


@dataclass(frozen=True, slots=True)
class TableChangesProcessor:
    """Turns a table's records into changes (before, after). A tombstone for a missing key is ignored."""

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        current = slots.get("value")
        for _, order, timestamp, value in arrivals:
            if current is not None or value is not None:
                yield OutputRecord((current, value), timestamp, order)
            current = value
        slots.put("value", current)


@dataclass(frozen=True, slots=True)
class StreamTableJoin:
    """Joins a stream's record with the table's value at its time: (left, right), right None if there is none."""

    is_left: bool

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        found = slots.get("value")
        for side, order, timestamp, value in arrivals:
            if side == TABLE_SIDE:
                found = value
            elif value is not None and (found is not None or self.is_left):
                yield OutputRecord((value, found), timestamp, order)
        slots.put("value", found)


@dataclass(frozen=True, slots=True)
class TableTableJoin:
    """Joins two tables: each change of either emits (left, right), or (None, None) for a row that no longer exists."""

    needs_left: bool
    needs_right: bool

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        both = [slots.get("left"), slots.get("right")]
        for side, order, timestamp, value in arrivals:
            was_there = self._is_row(both)
            both[side] = value
            if self._is_row(both):
                yield OutputRecord((both[LEFT], both[RIGHT]), timestamp, order)
            elif was_there:
                yield OutputRecord((None, None), timestamp, order)
        slots.put("left", both[LEFT])
        slots.put("right", both[RIGHT])

    def _is_row(self, both: list[Any]) -> bool:
        left, right = both
        if (self.needs_left and left is None) or (self.needs_right and right is None):
            return False
        return left is not None or right is not None


@dataclass(frozen=True, slots=True)
class ForeignKeySubscription:
    """One key of the right table, and the rows of the left table that refer to it by foreign key.

    Records on `LEFT` have the ``key`` of a row and its ``version``, None if that row no longer refers to this key.
    Emits (left key, version, right) for each new reference, and for all of them when the right value changes.
    """

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        right = slots.get("value")
        # By the text of the key: a struct key is a dictionary here, which is not hashable.
        pointing = {repr(key): (key, version) for key, version in slots.entries()}
        answered = 0
        for side, _, timestamp, value in arrivals:
            asking: Iterable[tuple[Any, Any]] = ()
            if side == RIGHT:
                right = value
                asking = [told for _, told in sorted(pointing.items())]
            else:
                key, version = value["key"], value["version"]
                slots.put_entry(key, version)
                pointing.pop(repr(key), None)
                if version is not None:
                    pointing[repr(key)] = (key, version)
                    asking = [(key, version)]
            for key, version in asking:
                yield OutputRecord((key, version, right), timestamp, RecordOrder(-1, answered, 0))
                answered += 1
        slots.put("value", right)


@dataclass(frozen=True, slots=True)
class ForeignKeyResponse:
    """One row of the left table and the responses to it. Emits (left, right), or (None, None) when the row no longer
    exists.

    Records on `LEFT` have the row's ``value``, its ``version`` and whether it ``points`` to a key; records on `RIGHT`
    are the responses, with a ``value`` and the ``version`` of the row that they answer. Responses from the previous and
    the current foreign key may arrive in any order: only those for the row's current version are used.
    """

    is_left: bool

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        by_side: tuple[list[InputRecord], list[InputRecord]] = ([], [])
        for arrival in arrivals:
            by_side[arrival.side].append(arrival)
        row, version = slots.get("value"), slots.get("version")
        last: InputRecord | None = None
        joined: tuple[Any, Any] = (None, None)
        if by_side[LEFT]:
            last = by_side[LEFT][-1]
            row, version = last.value["value"], last.value["version"]
            slots.put("value", row)
            slots.put("version", version)
            if row is not None and not last.value["points"] and self.is_left:
                joined = (row, None)
        for answer in by_side[RIGHT]:
            if row is not None and answer.value["version"] == version:
                last = answer
                right = answer.value["value"]
                joined = (row, right) if right is not None or self.is_left else (None, None)
        if last is None:
            return
        was_row = slots.get("is_row") is not None
        if joined[0] is not None or was_row:
            slots.put("is_row", True if joined[0] is not None else None)
            yield OutputRecord(joined, last.timestamp, last.order)


@dataclass(frozen=True, slots=True)
class CogroupFold:
    """Aggregates several streams into one: emits the value after the batch's last record, once per batch, or after
    each record.

    ``adders`` are the functions of the streams, by side: each takes (aggregate, value) and returns the new aggregate.
    An aggregate that becomes None is deleted, and a tombstone is emitted.
    """

    start: Any
    adders: tuple[Callable[[Any, Any], Any], ...]
    is_every: bool = False

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        return _folded(slots, arrivals, self._next, is_every=self.is_every)

    def _next(self, aggregate: Any, arrival: InputRecord) -> Any:
        return self.adders[arrival.side](self.start if aggregate is None else aggregate, arrival.value)


@dataclass(frozen=True, slots=True)
class Fold:
    """Aggregates records: emits the value after the batch's last record, once per batch, or after each record.

    ``add`` and ``subtract`` take (aggregate, value) and return the new aggregate. With ``subtract``, each input has a
    ``value`` and ``is_added``. ``start`` is the initial aggregate; None means that the first value becomes the
    aggregate (a reduce). An aggregate that becomes None is deleted, and a tombstone is emitted.
    """

    start: Any
    add: Callable[[Any, Any], Any]
    subtract: Callable[[Any, Any], Any] | None = None
    is_every: bool = False

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        return _folded(slots, arrivals, self._next, is_every=self.is_every)

    def _next(self, aggregate: Any, arrival: InputRecord) -> Any:
        is_added, value = True, arrival.value
        if self.subtract is not None:
            is_added, value = value["is_added"], value["value"]
        if self.subtract is not None and not is_added:
            return self.subtract(aggregate, value)
        if aggregate is None:
            if self.start is None:
                return value
            aggregate = self.start
        return self.add(aggregate, value)


@dataclass(frozen=True, slots=True)
class PartialFold:
    """Aggregates by partial results, which are a dictionary with the fields p0, p1 and so on: emits them after the
    batch's last record, or after each record. The values are the inputs of ``partials``.
    """

    partials: PartialResults
    is_every: bool = False

    def arrived(self, slots: KeyState, arrivals: Iterator[InputRecord]) -> Iterator[OutputRecord]:
        return _folded(slots, arrivals, self._next, is_every=self.is_every)

    def _next(self, aggregate: Any, arrival: InputRecord) -> Any:
        one = self.partials.start(tuple(arrival.value.values()))
        names = [f"p{number}" for number in range(len(one))]
        # From the state it comes as a row, not as a dictionary.
        merged = one if aggregate is None else self.partials.merge(tuple(aggregate[name] for name in names), one)
        return dict(zip(names, merged, strict=True))


def _folded(
    slots: KeyState, arrivals: Iterator[InputRecord], following: Callable[[Any, InputRecord], Any], *, is_every: bool
) -> Iterator[OutputRecord]:
    """The aggregate after the last record that has a value, or after each of them."""
    aggregate = slots.get("value")
    last: InputRecord | None = None
    latest: Any = None
    for count, arrival in enumerate(arrivals):
        if arrival.value is None:
            continue
        aggregate = following(aggregate, arrival)
        last = arrival
        latest = arrival.timestamp if latest is None else max(latest, arrival.timestamp)
        if is_every:
            yield OutputRecord((aggregate,), latest, RecordOrder(-1, count, 0))
    if last is not None:
        slots.put("value", aggregate)
        if not is_every:
            yield OutputRecord((aggregate,), latest, last.order)
