"""Record batches of metadata records, as stored in the log and in snapshots.

One batch of the log is one append: data records with null keys and a common timestamp, or control records. All
validation of batches that are read (checksum, frames, counts) is done here, and every failure is a `MetadataFault`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from millbeck.kernel.errors import ApiError
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.metadata.framing import decode, encode
from millbeck.metadata.records import MetadataRecord
from millbeck.records import batch as record_batch
from millbeck.records import control
from millbeck.records.native.write import PayloadWriter
from millbeck.records.record import Record

BATCH_SIZE_BYTES_MAX = 8 * 1024 * 1024
"""Maximum size of a batch in Kafka's quorum."""


class BatchTooLarge(Exception):
    """The records do not fit in one batch, so they cannot be appended atomically."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBatch:
    """The content of one batch: ``records`` of a data batch or ``control_values`` of a control batch; the other is
    empty."""

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
    """Build one batch of all ``records``; raises `BatchTooLarge` above the quorum's maximum."""
    writer = MetadataBatchWriter(timestamp_ms=timestamp_ms, metadata_version=metadata_version)
    writer.add(records)
    return writer.build(base_offset=base_offset, epoch=epoch)


class MetadataBatchWriter:
    """Builds a batch incrementally, for more records than should be encoded without yielding to the event loop."""

    __slots__ = ("_metadata_version", "_payload", "_timestamp_ms")

    def __init__(self, *, timestamp_ms: int, metadata_version: int = LATEST_METADATA_VERSION) -> None:
        self._timestamp_ms = timestamp_ms
        self._metadata_version = metadata_version
        self._payload = PayloadWriter()

    def add(self, records: Iterable[MetadataRecord]) -> None:
        """Add records; raises `BatchTooLarge` above the quorum's maximum."""
        payload = self._payload
        for record in records:
            payload.append(self._timestamp_ms, None, encode(record, self._metadata_version))
        size_bytes = record_batch.HEADER_SIZE + payload.size_bytes
        if size_bytes > BATCH_SIZE_BYTES_MAX:
            raise BatchTooLarge(f"{payload.record_count} metadata records make a batch of {size_bytes} bytes")

    def build(self, *, base_offset: int, epoch: int) -> bytes:
        payload = self._payload
        return record_batch.assemble(
            payload.payload(),
            record_count=payload.record_count,
            last_offset_delta=payload.record_count - 1,
            base_timestamp=payload.base_timestamp,
            max_timestamp=payload.max_timestamp,
            base_offset=base_offset,
            partition_leader_epoch=epoch,
        )


def control_batch(values: Iterable[control.ControlValue], *, base_offset: int, epoch: int, timestamp_ms: int) -> bytes:
    return control.control_batch(
        list(values), base_offset=base_offset, timestamp=timestamp_ms, partition_leader_epoch=epoch
    )


def read_batches(data: bytes | memoryview) -> Iterator[MetadataBatch]:
    """Decode and validate the consecutive batches in ``data``."""
    try:
        for _, _, view in record_batch.split(data):
            yield read_batch(view)
    except ApiError as error:
        raise MetadataFault(f"cannot decode metadata batch: {error}") from error


def read_batch(data: bytes | memoryview) -> MetadataBatch:
    """Decode and validate the first batch in ``data``."""
    batch, records = read_in_pieces(data, sys.maxsize)
    return replace(batch, records=next(records, ()))


def read_in_pieces(data: bytes | memoryview, count: int) -> tuple[MetadataBatch, Iterator[tuple[MetadataRecord, ...]]]:
    """Decode the first batch in ``data`` without its records, and return an iterator over these, ``count`` at a
    time."""
    try:
        header = record_batch.read_header(data)
        records = record_batch.records_of(data)
        values = tuple(_control_values(records)) if header.is_control else ()
    except ApiError as error:
        raise MetadataFault(f"cannot decode metadata batch: {error}") from error
    batch = MetadataBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        epoch=header.partition_leader_epoch,
        timestamp_ms=header.max_timestamp,
        size_bytes=header.size_bytes,
        control_values=values,
    )
    return batch, _pieces([] if header.is_control else records, count)


def _pieces(records: list[Record], count: int) -> Iterator[tuple[MetadataRecord, ...]]:
    remaining = iter(records)
    while some := tuple(_decoded(record) for record in islice(remaining, count)):
        yield some


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
