"""Replaying a partition's records into a new shard, a few at a time, so that a long log never holds the loop.

The driver calls `advance` until it says that the end is reached and looks at its clock between the calls. Control
batches end transactions; records of a type this version does not know are skipped, as Kafka skips them; anything else
that cannot be read ends the load, and with it the shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID, Shard
from millbeck.records import batch, control

Buffer = bytes | memoryview

RECORDS_PER_STEP = 128


class Loader:
    def __init__(
        self, shard: Shard[Any], batches: Iterator[Buffer], reached: Callable[[int], None] = lambda _: None
    ) -> None:
        """``batches`` gives the partition's batches in order, each a whole one.

        ``reached`` is called with each batch's first offset before it is replayed."""
        self._shard = shard
        self._reached = reached
        self._steps = self._replay(batches)
        self.record_count = 0
        self.skipped_count = 0
        self.next_offset = 0
        """The offset after the last batch that was replayed."""

    def advance(self) -> bool:
        """Replay a few more records; True when there are none left."""
        return next(self._steps, None) is None

    def _replay(self, batches: Iterator[Buffer]) -> Iterator[bool]:
        for data in batches:
            header = batch.read_header(data)
            self._reached(header.base_offset)
            if header.is_control:
                self._replay_control(data, header.producer_id)
            else:
                producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
                for index, record in enumerate(batch.records_of(data)):
                    self._replay_record(record.key, record.value, record.offset, producer_id)
                    if index % RECORDS_PER_STEP == RECORDS_PER_STEP - 1:
                        yield True
            self.next_offset = header.next_offset
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
