"""Windows with running results: the logic of one key, pure Python.

The records of a key arrive in order; each window keeps the partial results of its records (`partials`) in a
`WindowStore`. With ``update`` a window's result is emitted after the batch's last record, with ``every`` after each
record, with ``final`` when it closes. A window closes when the watermark has passed its end; a record whose windows
have all closed is late. Times are microseconds since 1970, except those of `WindowStore.wake`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

from millbeck.pipeline.topology.keyed import InputRecord
from millbeck.pipeline.topology.partials import PartialResults

UPDATE: Final = "update"
FINAL: Final = "final"
EVERY: Final = "every"
EMITS: Final = (UPDATE, FINAL, EVERY)

_MILLISECOND: Final = 1000


class Held(NamedTuple):
    """What is kept of a window, or of the records of one time: partial results, latest and last time."""

    partials: tuple[Any, ...]
    latest: int
    end: int


class WindowResult(NamedTuple):
    """``partials`` is None where a window no longer exists, because its session has changed."""

    start: int
    end: int
    partials: tuple[Any, ...] | None
    latest: int


class LateRecord(NamedTuple):
    """A record whose windows have closed."""

    record: InputRecord


class WindowStore(Protocol):
    """The windows of one key, by start."""

    def get(self, start: int) -> Held | None: ...

    def entries(self) -> Iterator[tuple[int, Held]]: ...

    def put(self, start: int, held: Held) -> None: ...

    def remove(self, start: int) -> None: ...

    def wake(self, at_ms: int) -> None:
        """Call `RunningWindows.expired` when the watermark has reached this time in milliseconds."""

    def take_due(self, closed_ms: int) -> list[int]:
        """Remove the calls up to this time, and return their times."""


Emitted = WindowResult | LateRecord


class RunningWindows(Protocol):
    def arrived(self, store: WindowStore, records: Iterator[InputRecord], closed: int) -> Iterator[Emitted]:
        """Process the records of one batch, whose values are the inputs; windows that end at ``closed`` or before have
        closed."""

    def expired(self, store: WindowStore, at: int) -> Iterator[WindowResult]:
        """Close the windows that end at this time, and remove them."""


@dataclass(frozen=True, slots=True)
class RunningTimeWindows:
    """Tumbling and hopping windows."""

    size: int
    advance: int
    partials: PartialResults
    emit: str

    def arrived(self, store: WindowStore, records: Iterator[InputRecord], closed: int) -> Iterator[Emitted]:
        changed: dict[int, Held] = {}
        for record in records:
            at: int = record.timestamp
            last = at - at % self.advance
            starts = [start for start in range(last, at - self.size, -self.advance) if start + self.size > closed]
            if not starts:
                yield LateRecord(record)
            one = self.partials.start(record.value)
            for start in reversed(starts):
                held = changed.get(start) or store.get(start)
                if held is None:
                    store.wake(_ms(start + self.size))
                    held = Held(one, at, start + self.size)
                else:
                    held = Held(self.partials.merge(held.partials, one), max(held.latest, at), held.end)
                changed[start] = held
                if self.emit == EVERY:
                    yield _result(start, held)
        for start, held in changed.items():
            store.put(start, held)
            if self.emit == UPDATE:
                yield _result(start, held)

    def expired(self, store: WindowStore, at: int) -> Iterator[WindowResult]:
        start = at - self.size
        held = store.get(start)
        if held is not None:
            store.remove(start)
            if self.emit == FINAL:
                yield _result(start, held)


@dataclass(frozen=True, slots=True)
class RunningSessions:
    """Sessions: records that are less than ``gap`` apart. A session's start and end are part of its key, so a session
    that grows is a new one, and the one before is told as gone."""

    gap: int
    partials: PartialResults
    emit: str

    def arrived(self, store: WindowStore, records: Iterator[InputRecord], closed: int) -> Iterator[Emitted]:
        yield from self.expired(store, closed)
        before = dict(store.entries())
        sessions = dict(before)
        touched: set[int] = set()
        for record in records:
            at: int = record.timestamp
            near = {start: held for start, held in sessions.items() if start - self.gap < at < held.end}
            end = max([at + self.gap, *[held.end for held in near.values()]])
            if end <= closed:
                yield LateRecord(record)
                continue
            merged = self._merged(near, record, end)
            start = min([at, *near])
            for old, held in near.items():
                del sessions[old]
                touched.discard(old)
                if self.emit == EVERY and (old, held.end) != (start, end):
                    yield WindowResult(old, held.end, None, merged.latest)
            sessions[start] = merged
            touched.add(start)
            if self.emit == EVERY:
                yield _result(start, merged)
        yield from self._stored(store, before, sessions, touched)

    def _merged(self, near: dict[int, Held], record: InputRecord, end: int) -> Held:
        latest: int = record.timestamp
        partials: tuple[Any, ...] | None = None
        for _, held in sorted(near.items()):
            partials = held.partials if partials is None else self.partials.merge(partials, held.partials)
            latest = max(latest, held.latest)
        one = self.partials.start(record.value)
        return Held(one if partials is None else self.partials.merge(partials, one), latest, end)

    def _stored(
        self, store: WindowStore, before: dict[int, Held], sessions: dict[int, Held], touched: set[int]
    ) -> Iterator[Emitted]:
        is_update = self.emit == UPDATE
        latest = max([sessions[start].latest for start in touched], default=0)
        for start, held in before.items():
            now = sessions.get(start)
            if now is None:
                store.remove(start)
            if is_update and (now is None or now.end != held.end):
                yield WindowResult(start, held.end, None, latest)
        for start in sorted(touched):
            held = sessions[start]
            store.put(start, held)
            store.wake(_ms(held.end))
            if is_update:
                yield _result(start, held)

    def expired(self, store: WindowStore, at: int) -> Iterator[WindowResult]:
        for start, held in list(store.entries()):
            if held.end <= at:
                store.remove(start)
                if self.emit == FINAL:
                    yield _result(start, held)


@dataclass(frozen=True, slots=True)
class RunningSlidingWindows:
    """Sliding windows as in Kafka Streams: for each record one that ends with it, and one that begins just after it if
    there are records in it. Both ends belong to a window. The store holds the records of each millisecond."""

    difference: int
    partials: PartialResults
    emit: str

    def arrived(self, store: WindowStore, records: Iterator[InputRecord], closed: int) -> Iterator[Emitted]:
        if self.emit == FINAL:
            # Before a record comes that is too late for some windows and not for others.
            for at_ms in store.take_due(closed // _MILLISECOND):
                yield from self.expired(store, at_ms * _MILLISECOND)
        times = dict(store.entries())
        changed: set[int] = set()
        touched: dict[int, None] = {}
        for record in records:
            at: int = record.timestamp - record.timestamp % _MILLISECOND
            if at + self.difference < closed:
                yield LateRecord(record)
                continue
            one = self.partials.start(record.value)
            held = times.get(at)
            merged = one if held is None else self.partials.merge(held.partials, one)
            times[at] = Held(merged, at, at)
            changed.add(at)
            starts = self._starts(times, at, is_new=held is None)
            starts = [start for start in starts if start + self.difference >= closed]
            if self.emit == EVERY:
                for start in starts:
                    yield self._window(times, start)
            touched |= dict.fromkeys(starts)
        for at in sorted(changed):
            store.put(at, times[at])
            # A window that begins just after this record closes as the last one that depends on it.
            store.wake(_ms(at + self.difference + 2 * _MILLISECOND))
        for start in touched:
            if self.emit == UPDATE:
                yield self._window(times, start)
            elif self.emit == FINAL:
                store.wake(_ms(start + self.difference + _MILLISECOND))

    def _starts(self, times: dict[int, Held], at: int, *, is_new: bool) -> list[int]:
        """The windows that contain the record at this time; for the first record of a time also the one that begins
        after it, unless that is there already as the one that ends with another record.
        """
        starts = {at - self.difference}
        after = at + _MILLISECOND
        if is_new and after + self.difference not in times:
            starts.update([after for other in times if after <= other <= after + self.difference])
        for other in times:
            if at < other <= at + self.difference:
                starts.add(other - self.difference)
            if at - self.difference - _MILLISECOND <= other < at:
                starts.add(other + _MILLISECOND)
        return sorted(starts)

    def _window(self, times: dict[int, Held], start: int) -> WindowResult:
        end = start + self.difference
        inside = [held for at, held in sorted(times.items()) if start <= at <= end]
        partials = inside[0].partials
        for held in inside[1:]:
            partials = self.partials.merge(partials, held.partials)
        return WindowResult(start, end, partials, inside[-1].latest)

    def expired(self, store: WindowStore, at: int) -> Iterator[WindowResult]:
        times = dict(store.entries())
        if self.emit == FINAL:
            start = at - _MILLISECOND - self.difference
            is_window = start + self.difference in times or start - _MILLISECOND in times
            if is_window and any(start <= time <= start + self.difference for time in times):
                yield self._window(times, start)
        for time in times:
            if time + self.difference + 2 * _MILLISECOND <= at:
                store.remove(time)


def _result(start: int, held: Held) -> WindowResult:
    return WindowResult(start, held.end, held.partials, held.latest)


def _ms(micros: int) -> int:
    """Round up to milliseconds, the unit of watermarks."""
    return -(-micros // _MILLISECOND)
