"""Rebuilding of derived state from the batches: indexes, aborted transactions and producer state.

These functions read headers (and the few control batches) and verify no checksums: `recovery` and `scrub` do that. All
of them raise `CorruptSegment` when they meet an invalid batch.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from millbeck.kernel.environment import Bytes
from millbeck.records import control
from millbeck.records.batch import BatchHeader, records_of
from millbeck.storage import producer_snapshot, producer_windows
from millbeck.storage.offset_index import CorruptIndex, OffsetIndex
from millbeck.storage.producer_snapshot import CorruptSnapshot
from millbeck.storage.producer_state import AppendOrigin, ProducerStateManager
from millbeck.storage.segment import Segment
from millbeck.storage.time_index import NO_TIMESTAMP, TimeIndex
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

logger = logging.getLogger(__name__)


class IndexBuilder:
    """Builds the indexes of a segment from its batches, by the same rule as appends."""

    __slots__ = ("_segment", "_since_index", "max_timestamp", "max_timestamp_offset", "offset_index", "time_index")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._since_index = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = segment.base_offset
        self.offset_index = OffsetIndex(segment.base_offset, segment.index_size_max)
        self.time_index = TimeIndex(segment.base_offset, segment.index_size_max)

    def add(self, position: int, header: BatchHeader) -> None:
        if header.max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = header.max_timestamp, header.last_offset
        if self._since_index > self._segment.index_interval_bytes:
            self.offset_index.append(header.last_offset, position)
            self.time_index.append_if_later(self.max_timestamp, self.max_timestamp_offset)
            self._since_index = 0
        self._since_index += header.size_bytes

    def install(self) -> None:
        """Install the rebuilt indexes in the segment, with a last entry for the largest timestamp like a sealed
        one.
        """
        self.time_index.append_if_later(self.max_timestamp, self.max_timestamp_offset)
        self._segment.max_timestamp = self.max_timestamp
        self._segment.max_timestamp_offset = self.max_timestamp_offset
        self._segment.replace_indexes(self.offset_index, self.time_index)


def indexes(segment: Segment) -> int:
    """Rebuild the offset and time index; returns the offset after the last batch."""
    builder = IndexBuilder(segment)
    next_offset = segment.base_offset
    for position, header in segment.headers():
        builder.add(position, header)
        next_offset = header.next_offset
    builder.install()
    return next_offset


def aborted(log: LogState, segment: Segment) -> None:
    """Rebuild the transaction index of one segment."""
    state = load_producers(
        log.segments,
        log.durability.snapshot_offsets,
        partial(log.durability.read_snapshot, log),
        segment.base_offset,
        segment.base_offset,
    )
    segment.replace_aborted(replay(state, segment, segment.base_offset))


def producers(log: LogState) -> None:
    """Rebuild the log's producer state up to its end offset."""
    known = log.durability
    log.producer_state = load_producers(
        log.segments, known.snapshot_offsets, partial(known.read_snapshot, log), log.end_offset, log.end_offset
    )


def load_producers(
    segments: Sequence[Segment],
    snapshot_offsets: Sequence[int],
    read_snapshot: Callable[[int], bytes | None],
    snapshot_offset_max: int,
    upto_offset: int,
) -> ProducerStateManager:
    """The producer state as of ``upto_offset``, from the newest usable snapshot and the batches after it."""
    state = ProducerStateManager()
    start_offset = segments[0].base_offset if segments else 0
    for offset in reversed(snapshot_offsets):
        if offset > snapshot_offset_max or offset < start_offset:
            continue
        content = read_snapshot(offset)
        if content is None:
            continue
        try:
            state.load(producer_snapshot.decode(content))
        except CorruptSnapshot as error:
            logger.warning("ignoring the producer snapshot at offset %d: %s", offset, error)
            continue
        start_offset = offset
        producer_windows.widen(state, segments, offset)
        break
    for index, segment in enumerate(segments):
        following = segments[index + 1].base_offset if index + 1 < len(segments) else upto_offset
        if following > start_offset and segment.base_offset < upto_offset:
            replay(state, segment, start_offset)
    return state


def replay(state: ProducerStateManager, segment: Segment, start_offset: int) -> list[AbortedTransaction]:
    """Apply a segment's batches from ``start_offset`` on; returns the transactions that their markers aborted."""
    position = 0
    if start_offset > segment.base_offset:
        try:
            found = segment.find(start_offset)
        except CorruptIndex:
            found = segment.walk(start_offset, 0)
        if found is None:
            return []
        position = found.position
    ended: list[AbortedTransaction] = []
    for at, header in segment.headers(position):
        if header.producer_id >= 0:
            batch = segment.read_bytes(header.size_bytes, at) if header.is_control else b""
            stage_replayed(state, batch, header)
            ended += state.commit()
    return ended


def stage_replayed(state: ProducerStateManager, batch: Bytes, header: BatchHeader) -> control.EndTransaction | None:
    """Stage the producer state of an accepted batch; ``batch`` is only read if it is a control batch."""
    if header.producer_id < 0:
        return None
    if not header.is_control:
        state.stage_data(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            header.base_offset,
            header.max_timestamp,
            header.is_transactional,
            AppendOrigin.REPLICATION,
        )
        return None
    if not header.record_count:
        # Compaction has emptied it: the transaction it ended was removed as well.
        return None
    marker = control.decode(records_of(batch, check_crc=False)[0])
    if not isinstance(marker, control.EndTransaction):
        return None
    state.stage_marker(
        header.producer_id,
        header.producer_epoch,
        marker,
        header.base_offset,
        header.max_timestamp,
        AppendOrigin.REPLICATION,
    )
    return marker
