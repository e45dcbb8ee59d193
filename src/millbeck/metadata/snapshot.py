"""Snapshots of the metadata log: one file that replaces all records below its end offset.

A snapshot consists of ordinary batches: a control batch with the header (and, from ``kraft.version`` 1, that version
and the voters), the image as data batches, a control batch with the footer. Offsets in it start at 0; its end offset
and epoch are in the file name. A file without a footer is incomplete and not a snapshot. ``bootstrap.checkpoint`` has
the same format and contains the initial records of a new cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from millbeck.kernel.errors import ApiError
from millbeck.metadata.batches import control_batch, data_batch, read_batch, read_batches
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import (
    FROM_THE_START,
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
)
from millbeck.metadata.records import FeatureLevelRecord, MetadataRecord
from millbeck.records.batch import split
from millbeck.records.control import ControlValue, KRaftVersion, SnapshotFooter, SnapshotHeader, Voters

BOOTSTRAP_NAME = "bootstrap.checkpoint"
SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".checkpoint.deleted"

BATCH_RECORD_COUNT = 128
"""Records per data batch of a snapshot: few enough to be encoded without blocking the event loop."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")


class SnapshotId(NamedTuple):
    """Identifies a snapshot: its end offset (exclusive) and the epoch of its last record."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"

    @property
    def part_name(self) -> str:
        """The file name while the snapshot is being written."""
        return f"{self.end_offset:020d}-{self.epoch:010d}{PART_SUFFIX}"


def parse_name(file_name: str) -> SnapshotId | None:
    """Parse the file name of a complete snapshot; None for any other file."""
    found = _NAME.fullmatch(file_name)
    return None if found is None else SnapshotId(int(found[1]), int(found[2]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    last_contained_log_timestamp: int
    records: tuple[MetadataRecord, ...]
    kraft_version: int = 0
    voters: Voters | None = None


def snapshot_batches(
    records: Iterable[MetadataRecord],
    *,
    epoch: int,
    last_contained_log_timestamp: int,
    now_ms: int,
    metadata_version: int = LATEST_METADATA_VERSION,
    kraft_version: int = 0,
    voters: Voters | None = None,
) -> Iterator[bytes]:
    """Yield the snapshot's batches one by one, so that the caller can yield to the event loop in between."""
    beginning: list[ControlValue] = [SnapshotHeader(last_contained_log_timestamp=last_contained_log_timestamp)]
    if kraft_version > 0:
        beginning.append(KRaftVersion(kraft_version=kraft_version))
        beginning += [voters] if voters is not None else []
    yield control_batch(beginning, base_offset=0, epoch=epoch, timestamp_ms=now_ms)
    offset = len(beginning)
    remaining = iter(records)
    while chunk := list(islice(remaining, BATCH_RECORD_COUNT)):
        yield data_batch(chunk, base_offset=offset, epoch=epoch, timestamp_ms=now_ms, metadata_version=metadata_version)
        offset += len(chunk)
    yield control_batch([SnapshotFooter()], base_offset=offset, epoch=epoch, timestamp_ms=now_ms)


def read_snapshot(data: bytes | memoryview) -> Snapshot:
    """Decode a snapshot file; raises `MetadataFault` if it is damaged or incomplete."""
    control_values: list[ControlValue] = []
    records: list[MetadataRecord] = []
    for batch in read_batches(data):
        if control_values and isinstance(control_values[-1], SnapshotFooter):
            raise MetadataFault("snapshot has data after its footer")
        control_values.extend(batch.control_values)
        records.extend(batch.records)
        if not control_values or not isinstance(control_values[0], SnapshotHeader):
            raise MetadataFault("snapshot does not start with a header")
    if not control_values or not isinstance(control_values[-1], SnapshotFooter):
        raise MetadataFault("snapshot has no footer: it is incomplete")
    return _snapshot(control_values, tuple(records))


def last_timestamp_of(beginning: bytes) -> int:
    """The timestamp of the last record, from the snapshot's header, which is the first batch; raises
    `MetadataFault`."""
    try:
        for _, _, view in split(beginning, partial_tail=True):
            header = next(iter(read_batch(view).control_values), None)
            if isinstance(header, SnapshotHeader):
                return header.last_contained_log_timestamp
            break
    except ApiError as error:
        raise MetadataFault(f"cannot decode snapshot header: {error}") from error
    raise MetadataFault("snapshot does not start with a header")


def bootstrap_records(metadata_version: int = LATEST_METADATA_VERSION) -> list[MetadataRecord]:
    """The default bootstrap records: only the metadata version; every other feature is at level 0."""
    return [FeatureLevelRecord(name=METADATA_VERSION, feature_level=metadata_version)]


def formatted_records(metadata_version: int = LATEST_METADATA_VERSION) -> list[MetadataRecord]:
    """The bootstrap records of a newly formatted directory: also the features Kafka enables at that version, if
    implemented."""
    records = bootstrap_records(metadata_version)
    records += [
        FeatureLevelRecord(name=name, feature_level=level)
        for name, level, begins_at in FROM_THE_START
        if metadata_version >= begins_at
    ]
    return records


def bootstrap_checkpoint(records: Sequence[MetadataRecord], *, now_ms: int) -> bytes:
    """The content of ``bootstrap.checkpoint``."""
    return b"".join(snapshot_batches(records, epoch=0, last_contained_log_timestamp=0, now_ms=now_ms))


def _snapshot(control_values: list[ControlValue], records: tuple[MetadataRecord, ...]) -> Snapshot:
    header, *middle, _ = control_values
    assert isinstance(header, SnapshotHeader)
    kraft_version, voters = 0, None
    for value in middle:
        match value:
            case KRaftVersion():
                kraft_version = value.kraft_version
            case Voters():
                voters = value
            case _:
                raise MetadataFault(f"unexpected control record in snapshot: {value!r}")
    return Snapshot(
        last_contained_log_timestamp=header.last_contained_log_timestamp,
        records=records,
        kraft_version=kraft_version,
        voters=voters,
    )
