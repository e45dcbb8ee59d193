"""The state of one log, which its modules share: segments, offsets, staged batches, leader epochs, online or offline.

`Log` adds the methods that the rest of the broker calls. The modules that write, read, flush, truncate and delete
(`rolling`, `reading`, `durability`, `truncation`, `retention` and others) work on this class, so that none of them
needs `Log`.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol

from millbeck.kernel.errors import KafkaStorageError
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage import rebuild
from millbeck.storage.config import LogConfig
from millbeck.storage.durability import FlushState
from millbeck.storage.epoch_cache import LeaderEpochCache
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.producer_state import ProducerStateManager
from millbeck.storage.segment import CorruptSegment, Segment
from millbeck.storage.staging import Staged

logger = logging.getLogger(__name__)


class PendingSwap(Protocol):
    """A swap of compacted segments in progress (`swap.Swap`), which a truncation ends first."""

    def complete_or_roll_back(self) -> None:
        """Roll back or complete the swap. Raises OSError."""

    def rollback_job(self) -> Callable[[], None] | None:
        """The job that a thread should run before `complete_or_roll_back`, or None. It raises OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogContents:
    """The result of loading or recovering a log."""

    segments: list[Segment]
    log_start_offset: int
    end_offset: int
    flushed_offset: int
    producer_state: ProducerStateManager
    epochs: LeaderEpochCache
    snapshot_offsets: list[int]


