"""Open the metadata log and load its state: the newest snapshot, the voters, and the batches after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millbeck.kernel.environment import Files
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.kernel.units import DAY_MS, GIB, MIB
from millbeck.metadata.batches import MetadataBatch, read_batch
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.snapshot import SnapshotId
from millbeck.records import batch as record_batch
from millbeck.records.control import KRaftVersion, Voters
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.metadata_files import SnapshotFile, newest_snapshot, older_snapshots
from millbeck.server.metadata.retention import RetainedSnapshot
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.log import Log

METADATA_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"
"""The id that Kafka reserves for the metadata log."""

_READ_SIZE_BYTES = 8 * MIB


def open_metadata_log(
    directory: LogDirectory, *, now_ms: int, segment_bytes: int = 1 * GIB, segment_ms: int = 7 * DAY_MS
) -> Log:
    """The metadata log in ``directory``, created if it does not exist. Raises OSError.

    Its segments are not deleted by age or size, only when a snapshot covers them.
    """
    config = LogConfig.of(
        segment_bytes=str(segment_bytes), segment_ms=str(segment_ms), retention_ms="-1", retention_bytes="-1"
    )
    if any(partition == METADATA_PARTITION for partition, _ in directory.partitions()):
        return directory.open_log(METADATA_PARTITION, METADATA_TOPIC_ID, config, now_ms=now_ms)
    return directory.create_log(METADATA_PARTITION, METADATA_TOPIC_ID, config, now_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    """The loaded state: the newest snapshot, and the voter control records in the log after it."""

    snapshot: SnapshotFile | None
    voter_changes: tuple[tuple[int, KRaftVersion | Voters], ...]
    older: tuple[RetainedSnapshot, ...] = ()
    """Older snapshots that the log still continues from, oldest first."""
    start_epoch: int = 0
    """The epoch of the last record before the log's start."""


def load_state(files: Files, log: Log) -> LoadedLog:
    """Find the newest snapshot, set the log start to the end of a snapshot, and read the voters from the log after it.

    Raises `MetadataFault` when snapshot and log do not match or cannot be parsed, OSError and `ApiError` when they
    cannot be read.
    """
    found = newest_snapshot(files, log.directory)
    if found is None:
        _check_start(log, 0)
        return LoadedLog(snapshot=None, voter_changes=tuple(_voter_changes(log, 0)))
    end_offset = found.id.end_offset
    older: list[RetainedSnapshot] = []
    if end_offset and not _continues(log, found.id):
        # The snapshot was fetched because this log had fallen behind, or the last segment was deleted before its
        # successor was durable. The snapshot covers everything.
        log.truncate_fully_and_start_at(end_offset)
    elif end_offset:
        start_offset = log.log_start_offset
        older = [
            each
            for each in older_snapshots(files, log.directory, found.id)
            if each.id.end_offset >= start_offset and (not each.id.end_offset or _continues(log, each.id))
        ]
    oldest_to_keep = older[0].id if older else found.id
    if log.log_start_offset:
        log.delete_records(max(oldest_to_keep.end_offset, log.log_start_offset))
    metadata_files.remove_snapshots_before(files, log.directory, oldest_to_keep)
    _check_start(log, end_offset)
    return LoadedLog(
        snapshot=found,
        voter_changes=tuple(_voter_changes(log, end_offset)),
        older=tuple(older),
        start_epoch=oldest_to_keep.epoch if log.log_start_offset else 0,
    )


def _check_start(log: Log, end_offset: int) -> None:
    if log.log_start_offset > end_offset:
        raise MetadataFault(
            f"the log begins at offset {log.log_start_offset}, but the newest snapshot ends before {end_offset}"
        )


def _continues(log: Log, snapshot: SnapshotId) -> bool:
    """Whether the log continues from the snapshot: the epoch at the snapshot's end matches."""
    if log.end_offset < snapshot.end_offset:
        return False
    if log.log_start_offset >= snapshot.end_offset:
        return True
    return log.epochs.epoch_of(snapshot.end_offset - 1) == snapshot.epoch


def _voter_changes(log: Log, offset: int) -> Iterator[tuple[int, KRaftVersion | Voters]]:
    for view in views_from(log, offset, log.end_offset):
        yield from voter_changes_of(view)


def voter_changes_of(batch: bytes | memoryview) -> Iterator[tuple[int, KRaftVersion | Voters]]:
    """The voter control records of a batch, with their offsets; data batches are skipped."""
    if not record_batch.read_header(batch).is_control:
        return
    read = read_batch(batch)
    for index, value in enumerate(read.control_values):
        if isinstance(value, KRaftVersion | Voters):
            yield read.base_offset + index, value


def batches_from(log: Log, offset: int, upto_offset: int) -> Iterator[MetadataBatch]:
    """The parsed batches in ``[offset, upto_offset)``, in large reads. Raises `MetadataFault`, `KafkaStorageError`."""
    for view in views_from(log, offset, upto_offset):
        yield read_batch(view)


def views_from(log: Log, offset: int, upto_offset: int) -> Iterator[memoryview]:
    """The same as `batches_from`, as raw batches."""
    while offset < upto_offset:
        found = log.read(offset, size_bytes_max=_READ_SIZE_BYTES, upto_offset=upto_offset)
        if found is None:
            raise MetadataFault(f"the log has no batch at offset {offset}, but its end offset is {log.end_offset}")
        try:
            data = found.file.read(found.size, found.position)
        finally:
            found.release()
        try:
            for header, _, view in record_batch.split(data):
                if header.last_offset >= offset:
                    offset = header.last_offset + 1
                    yield view
        except ApiError as error:
            raise MetadataFault(f"cannot read a metadata batch: {error}") from error
