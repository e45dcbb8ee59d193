"""Opening the metadata log and reading it: the newest snapshot and everything after it become the first image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.kernel.units import DAY_MS, GIB, MIB
from millbeck.metadata.batches import MetadataBatch, read_batches
from millbeck.metadata.delta import MetadataDelta, advance
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.metadata.records import MetadataRecord
from millbeck.metadata.snapshot import SnapshotId
from millbeck.records.control import KRaftVersion, Voters
from millbeck.server.drivers.metadata_files import FoundSnapshot, newest_snapshot
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
class Loaded:
    """``delta`` leads from nothing to ``image``; ``tail_bytes`` is what the log holds beyond the snapshot."""

    image: MetadataImage
    delta: MetadataDelta
    snapshot_id: SnapshotId | None
    tail_bytes: int


def load(files: Files, log: Log) -> Loaded:
    """All records in one step: a fold over thousands of small batches would make as many images.

    Raises `MetadataFault` when snapshot and log do not fit together or are not understood, OSError and `ApiError` when
    they can not be read.
    """
    found = newest_snapshot(files, log.directory)
    records: list[MetadataRecord] = []
    offset, epoch, timestamp_ms, tail_bytes = -1, -1, -1, 0
    if found is not None:
        records += _records_of(found)
        offset, epoch = found.id.end_offset - 1, found.id.epoch
        timestamp_ms = found.content.last_contained_log_timestamp
        if log.end_offset < found.id.end_offset:
            # The last segment went, and the one that was to follow was not durable yet. The snapshot has it all.
            log.truncate_fully_and_start_at(found.id.end_offset)
        log.delete_records(max(found.id.end_offset, log.log_start_offset))
    if log.log_start_offset > offset + 1:
        raise MetadataFault(
            f"the log begins at offset {log.log_start_offset}, but the newest snapshot ends before {offset + 1}"
        )
    for batch in _batches_from(log, offset + 1):
        if any(isinstance(value, KRaftVersion | Voters) for value in batch.control_values):
            raise MetadataFault(_VOTERS_IN_LOG)
        records += batch.records
        offset, epoch, timestamp_ms = batch.last_offset, batch.epoch, batch.timestamp_ms
        tail_bytes += batch.size_bytes
    image, delta = advance(EMPTY, records, offset=offset, epoch=epoch, timestamp_ms=timestamp_ms)
    snapshot_id = None if found is None else found.id
    return Loaded(image=image, delta=delta, snapshot_id=snapshot_id, tail_bytes=tail_bytes)


_VOTERS_IN_LOG = (
    "the voters are kept in the metadata log (kraft.version 1); this release works with controller.quorum.voters only"
)


def _records_of(found: FoundSnapshot) -> tuple[MetadataRecord, ...]:
    if found.content.kraft_version != 0 or found.content.voters is not None:
        raise MetadataFault(_VOTERS_IN_LOG)
    return found.content.records


def _batches_from(log: Log, offset: int) -> Iterator[MetadataBatch]:
    while offset < log.end_offset:
        found = log.read(offset, size_bytes_max=_READ_SIZE_BYTES, upto_offset=log.end_offset)
        if found is None:
            raise MetadataFault(f"the log has nothing at offset {offset}, though it ends at {log.end_offset}")
        try:
            data = found.file.read(found.size, found.position)
        finally:
            found.release()
        for batch in read_batches(data):
            if batch.last_offset >= offset:
                offset = batch.last_offset + 1
                yield batch
