"""Acquires records of a share partition for a member from the batches of a fetch.

Offsets in a fetch that have no records for consumers (compacted away, transaction markers, aborted transactions) become
final at once. A record that was delivered often is likely to be one that crashes its consumers: from half the delivery
limit on, fewer such records are acquired at a time, and the last delivery of each is acquired alone (as in Kafka since
4.2), so that the records around it are not archived with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from millbeck.coordinator.share.partition.window import AcquisitionLock, InFlightBatch
from millbeck.coordinator.share.states import RecordState

if TYPE_CHECKING:
    from millbeck.coordinator.share.partition.share_partition import SharePartition

SPARING_COUNT_MIN: Final = 2


class FetchedBatch(NamedTuple):
    """A batch of the log. ``has_records`` is False if none of its records are visible to consumers."""

    first_offset: int
    last_offset: int
    has_records: bool


class Acquired(NamedTuple):
    first_offset: int
    last_offset: int
    delivery_count: int


class Acquisition:
    """One acquisition. The counts are maintained by methods of `SharePartition`."""

    __slots__ = ("_acquired", "_batch_size", "_is_over", "_is_strict", "_lock", "_partition", "_position", "_remaining")

    def __init__(
        self,
        partition: SharePartition,
        lock: AcquisitionLock,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        is_strict: bool,
    ) -> None:
        self._partition = partition
        self._lock = lock
        self._position = fetch_offset
        self._remaining = max_records
        self._batch_size = batch_size
        self._is_strict = is_strict
        self._is_over = False
        self._acquired: list[Acquired] = []

    def run(self, found: Iterable[FetchedBatch]) -> list[Acquired]:
        for batch in found:
            if self._is_over or self._remaining <= 0:
                break
            start_offset = self._partition.window.start_offset
            if batch.last_offset < start_offset:
                self._position = batch.last_offset + 1
                continue
            first = max(batch.first_offset, start_offset)
            self._pass_over(max(self._position, start_offset), first - 1)
            self._position = batch.last_offset + 1
            if batch.has_records:
                self._take_again(first, batch.last_offset)
                self._take_new(first, batch.last_offset)
            else:
                self._pass_over(first, batch.last_offset)
        return self._acquired

    def _pass_over(self, first: int, last: int) -> None:
        """Archive offsets that have no records for consumers."""
        partition = self._partition
        window = partition.window
        if first > last:
            return
        for run in window.overlapping(first, last):
            if run.state is RecordState.AVAILABLE:
                partition.has_passed_over = True
                for part in window.isolate(max(run.first, first), min(run.last, last)):
                    partition.put(part, RecordState.ARCHIVED)
        if last > window.end_offset:
            partition.append(last, RecordState.ARCHIVED, 0)
            partition.has_passed_over = True
        window.join(first, last)

    def _take_again(self, first: int, last: int) -> None:
        """Acquire records that are available again after a release or expired lock."""
        partition = self._partition
        window = partition.window
        if not partition.available_count:
            return
        limit = partition.settings.delivery_count_limit
        for run in window.overlapping(first, last):
            if self._is_over or (self._is_strict and self._remaining <= 0):
                return
            if run.state is not RecordState.AVAILABLE:
                continue
            begin, end = max(run.first, first), min(run.last, last)
            if run.delivery_count >= limit:
                # The delivery limit was lowered since.
                self._give_up(begin, end)
                continue
            if self._acquired and _is_last_delivery(run, limit):
                self._is_over = True
                return
            count = self._sparing(run, end - begin + 1)
            if self._is_strict:
                count = min(count, self._remaining)
            for part in window.isolate(begin, begin + count - 1):
                self._take(part)

    def _give_up(self, first: int, last: int) -> None:
        partition = self._partition
        partition.has_passed_over = True
        for part in partition.window.isolate(first, last):
            partition.give_up(part)
        partition.window.join(first, last)

    def _sparing(self, run: InFlightBatch, count: int) -> int:
        """Number of records to acquire: all of them, unless they were delivered often already."""
        limit = self._partition.settings.delivery_count_limit
        sparing_from = max(SPARING_COUNT_MIN, -(-limit // 2))
        if _is_last_delivery(run, limit):
            self._is_over = True
            return 1
        if run.delivery_count >= sparing_from and count > 1:
            self._is_over = True
            return max(1, count >> (run.delivery_count - sparing_from + 1))
        return count

    def _take_new(self, first: int, last: int) -> None:
        """Acquire records beyond the window, which is extended over them."""
        partition = self._partition
        window = partition.window
        begin = max(first, window.end_offset + 1)
        room = partition.settings.record_locks_max - len(window)
        if self._is_over or begin > last or self._remaining <= 0 or room <= 0:
            return
        if self._is_strict:
            last = min(last, begin + min(self._remaining, room) - 1)
        self._take(partition.append(last, RecordState.AVAILABLE, 0))

    def _take(self, run: InFlightBatch) -> None:
        run.delivery_count += 1
        run.lock = self._lock
        self._partition.put(run, RecordState.ACQUIRED)
        self._remaining -= len(run)
        acquired = self._acquired
        if acquired:
            before = acquired[-1]
            is_small = before.last_offset - before.first_offset + 1 < self._batch_size
            if is_small and before.last_offset + 1 == run.first and before.delivery_count == run.delivery_count:
                acquired[-1] = before._replace(last_offset=run.last)
                return
        acquired.append(Acquired(run.first, run.last, run.delivery_count))


def _is_last_delivery(run: InFlightBatch, limit: int) -> bool:
    """Whether this is the records' last delivery; always False with a limit of two, since every redelivery would be the
    last one."""
    return limit > SPARING_COUNT_MIN and run.delivery_count == limit - 1
