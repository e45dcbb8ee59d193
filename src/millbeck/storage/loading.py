"""Opening of a log: with little reading after a clean shutdown, by `recovery` after a crash.

After a clean shutdown the recovery point is the log end offset, which the producer snapshot at that offset proves.
Only names, sizes and a few small files are read. Any deviation from a cleanly closed log leads to recovery instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from millbeck.kernel.environment import Files, OpenMode
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage import interrupted, producer_snapshot, rebuild
from millbeck.storage.atomic_file import read_file
from millbeck.storage.checkpoints import CheckpointError
from millbeck.storage.config import LogConfig
from millbeck.storage.epoch_cache import FILE_NAME as EPOCH_FILE_NAME
from millbeck.storage.epoch_cache import LeaderEpochCache, decode_epochs
from millbeck.storage.log import Log
from millbeck.storage.log_environment import LogEnvironment
from millbeck.storage.log_state import LogContents
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.producer_state import ProducerStateManager
from millbeck.storage.recovery import Recovery, first_to_read
from millbeck.storage.segment import (
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    CorruptSegment,
    Segment,
    file_name,
)

logger = logging.getLogger(__name__)

_EPOCH_FILE_SIZE_MAX = 64 * 1024 * 1024


def create_log(
    environment: LogEnvironment,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    *,
    now_ms: int,
    start_offset: int = 0,
) -> Log:
    """Create an empty log in an existing directory. Raises OSError."""
    return _Loader(environment, directory, topic_partition, topic_id, config, now_ms).empty_log(start_offset)


def open_log(
    environment: LogEnvironment,
    directory: str,
    topic_partition: TopicPartition,
    topic_id: Uuid,
    config: LogConfig,
    *,
    now_ms: int,
    recovery_point: int,
    log_start_offset: int,
    had_clean_shutdown: bool,
) -> Log:
    """Open the log in ``directory``, with recovery if needed. Corruption below the recovery point gives an offline
    log.

    Raises OSError when files cannot be read or truncated. After an unclean shutdown it may read much.
    """
    loader = _Loader(environment, directory, topic_partition, topic_id, config, now_ms)
    return loader.load(recovery_point, log_start_offset, had_clean_shutdown)


class _Loader:
    def __init__(
        self,
        environment: LogEnvironment,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: Uuid,
        config: LogConfig,
        now_ms: int,
    ) -> None:
        self._environment = environment
        self._files: Files = environment.files
        self._directory = directory
        self._topic_partition = topic_partition
        self._topic_id = topic_id
        self._config = config
        self._now_ms = now_ms
        self._names: frozenset[str] = frozenset()
        self._snapshots: list[int] = []

    def load(self, recovery_point: int, log_start_offset: int, had_clean_shutdown: bool) -> Log:
        names = interrupted.complete_or_undo(self._files, self._directory, self._files.names(self._directory))
        self._names = frozenset(names)
        self._snapshots = [interrupted.offset_of(name) for name in names if name.endswith(producer_snapshot.SUFFIX)]
        self._snapshots = [offset for offset in self._snapshots if offset >= 0]
        segments = self._list_segments(names)
        if not segments:
            self._keep_snapshots(lambda offset: False)
            return self.empty_log(log_start_offset)
        # Segments that retention had begun to delete may be incomplete; the producer snapshot after them replaces
        # them.
        gone_below = min(log_start_offset, recovery_point)
        bases = [segment.base_offset for segment in segments]
        secured = [base for base in bases if base <= gone_below and base in self._snapshots]
        for _ in range(bases.index(secured[-1]) if secured else 0):
            self._remove_segment(segments.pop(0))
        log_start_offset = max(log_start_offset, segments[0].base_offset)
        if had_clean_shutdown:
            try:
                return self._load_clean(segments, recovery_point, log_start_offset)
            except (CorruptIndex, CorruptSegment) as error:
                logger.warning("recovering %s in spite of a clean shutdown: %s", self._directory, error)
        return self._recover(segments, recovery_point, log_start_offset)

    def empty_log(self, start_offset: int) -> Log:
        segment = self._segment(start_offset)
        segment.start_empty()
        log = self._log([segment], start_offset, start_offset, start_offset, ProducerStateManager(), LeaderEpochCache())
        segment.prepare_file(self._config)
        log.durability.note_directory_changed()
        return log

    def _segment(self, base_offset: int) -> Segment:
        shared = self._environment
        return Segment(shared.files, shared.cache, shared.index_cache, self._directory, base_offset, self._config)

    def _list_segments(self, names: list[str]) -> list[Segment]:
        segments = []
        for name in names:
            offset = interrupted.offset_of(name)
            if offset >= 0 and name.endswith(LOG_SUFFIX):
                segment = self._segment(offset)
                segment.size = self._files.size(segment.log_path)
                if file_name(offset, TXN_INDEX_SUFFIX) not in self._names:
                    segment.set_no_txn_index()
                segments.append(segment)
        return segments

    def _load_clean(self, segments: list[Segment], recovery_point: int, log_start_offset: int) -> Log:
        """Load a cleanly closed log. Raises `CorruptIndex` or `CorruptSegment` when it needs recovery."""
        active = segments[-1]
        for segment in segments:
            if not self._has_index_files(segment):
                raise CorruptIndex(f"an index of {segment.log_path} is missing")
        is_proven = recovery_point in self._snapshots and (recovery_point > active.base_offset) == (active.size > 0)
        end_offset = recovery_point if is_proven else active.next_offset()
        if end_offset < log_start_offset:
            raise CorruptSegment(active.log_path, active.size, f"the log should start at offset {log_start_offset}")
        epochs = self._load_epochs(segments, end_offset)
        epochs.truncate_from_start(log_start_offset)
        bases = [segment.base_offset for segment in segments]
        newest = max((offset for offset in self._snapshots if offset <= end_offset), default=-1)
        self._keep_snapshots(lambda offset: offset == newest or (offset <= end_offset and offset in bases))
        producers = rebuild.load_producers(segments, self._snapshots, self._read_snapshot, end_offset, end_offset)
        return self._log(segments, log_start_offset, end_offset, end_offset, producers, epochs)

    def _recover(self, segments: list[Segment], recovery_point: int, log_start_offset: int) -> Log:
        first = first_to_read(segments, recovery_point)
        try:
            epochs = self._load_epochs(segments[:first], segments[first].base_offset)
            rebuilt = [segment for segment in segments[:first] if not self._has_index_files(segment)]
            for segment in rebuilt:
                logger.warning("rebuilding the missing indexes of %s", segment.log_path)
                rebuild.indexes(segment)
        except CorruptSegment as error:
            return self._offline(segments, log_start_offset, recovery_point, error)
        # Above the recovery point a snapshot may describe batches that are lost; recovery takes new ones.
        self._keep_snapshots(lambda offset: offset <= recovery_point)
        recovery = Recovery(
            segments,
            recovery_point=recovery_point,
            is_compacted=self._config.is_compacted,
            epochs=epochs,
            snapshot_offsets=self._snapshots,
            read_snapshot=self._read_snapshot,
        )
        recovery.run()
        if recovery.problem is not None:
            return self._offline(segments, log_start_offset, recovery_point, recovery.problem)
        for segment in recovery.segments[recovery.first_index :]:
            # Index files of an earlier process cover fewer batches; the next recovery must not find them with more.
            segment.remove_index_files()
        if recovery.dropped:
            for segment in reversed(recovery.dropped):
                self._remove_segment(segment)
            self._files.sync_directory(self._directory)
        end_offset = recovery.end_offset
        if end_offset < log_start_offset:
            logger.warning(
                "%s ends at offset %d, before its log start offset %d: starting an empty log",
                self._topic_partition,
                end_offset,
                log_start_offset,
            )
            for segment in reversed(recovery.segments):
                self._remove_segment(segment)
            self._keep_snapshots(lambda offset: False)
            self._files.sync_directory(self._directory)
            return self.empty_log(log_start_offset)
        self._sync_last_file(recovery.segments[-1])
        bases = [segment.base_offset for segment in recovery.segments]
        self._keep_snapshots(lambda offset: offset in bases)
        made = {offset: content for offset, content in recovery.snapshots.items() if offset not in self._snapshots}
        self._snapshots = sorted([*self._snapshots, *made])
        epochs.truncate_from_start(log_start_offset)
        flushed_offset = max(min(recovery_point, end_offset), bases[0])
        log = self._log(
            recovery.segments, log_start_offset, end_offset, flushed_offset, recovery.producers, recovery.epochs
        )
        for segment in rebuilt:
            log.rebuild_aborted(segment, "it is missing")
        log.durability.note_recovered(made)
        read = sum(segment.size for segment in recovery.segments[recovery.first_index :])
        logger.info("recovered %s up to offset %d, %d bytes read", self._topic_partition, end_offset, read)
        return log

    def _sync_last_file(self, active: Segment) -> None:
        """Sync the last file and the directory: the previous process may have truncated or removed files without a
        sync.

        Otherwise a power failure could bring back removed batches in the middle of new ones.
        """
        file = self._files.open(active.log_path, OpenMode.WRITE)
        try:
            file.sync()
        finally:
            file.close()
        self._files.sync_directory(self._directory)

    def _offline(self, segments: list[Segment], log_start_offset: int, end_offset: int, problem: CorruptSegment) -> Log:
        log = self._make(
            segments,
            log_start_offset,
            max(end_offset, log_start_offset),
            end_offset,
            ProducerStateManager(),
            LeaderEpochCache(),
        )
        log.mark_corrupt(problem)
        return log

    def _log(
        self,
        segments: list[Segment],
        log_start_offset: int,
        end_offset: int,
        flushed_offset: int,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
    ) -> Log:
        jitter_max = self._config.segment_jitter_ms_max
        jitter = self._environment.jitter_below(jitter_max) if jitter_max > 0 else 0
        active = segments[-1]
        active.make_active(created_ms=self._now_ms, roll_jitter_ms=jitter)
        active.set_recent_start(end_offset)
        return self._make(segments, log_start_offset, end_offset, flushed_offset, producers, epochs)

    def _make(
        self,
        segments: list[Segment],
        log_start_offset: int,
        end_offset: int,
        flushed_offset: int,
        producers: ProducerStateManager,
        epochs: LeaderEpochCache,
    ) -> Log:
        return Log(
            self._environment,
            directory=self._directory,
            topic_partition=self._topic_partition,
            topic_id=self._topic_id,
            config=self._config,
            contents=LogContents(
                segments=segments,
                log_start_offset=log_start_offset,
                end_offset=end_offset,
                flushed_offset=flushed_offset,
                producer_state=producers,
                epochs=epochs,
                snapshot_offsets=self._snapshots,
            ),
            now_ms=self._now_ms,
        )

    def _has_index_files(self, segment: Segment) -> bool:
        return all(
            file_name(segment.base_offset, suffix) in self._names for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX)
        )

    # Leader epochs, producer snapshots and removal of files.

    def _load_epochs(self, segments: list[Segment], end_offset: int) -> LeaderEpochCache:
        """The epochs that begin before ``end_offset``: from the checkpoint file, or from the batches of
        ``segments``.
        """
        content = read_file(self._files, f"{self._directory}/{EPOCH_FILE_NAME}", _EPOCH_FILE_SIZE_MAX)
        try:
            epochs = None if content is None else LeaderEpochCache(decode_epochs(content))
        except CheckpointError as error:
            logger.warning("ignoring %s of %s: %s", EPOCH_FILE_NAME, self._directory, error)
            epochs = None
        if epochs is None:
            epochs = LeaderEpochCache()
            for segment in segments:
                for _, header in segment.headers():
                    epochs.assign(header.partition_leader_epoch, header.base_offset)
        epochs.truncate_from_end(end_offset)
        return epochs

    def _read_snapshot(self, offset: int) -> bytes | None:
        path = f"{self._directory}/{file_name(offset, producer_snapshot.SUFFIX)}"
        return read_file(self._files, path, producer_snapshot.SIZE_BYTES_MAX)

    def _keep_snapshots(self, keep: Callable[[int], bool]) -> None:
        for offset in self._snapshots:
            if not keep(offset):
                interrupted.remove(self._files, self._directory, file_name(offset, producer_snapshot.SUFFIX))
        self._snapshots = [offset for offset in self._snapshots if keep(offset)]

    def _remove_segment(self, segment: Segment) -> None:
        segment.handle.retire()
        for suffix in (LOG_SUFFIX, *INDEX_SUFFIXES):
            interrupted.remove(self._files, self._directory, file_name(segment.base_offset, suffix))
