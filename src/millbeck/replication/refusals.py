"""Batches that a partition could not take just now, so that what was sent right behind them is refused for that reason.

A producer has several batches on their way. When the first one is refused because the partition is not led here yet, or
lacks replicas, and the second one comes a moment later, when all is well, its sequence number shows a gap. That is
nothing the producer does not know: it will send both again, in order. But OUT_OF_ORDER_SEQUENCE_NUMBER makes some
clients doubt everything they have not heard of: librdkafka takes a new epoch for all partitions, and then repeats in
that epoch, where nobody recognises it, what another partition may have written long ago. And a partition that knows
nothing of the producer would take the second batch for its first, and the first never. So both get the same answer.

Only producers are remembered whose batches were refused, for a short while, and so many of them at most: whoever is
forgotten is told of the gap.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError

REMEMBERED_MS: Final = 5000
PRODUCERS_MAX: Final = 1000
_SEQUENCE_MASK: Final = 2**31 - 1
_AHEAD_MAX: Final = 2**30


class Refusals:
    """The earliest refused batch of each producer: epoch, sequence, reason, and when that was."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, tuple[int, int, type[ApiError], int]] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def add(self, producer_id: int, epoch: int, base_sequence: int, reason: type[ApiError], now_ms: int) -> None:
        if self.before(producer_id, epoch, base_sequence, now_ms) is not None:
            # The first of a row counts: it is what must come again before the others.
            return
        if len(self._by_producer) >= PRODUCERS_MAX and producer_id not in self._by_producer:
            self._by_producer.clear()
        self._by_producer[producer_id] = (epoch, base_sequence, reason, now_ms)

    def before(self, producer_id: int, epoch: int, base_sequence: int, now_ms: int) -> type[ApiError] | None:
        """Why a batch ahead of this one was refused a moment ago, if one was."""
        known = self._by_producer.get(producer_id)
        if known is None or known[0] != epoch or not 0 <= now_ms - known[3] <= REMEMBERED_MS:
            return None
        return known[2] if 0 < ((base_sequence - known[1]) & _SEQUENCE_MASK) < _AHEAD_MAX else None

    def forget(self, producer_id: int) -> None:
        """A batch of it was taken: the row goes on."""
        self._by_producer.pop(producer_id, None)
