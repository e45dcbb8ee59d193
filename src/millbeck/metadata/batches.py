"""Metadata records inside record batches, as they stand in the log and in snapshots.

One batch of the log is what is appended at once: data records with null keys and one timestamp, or control records. All
checks of what was read (checksum, frames, counts) are here, and every failure is a `MetadataFault`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from millbeck.kernel.errors import ApiError
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.metadata.framing import decode, encode
from millbeck.metadata.records import MetadataRecord
from millbeck.records import batch as record_batch
from millbeck.records import control
from millbeck.records.record import Record

BATCH_SIZE_BYTES_MAX = 8 * 1024 * 1024
"""The largest batch that Kafka's quorum appends or takes."""


class BatchTooLarge(Exception):
    """Records that do not fit one batch, and so can not be appended as one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBatch:
    """What one batch says: ``records`` of a data batch or ``control_values`` of a control batch; the other is empty."""

    base_offset: int
    last_offset: int
    epoch: int
    timestamp_ms: int
    size_bytes: int
    records: tuple[MetadataRecord, ...] = ()
    control_values: tuple[control.ControlValue, ...] = ()


def data_batch(
    records: Sequence[MetadataRecord],
    *,
    base_offset: int,
    epoch: int,
    timestamp_ms: int,
    metadata_version: int = LATEST_METADATA_VERSION,
) -> bytes:
    """One batch with all of ``records``; `BatchTooLarge` when it is larger than the quorum takes."""
    batch = record_batch.build(
        [Record(-1, timestamp_ms, None, encode(record, metadata_version)) for record in records],
        base_offset=base_offset,
        partition_leader_epoch=epoch,
    )
    if len(batch) > BATCH_SIZE_BYTES_MAX:
        raise BatchTooLarge(f"{len(records)} metadata records make a batch of {len(batch)} bytes")
    return batch


def control_batch(values: Iterable[control.ControlValue], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    return control.control_batch(
        list(values), base_offset=base_offset, timestamp=timestamp_ms, partition_leader_epoch=epoch
    )


def read_batches(data: bytes | memoryview) -> Iterator[MetadataBatch]:
    """The batches that stand one after another in ``data``, checked."""
    try:
        for _, _, view in record_batch.split(data):
            yield read_batch(view)
    except ApiError as error:
        raise MetadataFault(f"metadata batch that can not be read: {error}") from error


def read_batch(data: bytes | memoryview) -> MetadataBatch:
    """The batch that ``data`` begins with."""
    try:
        header = record_batch.read_header(data)
        records = record_batch.records_of(data)
        values = tuple(_control_values(records)) if header.is_control else ()
    except ApiError as error:
        raise MetadataFault(f"metadata batch that can not be read: {error}") from error
    return MetadataBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        epoch=header.partition_leader_epoch,
        timestamp_ms=header.max_timestamp,
        size_bytes=header.size_bytes,
        records=() if header.is_control else tuple(_decoded(record) for record in records),
        control_values=values,
    )


def _decoded(record: Record) -> MetadataRecord:
    if record.value is None:
        raise MetadataFault(f"metadata record at offset {record.offset} has no value")
    return decode(record.value)


def _control_values(records: list[Record]) -> Iterator[control.ControlValue]:
    for record in records:
        value = control.decode(record)
        if value is None:
            raise MetadataFault(f"control record of an unknown type at offset {record.offset}")
        yield value
