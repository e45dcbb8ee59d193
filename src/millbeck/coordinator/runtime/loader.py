"""Loads a shard: replays its partition's records a few at a time, so that a long log never blocks the event loop.

The driver calls `advance` until it returns True and checks its clock between calls. Control batches end transactions;
records of an unknown type are skipped, as in Kafka; any other malformed record fails the load and with it the shard.

The topic is compacted, so only the latest record of each key counts, whether or not compaction has run. A scan of the
keys of all batches before the replay avoids most of the work where a group commits repeatedly. Uncommitted records may
still be truncated, and transactional records depend on their marker: such records are all replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID, Shard
from millbeck.records import batch, control
from millbeck.records.header import BatchHeader

Buffer = bytes | memoryview

RECORDS_PER_STEP = 128
_NEEDLESS = 1
"""Mark set by `records.native.compaction`: a later record has the same key."""


class Loader:
    def __init__(
        self,
        shard: Shard[Any],
        batches: Iterable[Buffer],
        reached: Callable[[int], None] = lambda _: None,
        committed_offset: int = 0,
    ) -> None:
        """``batches`` yields the partition's complete batches in order.

        ``reached`` is called with each batch's first offset before it is replayed. A record below ``committed_offset``
        is not replayed if a later record of these batches has its key.
        """
        self._shard = shard
        self._reached = reached
        self._committed_offset = committed_offset
        self._needless: dict[int, bytes] = {}
        """For each scanned batch, by its base offset, one mark per record."""
        self._steps = self._replay(batches)
        self.record_count = 0
        self.skipped_count = 0
        self.next_offset = 0
        """The offset after the last batch that was replayed."""

    def advance(self) -> bool:
        """Replay a few more records; return True at the end."""
        return next(self._steps, None) is None

    def _replay(self, batches: Iterable[Buffer]) -> Iterator[bool]:
        if self._committed_offset:
            batches = list(batches)
            yield from self._look_ahead(batches)
        for data in batches:
            header = batch.read_header(data)
            self._reached(header.base_offset)
            if header.is_control:
                self._replay_control(data, header.producer_id)
            else:
                yield from self._replay_data(data, header)
            self.next_offset = header.next_offset
            yield True

    def _look_ahead(self, batches: Iterable[Buffer]) -> Iterator[bool]:
        """Mark records that are superseded by later ones. Malformed records are left for the replay to report."""
        from millbeck.records.native.compaction import gather  # not imported on nodes without groups

        latest: dict[bytes, int] = {}
        marks = bytearray()
        places: list[tuple[int, int]] = []
        for data in batches:
            header = batch.verify(data)
            if header.is_control or header.is_transactional or header.next_offset > self._committed_offset:
                continue
            payload = batch.payload_of(data, header)
            if gather(payload, 0, header.record_count, 0, 0, latest, marks)[0]:
                return
            places.append((header.base_offset, len(marks)))
            yield True
        begin = 0
        for base_offset, end in places:
            self._needless[base_offset] = bytes(marks[begin:end])
            begin = end

    def _replay_data(self, data: Buffer, header: BatchHeader) -> Iterator[bool]:
        producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
        marks = self._needless.get(header.base_offset)
        if marks is not None and marks.count(_NEEDLESS) == len(marks):
            self.record_count += header.record_count
            return
        for index, record in enumerate(batch.records_of(data)):
            if marks is not None and marks[index] == _NEEDLESS:
                self.record_count += 1
            else:
                self._replay_record(record.key, record.value, record.offset, producer_id)
            if index % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
                yield True

    def _replay_record(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        self.record_count += 1
        record = None if key is None else self._shard.decode(key, value)
        if record is None:
            self.skipped_count += 1
        else:
            self._shard.replay(record, offset=offset, producer_id=producer_id)

    def _replay_control(self, data: Buffer, producer_id: int) -> None:
        for record in batch.records_of(data):
            self.record_count += 1
            marker = control.decode(record)
            if isinstance(marker, control.EndTransaction):
                self._shard.replay_end_transaction(producer_id=producer_id, is_committed=marker.committed)
