"""Opening the metadata log and reading it: which snapshot it begins with, who votes, and what its batches say."""

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
from millbeck.server.drivers import metadata_files
from millbeck.server.drivers.metadata_files import FoundSnapshot, newest_snapshot, older_snapshots
from millbeck.server.drivers.metadata_retention import KeptSnapshot
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
    """The metadata log in ``directory``, created when it is not there. Raises OSError.

    Nothing of it is removed for its age or size: only what a snapshot stands for goes.
    """
    config = LogConfig.of(
        segment_bytes=str(segment_bytes), segment_ms=str(segment_ms), retention_ms="-1", retention_bytes="-1"
    )
    if any(partition == METADATA_PARTITION for partition, _ in directory.partitions()):
        return directory.open_log(METADATA_PARTITION, METADATA_TOPIC_ID, config, now_ms=now_ms)
    return directory.create_log(METADATA_PARTITION, METADATA_TOPIC_ID, config, now_ms=now_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """What a start finds: the newest snapshot, and the control records about voters in the log after it."""

    snapshot: FoundSnapshot | None
    voter_changes: tuple[tuple[int, KRaftVersion | Voters], ...]
    older: tuple[KeptSnapshot, ...] = ()
    """Snapshots before the newest that the log still continues, oldest first."""
    start_epoch: int = 0
    """The epoch of the last record before the log's start."""


def open_state(files: Files, log: Log) -> Opened:
    """Find the newest snapshot, let the log begin where one of them ends, and look for voters in the rest.

    Raises `MetadataFault` when snapshot and log do not fit together or are not understood, OSError and `ApiError` when
    they can not be read.
    """
    found = newest_snapshot(files, log.directory)
    if found is None:
        _check_start(log, 0)
        return Opened(snapshot=None, voter_changes=tuple(_voter_changes(log, 0)))
    end_offset = found.id.end_offset
    older: list[KeptSnapshot] = []
    if end_offset and not _continues(log, found.id):
        # It was fetched when this log had fallen behind, or the last segment went and the one that was to follow was
        # not durable yet. The snapshot has it all.
        log.truncate_fully_and_start_at(end_offset)
    elif end_offset:
        start_offset = log.log_start_offset
        older = [
            each
            for each in older_snapshots(files, log.directory, found.id)
            if each.id.end_offset >= start_offset and (not each.id.end_offset or _continues(log, each.id))
        ]
    begins_with = older[0].id if older else found.id
    if log.log_start_offset:
        log.delete_records(max(begins_with.end_offset, log.log_start_offset))
    metadata_files.remove_snapshots_before(files, log.directory, begins_with)
    _check_start(log, end_offset)
    return Opened(
        snapshot=found,
        voter_changes=tuple(_voter_changes(log, end_offset)),
        older=tuple(older),
        start_epoch=begins_with.epoch if log.log_start_offset else 0,
    )


def _check_start(log: Log, end_offset: int) -> None:
    if log.log_start_offset > end_offset:
        raise MetadataFault(
            f"the log begins at offset {log.log_start_offset}, but the newest snapshot ends before {end_offset}"
        )


def _continues(log: Log, snapshot: SnapshotId) -> bool:
    """Whether what the log holds beyond the snapshot came after what the snapshot stands for."""
    if log.end_offset < snapshot.end_offset:
        return False
    if log.log_start_offset >= snapshot.end_offset:
        return True
    return log.epochs.epoch_of(snapshot.end_offset - 1) == snapshot.epoch


def _voter_changes(log: Log, offset: int) -> Iterator[tuple[int, KRaftVersion | Voters]]:
    for view in _views_from(log, offset, log.end_offset):
        yield from voter_changes_of(view)


def voter_changes_of(batch: bytes | memoryview) -> Iterator[tuple[int, KRaftVersion | Voters]]:
    """The control records about voters in a batch, by offset; data batches are not looked into."""
    if not record_batch.read_header(batch).is_control:
        return
    read = read_batch(batch)
    for index, value in enumerate(read.control_values):
        if isinstance(value, KRaftVersion | Voters):
            yield read.base_offset + index, value


def batches_from(log: Log, offset: int, upto_offset: int) -> Iterator[MetadataBatch]:
    """Everything in ``[offset, upto_offset)``, read in large pieces. Raises `MetadataFault`, `KafkaStorageError`."""
    for view in _views_from(log, offset, upto_offset):
        yield read_batch(view)


def _views_from(log: Log, offset: int, upto_offset: int) -> Iterator[memoryview]:
    while offset < upto_offset:
        found = log.read(offset, size_bytes_max=_READ_SIZE_BYTES, upto_offset=upto_offset)
        if found is None:
            raise MetadataFault(f"the log has nothing at offset {offset}, though it ends at {log.end_offset}")
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
            raise MetadataFault(f"metadata batch that can not be read: {error}") from error
