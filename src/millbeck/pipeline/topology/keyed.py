"""What happens to one key when its records come: pure Python, the same in Spark's state and in tests.

A logic is told of each record of its key in order and keeps what it must in `Slots`; it yields what leaves. Records of
several inputs arrive in one pile for each batch. `in_order` lays them out as a stream task would have taken them: each
input partition in offset order, and of the partitions always the one whose next record is the oldest; a table's record
before a stream's of the same time.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

TABLE_SIDE: Final = 0
STREAM_SIDE: Final = 1
LEFT: Final = 0
RIGHT: Final = 1


class Order(NamedTuple):
    """Where a record came from; ``step`` tells several apart that one record became."""

    partition: int
    offset: int
    step: int


class Arrival(NamedTuple):
    side: int
    order: Order
    timestamp: Any
    value: Any


class Emitted(NamedTuple):
    """``values`` are what the logic's output columns get."""

    values: tuple[Any, ...]
    timestamp: Any
    order: Order


class Slots(Protocol):
    """The state of one key: named slots that hold a value or None, and one map."""

    def get(self, slot: str) -> Any: ...

    def put(self, slot: str, value: Any) -> None:
        """None empties the slot."""

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Of the map."""

    def put_entry(self, key: Any, value: Any) -> None:
        """None removes it."""


def in_order(arrivals: Iterable[Arrival]) -> Iterator[Arrival]:
    lanes: dict[tuple[int, int], list[Arrival]] = defaultdict(list)
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


class Logic(Protocol):
    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        """The records of one key in one batch, in order."""


@dataclass(frozen=True, slots=True)
class Changes:
    """A table's records become changes: (before, after). A record that changes nothing from nothing is left out."""

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        current = slots.get("value")
        for _, order, timestamp, value in arrivals:
            if current is not None or value is not None:
                yield Emitted((current, value), timestamp, order)
            current = value
        slots.put("value", current)


@dataclass(frozen=True, slots=True)
class Lookup:
    """A stream's record meets the table's value of its time: (left, right), right None when the table has none."""

    is_left: bool

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        found = slots.get("value")
        for side, order, timestamp, value in arrivals:
            if side == TABLE_SIDE:
                found = value
            elif value is not None and (found is not None or self.is_left):
                yield Emitted((value, found), timestamp, order)
        slots.put("value", found)


@dataclass(frozen=True, slots=True)
class TableJoin:
    """Two tables: each change of either gives (left, right), or (None, None) for a row that is there no more."""

    needs_left: bool
    needs_right: bool

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        both = [slots.get("left"), slots.get("right")]
        for side, order, timestamp, value in arrivals:
            was_there = self._is_row(both)
            both[side] = value
            if self._is_row(both):
                yield Emitted((both[LEFT], both[RIGHT]), timestamp, order)
            elif was_there:
                yield Emitted((None, None), timestamp, order)
        slots.put("left", both[LEFT])
        slots.put("right", both[RIGHT])

    def _is_row(self, both: list[Any]) -> bool:
        left, right = both
        if (self.needs_left and left is None) or (self.needs_right and right is None):
            return False
        return left is not None or right is not None


@dataclass(frozen=True, slots=True)
class Pointed:
    """One key of the right table, and the rows of the left one that point at it: who asks, and what they are told.

    What comes on `LEFT` has the ``key`` of a row and its ``version``, None when that row points here no more. Emits
    (left key, version, right): an answer to each who begins to point, and to all of them when the right value changes.
    """

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        right = slots.get("value")
        # By the text of the key: a key with parts is a dictionary here.
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
                yield Emitted((key, version, right), timestamp, Order(-1, answered, 0))
                answered += 1
        slots.put("value", right)


@dataclass(frozen=True, slots=True)
class Settled:
    """One row of the left table and the answers it gets: (left, right), or (None, None) when the row is there no more.

    What comes on `LEFT` has the row's ``value``, its ``version`` and whether it ``points`` anywhere; on `RIGHT` come
    answers, with the ``version`` they are for and a ``value``. Answers may overtake each other on their way here, from
    the key that was pointed at before and from the one that is now: only those for the row as it is count.
    """

    is_left: bool

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        by_side: tuple[list[Arrival], list[Arrival]] = ([], [])
        for arrival in arrivals:
            by_side[arrival.side].append(arrival)
        row, version = slots.get("value"), slots.get("version")
        last: Arrival | None = None
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
            yield Emitted(joined, last.timestamp, last.order)


@dataclass(frozen=True, slots=True)
class Fold:
    """Aggregates: the value after the batch's last record, once a batch.

    ``add`` and ``subtract`` take (aggregate, value) and return the new aggregate. With ``subtract``, what
    comes has a ``value`` and ``is_added``. ``start`` is the aggregate before the first; None means that the first value
    is it (a reduce). An aggregate that becomes None is gone, and a tombstone leaves.
    """

    start: Any
    add: Callable[[Any, Any], Any]
    subtract: Callable[[Any, Any], Any] | None = None

    def arrived(self, slots: Slots, arrivals: Iterator[Arrival]) -> Iterator[Emitted]:
        aggregate = slots.get("value")
        last: Arrival | None = None
        latest: Any = None
        for arrival in arrivals:
            if arrival.value is None:
                continue
            aggregate = self._next(aggregate, arrival.value)
            last = arrival
            latest = arrival.timestamp if latest is None else max(latest, arrival.timestamp)
        if last is not None:
            slots.put("value", aggregate)
            yield Emitted((aggregate,), latest, last.order)

    def _next(self, aggregate: Any, value: Any) -> Any:
        is_added = True
        if self.subtract is not None:
            is_added, value = value["is_added"], value["value"]
        if self.subtract is not None and not is_added:
            return self.subtract(aggregate, value)
        if aggregate is None:
            if self.start is None:
                return value
            aggregate = self.start
        return self.add(aggregate, value)
