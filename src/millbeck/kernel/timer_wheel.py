"""A hierarchical timing wheel without ticks: adding and cancelling cost the same with ten timers or a million.

Theory of operation. Time is whole milliseconds, written in base 64. The wheel has a current position; a timer is on
the level of the highest digit in which its deadline differs from the position, in the slot of that digit's value. So
level 0 has the rest of the current 64 ms, level 1 the rest of the current 4 s, and so on; everything on a lower level
is due before anything on a higher one, and within a level slots are due in order, because the position is below them
all. The position moves from one occupied slot to the next, never through empty ones: a slot of level 0 is due, a slot
of a higher level is redistributed to the levels below. A bit mask per level has the slots that may be occupied (a
cancelled timer leaves its bit set; the next search clears it), so finding the next slot is one bit operation.

The wheel never reads a clock. Timers with equal deadlines expire in the order they were added.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

_DIGIT_BITS = 6
_SLOT_COUNT = 1 << _DIGIT_BITS
_SLOT_MASK = _SLOT_COUNT - 1
_LEVEL_COUNT = 11  # 66 bits: every deadline that fits a Java long
_LEVEL_OF_BITS = [0, *(bit // _DIGIT_BITS for bit in range(_LEVEL_COUNT * _DIGIT_BITS))]
DEADLINE_MS_MAX = (1 << 63) - 1

Callback = Callable[[], object]


class Timer:
    """A pending timer. Cancelling is idempotent, and has no effect once the timer is due."""

    __slots__ = ("_bucket", "callback", "deadline_ms")

    def __init__(self, deadline_ms: int, callback: Callback, bucket: dict[Timer, None]) -> None:
        self.deadline_ms = deadline_ms
        self.callback = callback
        self._bucket = bucket
        bucket[self] = None

    def cancel(self) -> bool:
        """Cancel the timer; False when it was due or cancelled before."""
        # A pending timer is in exactly one bucket; one that is due or cancelled is no longer in its bucket.
        return self._bucket.pop(self, self) is None

    @property
    def is_pending(self) -> bool:
        return self in self._bucket


_deadline_of = attrgetter("deadline_ms")


class TimerWheel:
    __slots__ = ("_levels", "_occupied", "_position_ms")

    def __init__(self, now_ms: int) -> None:
        assert 0 <= now_ms <= DEADLINE_MS_MAX
        self._position_ms = now_ms
        self._levels: list[list[dict[Timer, None]]] = [[{} for _ in range(_SLOT_COUNT)] for _ in range(_LEVEL_COUNT)]
        self._occupied = [0] * _LEVEL_COUNT

    def add(self, deadline_ms: int, callback: Callback) -> Timer:
        """Add a timer that `advance` returns at or after the deadline; one in the past is due at the next
        `advance`.
        """
        position_ms = self._position_ms
        slot_ms = deadline_ms if deadline_ms > position_ms else position_ms
        level = _LEVEL_OF_BITS[(slot_ms ^ position_ms).bit_length()]
        slot = (slot_ms >> _DIGIT_BITS * level) & _SLOT_MASK
        bucket = self._levels[level][slot]
        if not bucket:
            self._occupied[level] |= 1 << slot
        return Timer(deadline_ms, callback, bucket)

    def __len__(self) -> int:
        return sum(len(bucket) for level in self._levels for bucket in level)

    def next_deadline_ms(self) -> int | None:
        """When to call `advance` next: never later than the earliest deadline; None without timers.

        It is exact within the current 64 ms. Beyond, it is the start of the earliest timer's slot, where `advance` may
        return nothing and only move timers to lower levels: that keeps this call as cheap as the others.
        """
        found = self._next_slot()
        return None if found is None else found[2]

    def advance(self, now_ms: int) -> list[Callback]:
        """The callbacks of all timers due at ``now_ms``, by deadline. A time before the last one has no effect."""
        due: list[Timer] = []
        while (found := self._next_slot()) is not None:
            level, slot, start_ms = found
            if start_ms > now_ms:
                break
            self._position_ms = start_ms
            bucket = self._levels[level][slot]
            self._levels[level][slot] = {}
            self._occupied[level] &= ~(1 << slot)
            if level == 0:
                due.extend(bucket)
                bucket.clear()
            else:
                self._deal_out(bucket)
        self._position_ms = max(self._position_ms, now_ms)
        due.sort(key=_deadline_of)
        return [timer.callback for timer in due]

    def _next_slot(self) -> tuple[int, int, int] | None:
        """(level, slot, start in ms) of the earliest occupied slot."""
        for level, occupied in enumerate(self._occupied):
            while occupied:
                lowest_bit = occupied & -occupied
                slot = lowest_bit.bit_length() - 1
                if self._levels[level][slot]:
                    shift = _DIGIT_BITS * level
                    prefix = self._position_ms >> shift + _DIGIT_BITS
                    return level, slot, (prefix << _DIGIT_BITS | slot) << shift
                occupied ^= lowest_bit
                self._occupied[level] = occupied
        return None

    def _deal_out(self, bucket: dict[Timer, None]) -> None:
        """Redistribute a bucket's timers to the levels below; the position is the start of their slot."""
        position_ms = self._position_ms
        for timer in bucket:
            deadline_ms = timer.deadline_ms
            level = _LEVEL_OF_BITS[(deadline_ms ^ position_ms).bit_length()]
            slot = (deadline_ms >> _DIGIT_BITS * level) & _SLOT_MASK
            self._occupied[level] |= 1 << slot
            lower = self._levels[level][slot]
            lower[timer] = None
            timer._bucket = lower
