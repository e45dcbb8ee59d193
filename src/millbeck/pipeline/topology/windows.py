"""Window definitions: lengths as Spark interval strings or `timedelta`, validated at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from millbeck.pipeline.errors import TopologyError

Length = str | timedelta

_UNITS_MS: Final = {"millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_PIECE: Final = re.compile(r"([0-9]+)\s*([a-z]+?)s?(?:\s+|$)")


def length_ms(length: Length) -> int:
    """Milliseconds of ``"1 minute 30 seconds"`` or of a `timedelta`; raises `TopologyError`."""
    if isinstance(length, timedelta):
        return round(length.total_seconds() * 1000)
    total, position = 0, 0
    text = length.strip().lower()
    while position < len(text):
        piece = _PIECE.match(text, position)
        if piece is None or piece[2] not in _UNITS_MS:
            raise TopologyError(f"{length!r} is not a length of time; write it like '5 minutes' or '1 hour 30 minutes'")
        total += int(piece[1]) * _UNITS_MS[piece[2]]
        position = piece.end()
    if not text:
        raise TopologyError("a length of time is empty; write it like '5 minutes'")
    return total


def interval(milliseconds: int) -> str:
    return f"{milliseconds} milliseconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """Windows of one size, one every ``advance``; records later than ``grace`` after a window's end are dropped."""

    size_ms: int
    advance_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionWindow:
    """A session of a key consists of records that are less than ``gap`` apart."""

    gap_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """Windows that end with a record, or begin just after one, and hold records at most ``difference`` apart."""

    difference_ms: int
    grace_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindow:
    """A join window: the right record's time is from ``before`` earlier to ``after`` later than the left record's."""

    before_ms: int
    after_ms: int
    grace_ms: int


Window = TimeWindow | SessionWindow | SlidingWindow


def tumbling(size: Length, *, grace: Length = "0 seconds") -> TimeWindow:
    return hopping(size, advance=size, grace=grace)


def hopping(size: Length, *, advance: Length, grace: Length = "0 seconds") -> TimeWindow:
    size_ms, advance_ms, grace_ms = length_ms(size), length_ms(advance), length_ms(grace)
    if not 0 < advance_ms <= size_ms:
        raise TopologyError(
            f"windows of {size} cannot advance by {advance}: it must be above zero and at most the size"
        )
    return TimeWindow(size_ms=size_ms, advance_ms=advance_ms, grace_ms=grace_ms)


def session(gap: Length, *, grace: Length = "0 seconds") -> SessionWindow:
    gap_ms = length_ms(gap)
    if gap_ms <= 0:
        raise TopologyError("the gap of a session must be above zero")
    return SessionWindow(gap_ms=gap_ms, grace_ms=length_ms(grace))


def sliding(difference: Length, *, grace: Length = "0 seconds") -> SlidingWindow:
    """Sliding windows as in Kafka Streams: a key's records that are at most ``difference`` apart."""
    difference_ms = length_ms(difference)
    if difference_ms <= 0:
        raise TopologyError("the time difference of a sliding window must be above zero")
    return SlidingWindow(difference_ms=difference_ms, grace_ms=length_ms(grace))


def sliding_join(
    within: Length | None = None,
    *,
    before: Length | None = None,
    after: Length | None = None,
    grace: Length = "0 seconds",
) -> JoinWindow:
    """A join window; ``within`` is both ``before`` and ``after``."""
    if within is not None and (before is not None or after is not None):
        raise TopologyError("give either within, or before and after")
    if within is None and before is None and after is None:
        raise TopologyError("a join of two streams needs a window: within, or before and after")
    symmetric: Length = within if within is not None else "0 seconds"
    return JoinWindow(
        before_ms=length_ms(before if before is not None else symmetric),
        after_ms=length_ms(after if after is not None else symmetric),
        grace_ms=length_ms(grace),
    )
