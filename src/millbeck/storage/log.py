"""The log of one partition: batches in offset order, in segments, with indexes, producer state and leader epochs.

Appends are staged and then written together. `Log.stage` validates a batch against committed and staged state and
assigns offsets; nothing is visible yet. `Log.write_staged` writes all staged batches with one vectored write and only
then updates indexes, producer state and end offset. When the write fails, the file is truncated to its old end,
everything staged is discarded, and `KafkaStorageError` is raised: the disk may be full, reads continue, and the next
attempt may succeed. Only when that truncation fails too does the whole log directory go offline.

Rolling creates the next ``.log`` file during the write. The sealed segment's indexes, the producer snapshot and the
directory entry are made durable by the next flush (`flush_job`), off the event loop. Until then the recovery point is
below them, so recovery after a crash rebuilds them.

States: *online*; *offline* with a reason, after corruption was found or the directory failed. An offline log refuses
every append and read with `KafkaStorageError` and never changes its files. It does not come back online by itself: it
is repaired or the broker is restarted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from millbeck.kernel.environment import Bytes, FileSlice
from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
)
from millbeck.kernel.units import LONG_MAX
from millbeck.records import control
from millbeck.records.batch import (
    CONTROL_BIT,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    PREFIX_SIZE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    prefix,
    read_header,
    records_of,
)
from millbeck.storage import follower_append, reading, retention, rolling, timestamps, truncation
from millbeck.storage.epoch_cache import EpochEndOffset
from millbeck.storage.flush import FlushJob, FlushResult
from millbeck.storage.log_state import LogState
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX
from millbeck.storage.producer_state import AppendOrigin, ProducerStateManager
from millbeck.storage.reading import LogSlice
from millbeck.storage.segment import CorruptSegment
from millbeck.storage.staging import NO_APPEND_TIME, Staged
from millbeck.storage.txn_index import AbortedTransaction

logger = logging.getLogger(__name__)

PRODUCER_EXPIRATION_MS: Final = 86_400_000
WRITEBACK_BYTES: Final = 8 * 1024 * 1024
"""Bytes appended before the kernel is asked to start writeback."""


class Log(LogState):
    """The log of one partition, see the module's docstring."""

    __slots__ = ()

    @property
    def producers(self) -> ProducerStateManager:
        return self.producer_state

    # Appending.

    def stage(
        self,
        batch: Bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        header: BatchHeader | None = None,
        transaction_version: int = 0,
    ) -> Staged:
        """Validate one batch against the log's state and assign the next offsets; nothing is visible before
        `write_staged`.

        ``batch`` is kept until then: `bytes` are not modified, a writable buffer gets its offset and epoch patched in.
        ``header`` is the batch's, when the caller has read it. Raises `ApiError` and changes nothing when the batch is
        rejected. A duplicate returns the offsets of the batch it repeats.
        """
        if self.offline_reason is not None or self._is_closing:
            raise self.offline_error()
        if header is None:
            header = read_header(batch)
        length = header.length
        size = LOG_OVERHEAD + length
        if size != len(batch):
            raise CorruptMessage(f"the batch header says {size} bytes, the batch has {len(batch)} bytes")
        if size > self.segment_bytes:
            raise RecordListTooLarge(f"a batch of {size} bytes does not fit a segment of {self.segment_bytes} bytes")
        first_offset = self.next_offset
        delta = header.last_offset_delta
        attributes = header.attributes
        max_timestamp = header.max_timestamp
        marker = None
        if attributes & CONTROL_BIT:
            marker = self._stage_control(batch, header, first_offset, origin, transaction_version)
        elif header.producer_id >= 0:
            try:
                duplicate = self.producer_state.stage_data(
                    header.producer_id,
                    header.producer_epoch,
                    header.base_sequence,
                    delta,
                    first_offset,
                    max_timestamp,
                    attributes & TRANSACTIONAL_BIT != 0,
                    origin,
                )
            except OutOfOrderSequenceNumber as error:
                if self.must_settle:
                    # The batch before it could not be written, and the producer retries both in order.
                    # OutOfOrderSequence would make the producer bump its epoch and resend batches that other
                    # partitions already have.
                    raise KafkaStorageError(f"{self.topic_partition} cannot be written: {error}") from error
                raise
            if duplicate is not None:
                _, last_offset, known_delta, timestamp = duplicate
                return Staged(
                    last_offset - known_delta, last_offset, timestamp, True, (), 0, timestamp, 0, None, header
                )
        head = prefix(first_offset, length, leader_epoch)
        buffers: tuple[Bytes, ...]
        if isinstance(batch, bytes):
            buffers = (head, memoryview(batch)[PREFIX_SIZE:])
        else:
            batch[:PREFIX_SIZE] = head
            buffers = (batch,)
        staged = Staged(
            first_offset,
            first_offset + delta,
            max_timestamp if attributes & LOG_APPEND_TIME_BIT else NO_APPEND_TIME,
            False,
            buffers,
            size,
            max_timestamp,
            leader_epoch,
            marker,
            header,
        )
        self._staged.append(staged)
        self._staged_bytes += size
        self.next_offset = first_offset + delta + 1
        if max_timestamp > self._staged_timestamp:
            self._staged_timestamp = max_timestamp
        self.now_ms = now_ms
        return staged

    def _stage_control(
        self, batch: Bytes, header: BatchHeader, offset: int, origin: AppendOrigin, transaction_version: int
    ) -> control.EndTransaction | None:
        """Stage a control batch: with a producer id it ends a transaction; without one it belongs to the quorum."""
        if origin is AppendOrigin.CLIENT:
            raise InvalidRecord("clients may not write control batches")
        if header.producer_id < 0 or not header.record_count:
            return None
        marker = control.decode(records_of(batch, check_crc=False)[0])
        if not isinstance(marker, control.EndTransaction):
            raise InvalidRecord("the control batch of a producer has no transaction marker")
        self.producer_state.stage_marker(
            header.producer_id,
            header.producer_epoch,
            marker,
            offset,
            header.max_timestamp,
            origin,
            transaction_version,
        )
        return marker

    def append_as_follower(self, batches: Bytes, *, leader_epoch: int, now_ms: int) -> int:
        """Write the leader's batches with their offsets; returns the new end offset. See `follower_append`."""
        if self.offline_reason is not None or self._is_closing:
            raise self.offline_error()
        follower_append.stage(self, batches, leader_epoch, now_ms)
        self.write_staged()
        return self.end_offset

    def write_staged(self) -> None:
        """Write everything staged; on failure roll all of it back and raise `KafkaStorageError`."""
        staged = self._staged
        if not staged:
            if self._is_closing:
                # What was staged before was discarded, and its appends must not be acknowledged.
                raise self.offline_error()
            return
        if self.offline_reason is not None:
            self.discard_staged()
            raise self.offline_error()
        segment = self.active
        if self.must_settle or not segment.has_unsaved_indexes:
            self._prepare_write()
        if (
            segment.size + self._staged_bytes > self.segment_bytes
            or self._staged_timestamp > segment.roll_timestamp
            or staged[-1].last_offset - segment.base_offset > RELATIVE_OFFSET_MAX
            or segment.is_full
        ):
            rolling.write(self, staged)
            self._finish_write()
            return
        buffers = staged[0].buffers if len(staged) == 1 else [part for one in staged for part in one.buffers]
        handle = segment.handle
        handle.was_used = True
        is_open = False
        try:
            file = handle.file or handle.get()
            is_open = True
            file.write(buffers, segment.size)
        except OSError as error:
            self.rollback_write([], error, must_cut=is_open)
        self.commit(staged)
        self._finish_write()

    def _finish_write(self) -> None:
        self._staged = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.durability.note_written(self.now_ms)

    def _prepare_write(self) -> None:
        """Preparations that only some writes need: after a failed write, and at the first write after a clean
        start.
        """
        if self.must_settle:
            self._check_settled(self._staged_bytes)
        if not self.active.has_unsaved_indexes:
            try:
                self.active.remove_index_files()
            except OSError as error:
                self.active.has_unsaved_indexes = False
                self.rollback_write([], error, must_cut=False)
            self.durability.note_directory_changed()

    # Reading.

    def read(
        self,
        offset: int,
        *,
        size_bytes_max: int,
        upto_offset: int,
        at_least_one: bool = True,
        nowait: bool = False,
    ) -> LogSlice | None:
        """Read whole batches from the one that contains ``offset`` on, as a leased slice of one segment's file.

        At most ``size_bytes_max`` bytes, except that the first batch is returned whole when ``at_least_one``; nothing
        at or above ``upto_offset``. None when there is nothing to read. With ``nowait`` the lookup never blocks on the
        disk: it raises `ColdRead` with the job that loads the missing pages. Raises `OffsetOutOfRange` or
        `KafkaStorageError`.
        """
        if self.offline_reason is not None:
            raise self.offline_error()
        if offset < self.log_start_offset or offset > self.end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.topic_partition} is outside [{self.log_start_offset}, {self.end_offset}]"
            )
        if offset >= upto_offset:
            return None
        active = self.active
        if offset >= active.base_offset:
            found = reading.read_tail(active, offset, size_bytes_max, upto_offset, at_least_one)
            if found is not reading.NOT_IN_TAIL:
                return found
        return reading.read_indexed(self, offset, size_bytes_max, upto_offset, at_least_one, nowait)

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap ``[start_offset, upper_offset)``; the consumer drops their records."""
        return reading.aborted_transactions(self, start_offset, upper_offset)

    def offset_for_timestamp(
        self, timestamp: int, *, upto_offset: int | None = None, nowait: bool = False
    ) -> timestamps.TimestampOffset | None:
        """The first record at or above the log start offset whose timestamp is at least ``timestamp``; see
        `timestamps`.
        """
        upto_offset = LONG_MAX if upto_offset is None else upto_offset
        return timestamps.find_offset_by_timestamp(self, timestamp, upto_offset, nowait)

    def offset_of_max_timestamp(self, *, nowait: bool = False) -> timestamps.TimestampOffset | None:
        return timestamps.find_offset_of_max_timestamp(self, nowait)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """Add a leader epoch that begins at ``start_offset``, before its first batch is written."""
        if epoch > self.epochs.latest_epoch:
            self.epochs.assign(epoch, start_offset)

    # Retention and truncation.

    def delete_records(self, offset: int) -> int:
        """Raise the log start offset to ``offset`` and return it; the next retention deletes the segments below it."""
        if self.offline_reason is not None or self._is_closing:
            raise self.offline_error()
        if offset > self.end_offset or offset < 0:
            raise OffsetOutOfRange(f"offset {offset} is beyond the end {self.end_offset} of {self.topic_partition}")
        self.advance_log_start(offset)
        return self.log_start_offset

    def retention_target(self, now_ms: int, high_watermark: int) -> int:
        """The offset below which old segments should be deleted; see `retention` for the steps that follow.

        The log's first base offset when nothing is to be deleted. Raises `KafkaStorageError` or OSError.
        """
        if self.offline_reason is not None:
            return self.base_offsets[0]
        self.now_ms = now_ms
        try:
            return retention.target(self, now_ms, high_watermark)
        except CorruptSegment as error:
            raise self.mark_corrupt(error) from error

    def cut_to(self, offset: int) -> list[retention.FileDeletion]:
        """Remove every batch whose last offset is at or above ``offset``, in memory and in the page cache.

        First run the jobs that `lowering_job` returns, until it returns None. No write is accepted until a flush has
        finished.
        """
        if self.offline_reason is not None or self._is_closing:
            raise self.offline_error()
        self.discard_staged()
        return truncation.cut_to(self, offset)

    def start_over_at(self, offset: int) -> list[retention.FileDeletion]:
        """Remove all batches; the next one gets ``offset``. Otherwise as `cut_to`, with the `lowering_job` of offset
        0.
        """
        if self.offline_reason is not None or self._is_closing:
            raise self.offline_error()
        self.discard_staged()
        return truncation.start_over_at(self, offset)

    def raising_job(self) -> Callable[[], None] | None:
        """The job that must run, on a thread, before detached segments' files are deleted: it writes the log start
        offset.
        """
        return self.environment.home.raising_job(self)

    def lowering_job(self, offset: int) -> Callable[[], None] | None:
        """The job that must run, on a thread, before the log is cut at ``offset``: it lowers the checkpoints. It
        syncs.
        """
        return self.environment.home.lowering_job(self, offset)

    def truncate_fully_and_start_at(self, offset: int) -> list[retention.FileDeletion]:
        """`start_over_at` with its checkpoints and flush, synchronously: it syncs."""
        self._lower_checkpoints(0)
        removals = self.start_over_at(offset)
        self.flush()
        return removals

    def _lower_checkpoints(self, offset: int) -> None:
        if self.offline_reason is not None:
            raise self.offline_error()
        job = self.lowering_job(offset)
        if job is not None:
            try:
                job()
            except OSError as error:
                raise KafkaStorageError(f"checkpoints for {self.topic_partition} cannot be written: {error}") from error

    def expire_producers(self, now_ms: int, expiration_ms: int = PRODUCER_EXPIRATION_MS) -> None:
        self.producer_state.expire(now_ms, expiration_ms)

    # Flushing.

    def is_flush_due(self, now_ms: int) -> bool:
        """Whether a flush is due, by the topic's options or after a roll."""
        return self.durability.is_due(self, now_ms)

    def is_maintenance_due(self, now_ms: int) -> bool:
        """Whether a flush or writeback is due after a write."""
        return self.active.size - self._written_back >= WRITEBACK_BYTES or self.durability.is_due(self, now_ms)

    def flush_job(self) -> FlushJob | None:
        """The job that makes the log durable up to its present end; None when nothing is to be flushed.

        A log has at most one job at a time. Run it on a thread and pass its result to `finish_flush`. While
        `must_settle`, it makes only the cut durable; ask again for the rest.
        """
        return self.durability.job(self)

    def finish_flush(self, job: FlushJob, result: FlushResult) -> None:
        """Apply the result of a job, once per job, on the event loop. A failed sync takes the log directory
        offline.
        """
        self.durability.finish(self, job, result)

    def flush(self) -> None:
        """Prepare, run and finish a flush synchronously: for starting, stopping and logs that are synced before
        replying.
        """
        for _ in range(2 if self.must_settle else 1):
            job = self.flush_job()
            if job is not None:
                self.finish_flush(job, job.run())
                if self.offline_reason is not None:
                    raise self.offline_error()

    def writeback_range(self, size_bytes_min: int = WRITEBACK_BYTES) -> FileSlice | None:
        """A leased file range for which the kernel should start writeback, once enough was appended since the last
        one.
        """
        active = self.active
        size = active.size - self._written_back
        if size < size_bytes_min or self.offline_reason is not None:
            return None
        position, self._written_back = self._written_back, active.size
        return FileSlice(active.handle.lease(), position, size, active.handle.release)

    # Closing and going offline.

    def closing_job(self) -> FlushJob | None:
        """Stop accepting writes and return the last flush job, after which the next start reads almost nothing; None if
        no flush is needed.

        Run it like the job of `flush_job`, before `close_cleanly`; without it `close_cleanly` flushes synchronously.
        """
        if self.offline_reason is not None or self._is_closing:
            return None
        self._is_closing = True
        self.discard_staged()
        self.durability.take_snapshot(self)
        if self.active.is_preallocated:
            self.cut_active(self.active.size)
        self.durability.save_active_indexes(self)
        return self.flush_job()

    def close_cleanly(self) -> None:
        """Make everything durable and close the files. Raises `KafkaStorageError` or OSError."""
        job = self.closing_job()
        if job is not None:
            self.finish_flush(job, job.run())
        if self.offline_reason is None and not self.durability.is_complete(self):
            self.flush()
        if self.offline_reason is None and not self.durability.is_complete(self):
            raise KafkaStorageError(
                f"{self.topic_partition}: the last writes could not be flushed while the log was closed"
            )
        self.close_files()
