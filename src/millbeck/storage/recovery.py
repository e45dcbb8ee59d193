"""Log recovery after a crash: keep valid batches, truncate the torn tail, rebuild the indexes.

Every batch from the segment that contains the recovery point on is read and its checksum verified. The log is
truncated at the first bad batch, whatever follows it. A batch is bad when its header or checksum is wrong, when it
extends beyond the file, or when its offsets do not continue those before it.

Gaps in the offsets are left by compaction, also of topics that are no longer compacted. Within a file a lost write
cannot leave a gap, since the next batch would not be at the end of the one before; but no checksum covers the base
offset of a batch, so the batch after the gap shows whether the offset is right. Between segments, and where nothing
follows, a gap above the recovery point is valid only in a compacted log.

A bad batch *below* the recovery point is not a torn tail but corruption of durable data. Then nothing is changed:
`Recovery.problem` has the file and position, and the log is opened offline.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable

from millbeck.kernel.environment import Bytes
from millbeck.kernel.errors import CorruptMessage
from millbeck.records.batch import HEADER_SIZE, LOG_OVERHEAD, BatchHeader, size_at, verify
from millbeck.storage import producer_snapshot, rebuild
from millbeck.storage.epoch_cache import LeaderEpochCache
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX
from millbeck.storage.producer_state import ProducerStateManager
from millbeck.storage.rebuild import IndexBuilder
from millbeck.storage.segment import CorruptSegment, Segment
from millbeck.storage.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)

_CHUNK = 1024 * 1024


class Recovery:
    """Recovery of one log. After `run` it has the remaining segments, end offset, producers, epochs and snapshots."""

    def __init__(
        self,
        segments: list[Segment],
        *,
        recovery_point: int,
        is_compacted: bool,
        epochs: LeaderEpochCache,
        snapshot_offsets: list[int],
        read_snapshot: Callable[[int], bytes | None],
        first_index: int | None = None,
    ) -> None:
        """``epochs`` has the epochs up to the first segment that is read; ``segments`` is not empty.

        ``first_index`` is the first segment to read, if it is before the one that contains the recovery point.
        """
        self.segments = list(segments)
        self.dropped: list[Segment] = []
        self.problem: CorruptSegment | None = None
        self.producers = ProducerStateManager()
        self.epochs = epochs
        self.snapshots: dict[int, bytes] = {}
        """Snapshots taken at segment boundaries during recovery; they have no file yet."""
        self._recovery_point = recovery_point
        self._is_compacted = is_compacted
        self._snapshot_offsets = snapshot_offsets
        self._read_snapshot = read_snapshot
        self.first_index = first_to_read(segments, recovery_point) if first_index is None else first_index
        self.end_offset = segments[self.first_index].base_offset

    def run(self) -> None:
        base_offset = self.end_offset
        try:
            self.producers = rebuild.load_producers(
                self.segments[: self.first_index], self._snapshot_offsets, self._read_snapshot, base_offset, base_offset
            )
        except CorruptSegment as error:
            self.problem = error
            return
        for index in range(self.first_index, len(self.segments)):
            segment = self.segments[index]
            if index > self.first_index:
                if not self._continues(segment.base_offset, beyond=self._is_compacted):
                    logger.warning("dropping %s: the log ends at offset %d", segment.log_path, self.end_offset)
                    self._drop_from(index)
                    return
                self.end_offset = segment.base_offset
            if segment.base_offset > 0:
                self.snapshots[segment.base_offset] = producer_snapshot.encode(self.producers.producers.values())
            good_bytes, problem = self._read(index)
            if problem is None:
                continue
            if self.end_offset < self._recovery_point:
                self.problem = problem
                return
            lost = segment.size - good_bytes + sum(each.size for each in self.segments[index + 1 :])
            logger.warning("truncating the log at offset %d, %d bytes removed: %s", self.end_offset, lost, problem)
            segment.size = good_bytes
            segment.truncate_file()
            self._drop_from(index + 1)
            return

    def _drop_from(self, index: int) -> None:
        self.dropped += self.segments[index:]
        del self.segments[index:]

    def _continues(self, offset: int, *, beyond: bool) -> bool:
        """Whether ``offset`` may follow in the log; ``beyond`` when gaps above the recovery point are allowed."""
        if offset <= self.end_offset:
            return offset == self.end_offset
        # The log once ended at the recovery point, so no valid gap extends across it.
        if self.end_offset < self._recovery_point:
            return offset <= self._recovery_point
        return beyond

    def _read(self, index: int) -> tuple[int, CorruptSegment | None]:
        """Verify and apply the batches of one segment; returns the number of valid bytes and the problem after
        them.
        """
        segment = self.segments[index]
        builder = IndexBuilder(segment)
        aborted: list[AbortedTransaction] = []
        position, problem = 0, None
        reader = _BatchReader(segment)
        while position < segment.size:
            try:
                batch, header = reader.batch_at(position)
                self._check_offsets(segment, header)
                if header.base_offset > self.end_offset:
                    self._check_gap(header, self._offset_at(index, reader, position + header.size_bytes))
            except CorruptMessage as error:
                problem = CorruptSegment(segment.log_path, position, str(error))
                break
            builder.add(position, header)
            self.epochs.assign(header.partition_leader_epoch, header.base_offset)
            rebuild.stage_replayed(self.producers, batch, header)
            aborted += self.producers.commit()
            self.end_offset = header.next_offset
            position += header.size_bytes
        builder.install()
        segment.replace_aborted(aborted)
        return position, problem

    def _check_offsets(self, segment: Segment, header: BatchHeader) -> None:
        if header.last_offset_delta < 0 or not self._continues(header.base_offset, beyond=True):
            raise CorruptMessage(f"offsets from {header.base_offset} do not continue the log at {self.end_offset}")
        if header.last_offset - segment.base_offset > RELATIVE_OFFSET_MAX:
            raise CorruptMessage(f"offset {header.last_offset} is too far above the segment's base offset")

    def _check_gap(self, header: BatchHeader, following: int | None) -> None:
        """``following`` is the offset that comes after the batch, None when it is the last."""
        if following is None:
            is_ordinary = self._is_compacted or self.end_offset < self._recovery_point
        else:
            is_ordinary = following >= header.next_offset
        if not is_ordinary:
            raise CorruptMessage(f"offset {header.base_offset} leaves a gap after {self.end_offset - 1}")

    def _offset_at(self, index: int, reader: _BatchReader, position: int) -> int | None:
        if position < self.segments[index].size:
            try:
                return reader.batch_at(position)[1].base_offset
            except CorruptMessage:
                return None
        return self.segments[index + 1].base_offset if index + 1 < len(self.segments) else None


def first_to_read(segments: list[Segment], recovery_point: int) -> int:
    """The index of the segment that contains the recovery point."""
    return max(0, bisect_right([segment.base_offset for segment in segments], recovery_point) - 1)


class _BatchReader:
    """Reads whole batches of a segment in order, in large chunks."""

    __slots__ = ("_chunk", "_chunk_position", "_segment")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._chunk: Bytes = b""
        self._chunk_position = 0

    def batch_at(self, position: int) -> tuple[memoryview, BatchHeader]:
        """The batch and its header, with the checksum verified. Raises `CorruptMessage`."""
        remaining = self._segment.size - position
        if remaining < HEADER_SIZE:
            raise CorruptMessage(f"{remaining} bytes are too few for a batch")
        at = position - self._chunk_position
        if at + LOG_OVERHEAD > len(self._chunk):
            self._fill(position, _CHUNK)
            at = 0
        size = size_at(self._chunk, at)
        if size > remaining:
            raise CorruptMessage(f"a batch of {size} bytes extends beyond the end of the file")
        if at + size > len(self._chunk):
            self._fill(position, max(size, _CHUNK))
            at = 0
        batch = memoryview(self._chunk)[at : at + size]
        return batch, verify(batch)

    def _fill(self, position: int, size: int) -> None:
        self._chunk = self._segment.read_bytes(min(size, self._segment.size - position), position)
        self._chunk_position = position