class LogState:
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
        "is_offline",
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
        contents: LogContents,
        now_ms: int,
    ) -> None:
        """Called by `loading.open_log` and `loading.create_log` only."""
        assert contents.segments
        self.environment = environment
        self.directory = directory
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.segments = contents.segments
        self.base_offsets = [segment.base_offset for segment in contents.segments]
        self.active = contents.segments[-1]
        self.log_start_offset = contents.log_start_offset
        self.end_offset = contents.end_offset
        self.flushed_offset = contents.flushed_offset
        self.producer_state = contents.producer_state
        self.epochs = contents.epochs
        self.offline_reason: str | None = None
        self.is_offline = False
        self.damaged_offset = -1
        """Base offset of the segment in which corruption was found; -1 when online, or offline for another reason."""
        self._is_closing = False
        self._staged: list[Staged] = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.next_offset = contents.end_offset
        self.now_ms = now_ms
        self.must_settle = False
        """Whether a truncation is not durable yet: no write is accepted until a flush has synced it."""
        self.detached: list[Segment] = []
        """Segments that are no longer part of the log and whose files are not renamed yet."""
        self._written_back = 0
        self.swap: PendingSwap | None = None
        """The swap of compacted segments that is in progress."""
        self.durability = FlushState(self, contents.snapshot_offsets)
        self.update_config(config)

    @property
    def recovery_point(self) -> int:
        """Everything below it is durable with its indexes; recovery reads from the segment that contains it.

        It is the flushed offset, unless the indexes of a sealed segment are not saved yet.
        """
        if self.durability.has_unsaved_sealed:
            for segment in self.segments[:-1]:
                if segment.has_unsaved_indexes:
                    return min(segment.base_offset, self.flushed_offset)
        return self.flushed_offset

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    def __repr__(self) -> str:
        return f"<log {self.topic_partition} [{self.log_start_offset}, {self.end_offset}) in {self.directory}>"

    def update_config(self, config: LogConfig) -> None:
        """Apply changed options from the next append on."""
        self.config = config
        self.segment_bytes = config.segment_size_bytes
        self.segment_ms = config.segment_age_ms_max
        self.waits_for_flush = config.flush_messages == 1
        active = self.active
        active.index_interval_bytes = config.index_interval_bytes
        if active.size:
            active.reset_roll_time()

    # Staged batches and writes.

    @property
    def has_staged(self) -> bool:
        return bool(self._staged)

    def stage_replicated(self, staged: Staged, now_ms: int) -> None:
        """Stage a batch that already has offsets."""
        self._staged.append(staged)
        self._staged_bytes += staged.size_bytes
        self.next_offset = staged.last_offset + 1
        self._staged_timestamp = max(self._staged_timestamp, staged.max_timestamp)
        self.now_ms = now_ms

    def discard_staged(self) -> None:
        """Discard everything staged, including staged producer state."""
        self._staged = []
        self._staged_bytes = 0
        self._staged_timestamp = -1
        self.next_offset = self.end_offset
        self.producer_state.drop()

    def commit(self, staged: Sequence[Staged]) -> None:
        """Make batches that were written at the end of the active segment's file part of the log."""
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

    def rollback_write(self, created: list[Segment], error: OSError, *, must_cut: bool) -> NoReturn:
        """Undo a failed write and raise `KafkaStorageError`; the next write waits for a flush that makes the cut
        durable.
        """
        self.discard_staged()
        try:
            for segment in created:
                segment.handle.retire()
                self.remove_file_if_there(segment.log_path)
            if must_cut:
                self.cut_active(self.active.size)
        except OSError as second:
            self.directory_failed(f"cannot truncate {self.active.log_path} after a failed write: {second}")
        self.durability.truncated_file(self)
        raise KafkaStorageError(f"{self.topic_partition} cannot be written: {error}") from error

    def _check_settled(self, size: int) -> None:
        """Refuse writes until the cut is durable: after a crash the removed bytes could come back between newer
        batches.

        The flush is requested only when the disk has room for the write.
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
            reason = (
                f"{free} bytes are free, {size} needed" if free < size else "an earlier truncation is not synced yet"
            )
            raise KafkaStorageError(f"{self.topic_partition} cannot be written: {reason}")

    def cut_active(self, size: int) -> None:
        """Truncate the active file to its known size."""
        self.active.handle.get().truncate(size)
        self.active.is_preallocated = False

    def remove_file_if_there(self, path: str) -> None:
        try:
            self.environment.files.unlink(path)
        except FileNotFoundError:
            pass

    # Segments and offsets.

    def segment_index_for(self, offset: int) -> int:
        """Index of the segment that contains ``offset``: the last with a base offset not above it, or the first
        segment.
        """
        return max(0, bisect_right(self.base_offsets, offset) - 1)

    def create_segment(self, base_offset: int) -> Segment:
        """A new empty segment; its file is created later, and `switch_to` makes it part of the log."""
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
        """Seal the active segment and make ``segment`` the active one."""
        self.active.seal()
        self.durability.has_unsaved_sealed = True
        self.durability.take_snapshot(self)
        self.segments.append(segment)
        self.base_offsets.append(segment.base_offset)
        self.active = segment
        self._written_back = 0

    def roll(self, now_ms: int) -> None:
        """Roll a new segment at the end offset; do nothing when the active one is empty. Raises
        `KafkaStorageError`.
        """
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
            self.rollback_write([segment], error, must_cut=False)
        self.switch_to(segment)

    def set_segments(self, segments: list[Segment]) -> None:
        """Replace the list of segments; the last one becomes the active one."""
        self.segments = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self.durability.look_for_unsaved(self)
        if self.active is not segments[-1]:
            self.active = segments[-1]
            self._written_back = 0

    def advance_log_start(self, offset: int) -> None:
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)

    def was_truncated(self, end_offset: int) -> None:
        """Set a lower end offset after a truncation; the result of a running flush is then ignored."""
        self.end_offset = self.next_offset = end_offset
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.durability.note_truncated(self)

    def last_stable_offset(self, high_watermark: int) -> int:
        return self.producer_state.last_stable_offset(high_watermark)

    def relocate(self, directory: str) -> None:
        """Use a renamed directory from now on; open files stay open."""
        self.directory = directory
        for segment in self.segments:
            segment.relocate(directory)

    def rebuild_indexes(self, segment: Segment, reason: str) -> None:
        """Rebuild missing or corrupt indexes from the batches. Raises `CorruptSegment`."""
        logger.warning("rebuilding the indexes of %s: %s", segment.log_path, reason)
        rebuild.indexes(segment)

    def rebuild_aborted(self, segment: Segment, reason: str) -> None:
        """Rebuild a missing or corrupt transaction index from the batches."""
        logger.warning("rebuilding the transaction index of %s: %s", segment.log_path, reason)
        try:
            rebuild.aborted(self, segment)
        except CorruptSegment as error:
            raise self.mark_corrupt(error) from error

    def close_files(self) -> None:
        """Close every file; leased ones are closed by their last reader."""
        for segment in self.segments:
            segment.handle.retire()
            self.environment.index_cache.forget(segment)

    # Going offline.

    def mark_offline(self, reason: str, *, is_wanted: bool = False) -> None:
        """Refuse all use from now on; files stay unchanged. ``is_wanted`` for a deletion, which is not logged as an
        error.
        """
        if self.offline_reason is None:
            self.offline_reason = reason
            self.is_offline = True
            self.environment.home.went_offline(self)
            self.discard_staged()
            logger.log(logging.INFO if is_wanted else logging.ERROR, "%s is offline: %s", self.topic_partition, reason)

    def mark_corrupt(self, error: CorruptSegment) -> KafkaStorageError:
        """Take only this log offline: corruption where recovery may not truncate. See `LogDirectory.repair_job`."""
        if self.offline_reason is None:
            self.damaged_offset = error.base_offset
        self.mark_offline(str(error))
        return self.offline_error()

    def directory_failed(self, reason: str) -> None:
        self.mark_offline(reason)
        self.environment.home.failed(reason)

    def offline_error(self) -> KafkaStorageError:
        if self.offline_reason is None:
            return KafkaStorageError(f"{self.topic_partition} is closed: the node shuts down")
        return KafkaStorageError(f"{self.topic_partition} is offline: {self.offline_reason}")
