"""One partition's log: batches in order, in segments, with everything needed to find and trust them.

Appends are staged and then written together. `Log.stage` checks a batch against what is committed and what is already
staged, gives it offsets, and changes nothing anyone can see. `Log.write_staged` writes all of them with one vectored
write and only then moves indexes, producer state and end offset. When the write fails, the file is cut back to its old
end, everything staged is forgotten, and `KafkaStorageError` says so: the disk may be full, reads go on, and the next
attempt may succeed. Only when cutting back fails too is the whole log directory given up.

Rolling creates the next ``.log`` file during the write; the sealed segment's indexes, the producer snapshot and the
directory entry are made durable by the next flush (`flush_job`), off the loop. Until then the recovery point has not
passed them, so a crash rebuilds them.

States: *online*; *offline* with a reason, after damage was found or the directory failed. An offline log refuses every
append and read with `KafkaStorageError` and never changes its files. It does not come back without a restart.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from millbeck.kernel.environment import Bytes, FileSlice
from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
)
from millbeck.kernel.ids import TopicPartition, Uuid
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
from millbeck.storage import following, reading, rebuild, retention, rolling, timestamps, truncation
from millbeck.storage.config import LogConfig
from millbeck.storage.durability import Durability
from millbeck.storage.epoch_cache import EpochCache, EpochEndOffset
from millbeck.storage.flush import FlushJob, FlushResult
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX
from millbeck.storage.producer_state import Origin, ProducerState
from millbeck.storage.reading import LogSlice
from millbeck.storage.segment import CorruptSegment, Segment
from millbeck.storage.staging import NO_APPEND_TIME, Staged
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.storage.swap import Swap

logger = logging.getLogger(__name__)

PRODUCER_EXPIRATION_MS: Final = 86_400_000
WRITEBACK_BYTES: Final = 8 * 1024 * 1024
"""How much is gathered before the kernel is asked to begin writing it."""


class Log:
    __slots__ = (
        "_is_closing",
        "_staged",
        "_staged_bytes",
        "_staged_timestamp",
        "_written_back",
        "active",
        "base_offsets",
        "config",
        "damaged_offset",
        "detached",
        "directory",
        "durability",
        "end_offset",
        "environment",
        "epochs",
        "flushed_offset",
        "log_start_offset",
        "must_settle",
        "next_offset",
        "now_ms",
        "offline_reason",
        "producer_state",
        "segment_bytes",
        "segment_ms",
        "segments",
        "swap",
        "topic_id",
        "topic_partition",
        "waits_for_flush",
    )

    def __init__(
        self,
        environment: LogEnvironment,
        *,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        segments: list[Segment],
        log_start_offset: int,
        end_offset: int,
        flushed_offset: int,
        producer_state: ProducerState,
        epochs: EpochCache,
        snapshot_offsets: list[int],
        now_ms: int,
    ) -> None:
        """Use `recovery.open_log` or `recovery.create_log`."""
        assert segments
        self.environment = environment
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.log_start_offset = log_start_offset
        self.end_offset = end_offset
        self.flushed_offset = flushed_offset
        self.producer_state = producer_state
        self.epochs = epochs
        self.offline_reason: str | None = None
        self.damaged_offset = -1
        """Where the segment begins in which damage was found; -1 when the log is offline for another reason, or not."""
        self._is_closing = False
        self._staged: list[Staged] = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.next_offset = end_offset
        self.now_ms = now_ms
        self.must_settle = False
        """Something was cut off: no write is taken until a flush has made that durable."""
        self.detached: list[Segment] = []
        """Segments that are no longer part of the log and whose files still have their names."""
        self._written_back = 0
        self.swap: Swap | None = None
        """Compacted segments that are being put in place."""
        self.durability = Durability(self, snapshot_offsets)
        self.update_config(config)

    # What it is.

    @property
    def recovery_point(self) -> int:
        """Everything below is on disk with its indexes; a start after a crash reads from the segment that holds it.

        That is the flushed offset, unless the indexes of a sealed segment are still to be saved.
        """
        if self.durability.has_unsaved_sealed:
            for segment in self.segments[:-1]:
                if segment.has_unsaved_indexes:
                    return min(segment.base_offset, self.flushed_offset)
        return self.flushed_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    @property
    def producers(self) -> ProducerState:
        return self.producer_state

    @property
    def is_offline(self) -> bool:
        return self.offline_reason is not None

    def __repr__(self) -> str:
        return f"<log {self.topic_partition} [{self.log_start_offset}, {self.end_offset}) in {self.directory}>"

    def update_config(self, config: LogConfig) -> None:
        """Obey changed options from the next append on."""
        self.config = config
        self.segment_bytes = config.segment_size_bytes
        self.segment_ms = config.segment_age_ms_max
        self.waits_for_flush = config.flush_messages == 1
        active = self.active
        active.index_interval_bytes = config.index_interval_bytes
        if active.size:
            active.forget_roll_time()

    # Appending.

    def stage(
        self,
        batch: Bytes,
        *,
        leader_epoch: int,
        now_ms: int,
        origin: Origin = Origin.CLIENT,
        header: BatchHeader | None = None,
        transaction_version: int = 0,
    ) -> Staged:
        """Check one validated batch and give it the next offsets; nothing is visible before `write_staged`.

        ``batch`` is kept until then: `bytes` stay as they are, a writable buffer gets its offset and epoch patched in.
        ``header`` is the batch's, when the caller has read it. Raises `ApiError` and changes nothing when the batch is
        refused. A duplicate is answered with the offsets of the batch it repeats.
        """
        if self.offline_reason is not None:
            raise self.offline_error()
        if header is None:
            header = read_header(batch)
        length = header.length
        size = LOG_OVERHEAD + length
        if size != len(batch):
            raise CorruptMessage(f"a batch of {size} bytes came as {len(batch)} bytes")
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
                    # The batch before it could not be written, and both come again in order. To a producer that hears
                    # of a gap, everything is uncertain: it takes a new epoch and repeats what other partitions have.
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
        self, batch: Bytes, header: BatchHeader, offset: int, origin: Origin, transaction_version: int
    ) -> control.EndTransaction | None:
        """Control batches without a producer belong to the quorum; with one, they end a transaction."""
        if origin is Origin.CLIENT:
            raise InvalidRecord("clients may not write control batches")
        if header.producer_id < 0 or not header.record_count:
            return None
        marker = control.decode(records_of(batch, check_crc=False)[0])
        if not isinstance(marker, control.EndTransaction):
            raise InvalidRecord("a producer's control batch holds no transaction marker")
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
        """Write a leader's batches with the offsets they have; returns the new end offset. See `following`."""
        if self.offline_reason is not None:
            raise self.offline_error()
        return following.append(self, batches, leader_epoch, now_ms)

    def stage_as_is(self, staged: Staged, now_ms: int) -> None:
        """Stage a batch that has its offsets."""
        self._staged.append(staged)
        self._staged_bytes += staged.size_bytes
        self.next_offset = staged.last_offset + 1
        self._staged_timestamp = max(self._staged_timestamp, staged.max_timestamp)
        self.now_ms = now_ms

    def write_staged(self) -> None:
        """Write everything staged; on failure undo all of it and raise `KafkaStorageError`."""
        staged = self._staged
        if not staged:
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
            self.undo_write([], error, must_cut=is_open)
        self.commit(staged)
        self._finish_write()

    def commit(self, staged: Sequence[Staged]) -> None:
        """These batches stand at the end of the active segment's file: make them part of the log."""
        segment = self.active
        if not segment.size:
            segment.begin(staged[0].max_timestamp, self.segment_ms, self.now_ms)
        segment.note_appended(staged)
        last = staged[-1]
        producer_state = self.producer_state
        if producer_state.has_staged:
            for aborted in producer_state.commit():
                segment.add_aborted(aborted)
        if last.leader_epoch > self.epochs.latest_epoch:
            for one in staged:
                self.epochs.assign(one.leader_epoch, one.first_offset)
        self.end_offset = last.last_offset + 1

    def _finish_write(self) -> None:
        self._staged = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.durability.note_written(self.now_ms)

    @property
    def has_staged(self) -> bool:
        return bool(self._staged)

    def discard_staged(self) -> None:
        """Forget what is staged, as if it had never come."""
        self._staged = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.next_offset = self.end_offset
        self.producer_state.drop()

    def undo_write(self, created: list[Segment], error: OSError, *, must_cut: bool) -> NoReturn:
        """Raises `KafkaStorageError`; the next write waits for a flush that makes the cut durable."""
        self.discard_staged()
        try:
            for segment in created:
                segment.handle.retire()
                self.remove_file_if_there(segment.log_path)
            if must_cut:
                self.cut_active(self.active.size)
        except OSError as second:
            self.directory_failed(f"cannot cut {self.active.log_path} back after a failed write: {second}")
        self.durability.note_cut()
        raise KafkaStorageError(f"{self.topic_partition} cannot be written: {error}") from error

    def _prepare_write(self) -> None:
        """What a write needs only sometimes: after a failed one, and the first time after a clean start."""
        if self.must_settle:
            self._check_settled(self._staged_bytes)
        if not self.active.has_unsaved_indexes:
            try:
                self.active.remove_index_files()
            except OSError as error:
                self.active.has_unsaved_indexes = False
                self.undo_write([], error, must_cut=False)
            self.durability.note_directory_changed()

    def _check_settled(self, size: int) -> None:
        """Refuse to write until what was cut off cannot come back after a crash, with newer batches around it.

        While the disk is still full, nobody is asked to see to that.
        """
        try:
            free = self.environment.files.free_bytes(self.directory)
        except OSError:
            free = 0
        if free >= size:
            self.environment.home.wants_flush(self)
        if self.offline_reason is not None:
            raise self.offline_error()
        if self.must_settle:
            self.discard_staged()
            reason = f"{free} bytes are free, {size} needed" if free < size else "what was cut off is not synced yet"
            raise KafkaStorageError(f"{self.topic_partition} cannot be written: {reason}")

    def cut_active(self, size: int) -> None:
        """Cut the active file to its known end."""
        self.active.handle.get().truncate(size)
        self.active.is_preallocated = False

    def remove_file_if_there(self, path: str) -> None:
        try:
            self.environment.files.unlink(path)
        except FileNotFoundError:
            pass

    # Rolling.

    def create_segment(self, base_offset: int) -> Segment:
        """A new empty segment with its file; it becomes part of the log by `switch_to`."""
        shared = self.environment
        segment = Segment(shared.files, shared.cache, shared.index_cache, self.directory, base_offset, self.config)
        segment.start_empty()
        segment.make_active(created_ms=self.now_ms, roll_jitter_ms=self._draw_jitter())
        self.durability.note_directory_changed()
        return segment

    def _draw_jitter(self) -> int:
        bound = self.config.segment_jitter_ms_max
        return self.environment.jitter_below(bound) if bound > 0 else 0

    def switch_to(self, segment: Segment) -> None:
        """Seal the active segment and append to ``segment`` from now on."""
        self.active.seal()
        self.durability.has_unsaved_sealed = True
        self.durability.take_snapshot()
        self.segments.append(segment)
        self.base_offsets.append(segment.base_offset)
        self.active = segment
        self._written_back = 0

    def roll(self, now_ms: int) -> None:
        """Begin a new segment at the end offset; nothing when the active one is empty. Raises `KafkaStorageError`."""
        if self.offline_reason is not None:
            raise self.offline_error()
        assert not self._staged, "roll between turns"
        if not self.active.size:
            return
        if self.must_settle:
            self._check_settled(0)
        self.now_ms = now_ms
        segment = self.create_segment(self.end_offset)
        try:
            segment.prepare_file(self.config)
        except OSError as error:
            self.undo_write([segment], error, must_cut=False)
        self.switch_to(segment)

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
        """Whole batches from the one that holds ``offset`` on, as a leased slice of one segment's file.

        At most ``size_bytes_max`` bytes, except that the first batch is given whole when ``at_least_one``; nothing at
        or beyond ``upto_offset``. None when there is nothing. With ``nowait`` the lookup never waits for the disk: it
        raises `ColdRead` with the job that warms what is missing. Raises `OffsetOutOfRange`, `KafkaStorageError`.
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

    def last_stable_offset(self, high_watermark: int) -> int:
        return self.producer_state.last_stable_offset(high_watermark)

    def aborted_transactions(self, start_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that touch ``[start_offset, upper_offset)``; the reader drops their records."""
        return reading.aborted_transactions(self, start_offset, upper_offset)

    def offset_for_timestamp(
        self, timestamp: int, *, upto_offset: int | None = None, nowait: bool = False
    ) -> timestamps.TimestampOffset | None:
        """The first record at or after the log start whose timestamp is at least ``timestamp``; see `timestamps`."""
        upto_offset = LONG_MAX if upto_offset is None else upto_offset
        return timestamps.first_at_or_after(self, timestamp, upto_offset, nowait)

    def offset_of_max_timestamp(self, *, nowait: bool = False) -> timestamps.TimestampOffset | None:
        return timestamps.of_max_timestamp(self, nowait)

    def end_offset_for_epoch(self, epoch: int) -> EpochEndOffset:
        return self.epochs.end_offset_for(epoch, self.end_offset)

    def assign_epoch(self, epoch: int, start_offset: int) -> None:
        """A leader's epoch begins here, before its first batch."""
        if epoch > self.epochs.latest_epoch:
            self.epochs.assign(epoch, start_offset)

    def rebuild_indexes(self, segment: Segment, reason: str) -> None:
        """An index file is missing or damaged: make it anew from the batches. Raises `CorruptSegment`."""
        logger.warning("rebuilding the indexes of %s: %s", segment.log_path, reason)
        rebuild.indexes(segment)

    def rebuild_aborted(self, segment: Segment, reason: str) -> None:
        """A transaction index is damaged: make it anew from the batches."""
        logger.warning("rebuilding the transaction index of %s: %s", segment.log_path, reason)
        try:
            rebuild.aborted(self, segment)
        except CorruptSegment as error:
            raise self.found_corrupt(error) from error

    def segment_index_for(self, offset: int) -> int:
        """Which segment holds ``offset`` or is the last to begin before it; the first when it lies before all."""
        return max(0, bisect_right(self.base_offsets, offset) - 1)

    # Removing.

    def delete_records(self, offset: int) -> int:
        """Move the log start forward to ``offset``; segments below it go with the next retention. Returns the start."""
        if self.offline_reason is not None:
            raise self.offline_error()
        if offset > self.end_offset or offset < 0:
            raise OffsetOutOfRange(f"offset {offset} is beyond the end {self.end_offset} of {self.topic_partition}")
        self.advance_log_start(offset)
        return self.log_start_offset

    def advance_log_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def retention_target(self, now_ms: int, high_watermark: int) -> int:
        """The offset below which old segments should go; see `retention` for the steps that follow.

        The log's first offset when nothing is to go. Raises `KafkaStorageError`, OSError.
        """
        if self.offline_reason is not None:
            return self.base_offsets[0]
        self.now_ms = now_ms
        try:
            return retention.target(self, now_ms, high_watermark)
        except CorruptSegment as error:
            raise self.found_corrupt(error) from error

    def apply_retention(self, now_ms: int, high_watermark: int | None = None) -> list[retention.Removal]:
        """Remove old segments whole, here and now, so it may sync; the returned jobs delete their files later."""
        offset = self.retention_target(now_ms, self.end_offset if high_watermark is None else high_watermark)
        if retention.must_flush(self, offset):
            self.flush()
        if not retention.detach(self, offset):
            return []
        job = self.raising_job()
        try:
            if job is not None:
                job()
        except OSError as error:
            # The disk may be full, and what is about to go makes room.
            logger.warning("checkpoints for %s are not written: %s", self.topic_partition, error)
        return retention.remove_detached(self)

    def cut_to(self, offset: int) -> list[retention.Removal]:
        """Drop every batch that reaches to ``offset`` or beyond, in memory and in the page cache.

        First run what `lowering_job` returns, until it returns None. No write is taken until a flush has ended.
        """
        if self.offline_reason is not None:
            raise self.offline_error()
        self.discard_staged()
        return truncation.cut_to(self, offset)

    def start_over_at(self, offset: int) -> list[retention.Removal]:
        """Drop everything; the next batch gets ``offset``. For the rest see `cut_to`; the job is that of offset 0."""
        if self.offline_reason is not None:
            raise self.offline_error()
        self.discard_staged()
        return truncation.start_over_at(self, offset)

    def raising_job(self) -> Callable[[], None] | None:
        """What must run, on a thread, before detached segments' files go: the checkpoints learn of the start. Syncs."""
        return self.environment.home.raising_job(self)

    def lowering_job(self, offset: int) -> Callable[[], None] | None:
        """What must run, on a thread, before the log is cut at ``offset``: no checkpoint may claim more. It syncs."""
        return self.environment.home.lowering_job(self, offset)

    def truncate_to(self, offset: int) -> list[retention.Removal]:
        """`cut_to` with all that belongs to it, here and now: it syncs."""
        self._lower_checkpoints(offset)
        removals = self.cut_to(offset)
        self.flush()
        return removals

    def truncate_fully_and_start_at(self, offset: int) -> list[retention.Removal]:
        """`start_over_at` with all that belongs to it, here and now: it syncs."""
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

    def set_segments(self, segments: list[Segment]) -> None:
        """Replace the list of segments; the last one is active."""
        self.segments = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self.durability.look_for_unsaved()
        if self.active is not segments[-1]:
            self.active = segments[-1]
            self._written_back = 0

    def was_truncated(self, end_offset: int) -> None:
        """The log now ends earlier: what a running flush makes durable no longer counts."""
        self.end_offset = self.next_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.durability.note_truncated()

    def relocate(self, directory: str) -> None:
        """Its directory has another name from now on; open files stay open."""
        self.directory = directory
        for segment in self.segments:
            segment.relocate(directory)

    # Becoming durable.

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether options or a roll ask for a flush now."""
        return self.durability.is_due(now_ms)

    def upkeep_is_due(self, now_ms: int) -> bool:
        """Whether there is anything to do behind a write: a flush, or writeback to begin."""
        return self.active.size - self._written_back >= WRITEBACK_BYTES or self.durability.is_due(now_ms)

    def flush_job(self) -> FlushJob | None:
        """What is to be written and synced to make the log durable up to its present end; None when nothing is.

        At most one job of a log exists at a time. Run it on a thread and give its result to `finish_flush`. While
        `must_settle`, it makes the cut durable and nothing else; ask again for the rest.
        """
        return self.durability.job()

    def finish_flush(self, job: FlushJob, result: FlushResult) -> None:
        """On the loop, once per job: what it made durable counts from now on. A failed sync ends the directory."""
        self.durability.finish(job, result)

    def flush(self) -> None:
        """Prepare, run and finish a flush here and now: for starts, stops and logs that are synced before replying."""
        for _ in range(2 if self.must_settle else 1):
            job = self.flush_job()
            if job is not None:
                self.finish_flush(job, job.run())
                if self.offline_reason is not None:
                    raise self.offline_error()

    def writeback_slice(self, size_bytes_min: int = WRITEBACK_BYTES) -> FileSlice | None:
        """A leased range the kernel should begin to write, once enough has gathered since the last such range."""
        active = self.active
        size = active.size - self._written_back
        if size < size_bytes_min or self.offline_reason is not None:
            return None
        position, self._written_back = self._written_back, active.size
        return FileSlice(active.handle.lease(), position, size, active.handle.release)

    # Ending.

    def closing_job(self) -> FlushJob | None:
        """Take no more writes; what is to be synced so that the next start reads almost nothing, None if nothing is.

        Run it as that of `flush_job`, before `close_cleanly`, which does itself what was not done by then.
        """
        if self.offline_reason is not None or self._is_closing:
            return None
        self._is_closing = True
        self.discard_staged()
        self.durability.take_snapshot()
        if self.active.is_preallocated:
            self.cut_active(self.active.size)
        self.durability.save_active_indexes()
        return self.flush_job()

    def close_cleanly(self) -> None:
        """Make everything durable and let go of the files. Raises `KafkaStorageError`, OSError."""
        job = self.closing_job()
        if job is not None:
            self.finish_flush(job, job.run())
        if self.offline_reason is None and not self.durability.is_complete:
            self.flush()
        if self.offline_reason is None and not self.durability.is_complete:
            raise KafkaStorageError(f"{self.topic_partition} could not be flushed")
        self.close_files()

    def close_files(self) -> None:
        """Let go of every file; leased ones are closed by their last reader."""
        for segment in self.segments:
            segment.handle.retire()
            self.environment.index_cache.forget(segment)

    def go_offline(self, reason: str, *, is_wanted: bool = False) -> None:
        """Refuse every use from now on; the files stay as they are. A deletion is wanted, all else is an error."""
        if self.offline_reason is None:
            self.offline_reason = reason
            self.environment.home.went_offline(self)
            self.discard_staged()
            logger.log(logging.INFO if is_wanted else logging.ERROR, "%s is offline: %s", self.topic_partition, reason)

    def found_corrupt(self, error: CorruptSegment) -> KafkaStorageError:
        """Damage below what recovery may cut: only this log goes offline. See `LogDirectory.mending_job`."""
        if self.offline_reason is None:
            self.damaged_offset = error.base_offset
        self.go_offline(str(error))
        return self.offline_error()

    def directory_failed(self, reason: str) -> None:
        self.go_offline(reason)
        self.environment.home.failed(reason)

    def offline_error(self) -> KafkaStorageError:
        return KafkaStorageError(f"{self.topic_partition} is offline: {self.offline_reason}")
