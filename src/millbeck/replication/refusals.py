"""Recently rejected batches of a partition, so that the batches right behind them are rejected for the same reason.

A producer has several batches in flight. When the first one is rejected because this node does not lead the partition
yet, or too few replicas are in sync, and the second one arrives when that is over, its sequence number has a gap. The
producer knows that and will retry both, in order. But OUT_OF_ORDER_SEQUENCE_NUMBER makes some clients treat every
unacknowledged batch as uncertain: librdkafka takes a new epoch for all partitions and resends in that epoch batches
that another partition may have written long ago, where they are not recognised as duplicates. And a partition that
does not know the producer would take the second batch for its first, and reject the first one forever. So both get the
same error.

Only producers with rejected batches are remembered, for a short time and up to a maximum number; any other producer
gets the out-of-order error.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ApiError

REMEMBERED_MS: Final = 5000
PRODUCERS_MAX: Final = 1000
_SEQUENCE_MASK: Final = 2**31 - 1
_AHEAD_MAX: Final = 2**30


class RejectedBatches:
    """The earliest rejected batch of each producer: epoch, sequence, reason and time."""

    __slots__ = ("_by_producer",)

    def __init__(self) -> None:
        self._by_producer: dict[int, tuple[int, int, type[ApiError], int]] = {}

    def __len__(self) -> int:
        return len(self._by_producer)

    def add(self, producer_id: int, epoch: int, base_sequence: int, reason: type[ApiError], now_ms: int) -> None:
        if self.before(producer_id, epoch, base_sequence, now_ms) is not None:
            # Keep the first of a series: the others depend on its retry.
            return
        if len(self._by_producer) >= PRODUCERS_MAX and producer_id not in self._by_producer:
            self._by_producer.clear()
        self._by_producer[producer_id] = (epoch, base_sequence, reason, now_ms)

    def before(self, producer_id: int, epoch: int, base_sequence: int, now_ms: int) -> type[ApiError] | None:
        """The reason for which an earlier batch of the producer was recently rejected, or None."""
        known = self._by_producer.get(producer_id)
        if known is None or known[0] != epoch or not 0 <= now_ms - known[3] <= REMEMBERED_MS:
            return None
        return known[2] if 0 < ((base_sequence - known[1]) & _SEQUENCE_MASK) < _AHEAD_MAX else None

    def forget(self, producer_id: int) -> None:
        """Forget the producer's rejected batch, because a batch of it was accepted."""
        self._by_producer.pop(producer_id, None)
