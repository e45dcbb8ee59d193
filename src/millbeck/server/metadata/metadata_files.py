"""The files of the metadata log beside its segments: snapshots, ``quorum-state`` and ``bootstrap.checkpoint``.

Everything here is blocking file work on small or rarely written files; the driver calls it at start or through a
thread. A snapshot is written under another name, synced and renamed, so a file with a snapshot's name is whole unless
the disk damaged it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from millbeck.kernel.environment import Files, OpenMode
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.metadata.records import FeatureLevelRecord, MetadataRecord
from millbeck.metadata.snapshot import (
    BOOTSTRAP_NAME,
    DELETED_SUFFIX,
    PART_SUFFIX,
    Snapshot,
    SnapshotId,
    bootstrap_checkpoint,
    bootstrap_records,
    formatted_records,
    last_timestamp_of,
    parse_name,
    read_snapshot,
    snapshot_batches,
)
from millbeck.raft.quorum_state import FILE_NAME as QUORUM_STATE_NAME
from millbeck.raft.quorum_state import QuorumState, QuorumStateFault, parse_quorum_state
from millbeck.records.control import Voters
from millbeck.server.drivers.metadata_retention import KeptSnapshot
from millbeck.storage.atomic_file import parent_of, read_file, replace_file

SNAPSHOT_SIZE_BYTES_MAX = 1 << 31
QUORUM_STATE_SIZE_BYTES_MAX = 1 << 20
HEADER_SIZE_BYTES_MAX = 1 << 16
"""More than the first batch of a snapshot, which holds its header, can have."""
INITIAL_ID = SnapshotId(0, 0)
"""The snapshot that a cluster with its voters in the log begins with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSnapshot:
    id: SnapshotId
    content: Snapshot
    size_bytes: int

    @property
    def kept(self) -> KeptSnapshot:
        return KeptSnapshot(self.id, self.size_bytes, self.content.last_contained_log_timestamp)


def newest_snapshot(files: Files, directory: str) -> FoundSnapshot | None:
    """The newest snapshot in the metadata log's directory; leftovers of unfinished ones are removed.

    Raises `MetadataFault` when it is damaged: an older one would silently take back what was committed since.
    """
    names = files.names(directory)
    for name in names:
        if name.endswith((PART_SUFFIX, DELETED_SUFFIX)):
            files.unlink(f"{directory}/{name}")
    ids = [snapshot_id for name in names if (snapshot_id := parse_name(name)) is not None]
    if not ids:
        return None
    newest = max(ids)
    content = read_file(files, f"{directory}/{newest.file_name}", SNAPSHOT_SIZE_BYTES_MAX)
    assert content is not None
    return FoundSnapshot(id=newest, content=read_snapshot(content), size_bytes=len(content))


def older_snapshots(files: Files, directory: str, newest: SnapshotId) -> list[KeptSnapshot]:
    """Those before the newest, oldest first, as far as their beginnings can be read."""
    ids = [snapshot_id for name in files.names(directory) if (snapshot_id := parse_name(name)) is not None]
    found = []
    for snapshot_id in sorted(each for each in ids if each < newest):
        file = files.open(f"{directory}/{snapshot_id.file_name}", OpenMode.READ)
        try:
            size_bytes, beginning = file.size(), file.read(HEADER_SIZE_BYTES_MAX, 0)
        finally:
            file.close()
        try:
            found.append(KeptSnapshot(snapshot_id, size_bytes, last_timestamp_of(beginning)))
        except MetadataFault:
            continue
    return found


def write_snapshot(files: Files, directory: str, snapshot_id: SnapshotId, batches: Sequence[bytes]) -> None:
    """Durably add a snapshot."""
    part = f"{directory}/{snapshot_id.part_name}"
    file = files.open(part, OpenMode.WRITE)
    try:
        file.truncate(0)
        file.write(batches, 0)
        file.sync()
    finally:
        file.close()
    files.rename(part, f"{directory}/{snapshot_id.file_name}")
    files.sync_directory(directory)


def write_snapshot_part(files: Files, directory: str, snapshot_id: SnapshotId, position: int, data: bytes) -> None:
    """Put fetched bytes into a snapshot that is not whole yet; position 0 begins it anew."""
    file = files.open(f"{directory}/{snapshot_id.part_name}", OpenMode.WRITE)
    try:
        if position == 0:
            file.truncate(0)
        file.write([data], position)
    finally:
        file.close()


def finish_snapshot(files: Files, directory: str, snapshot_id: SnapshotId) -> FoundSnapshot:
    """All parts are there: check the whole, and make it a snapshot for good. Raises `MetadataFault`, OSError."""
    part = f"{directory}/{snapshot_id.part_name}"
    content = read_file(files, part, SNAPSHOT_SIZE_BYTES_MAX)
    try:
        found = FoundSnapshot(
            id=snapshot_id, content=read_snapshot(content or b""), size_bytes=0 if content is None else len(content)
        )
    except MetadataFault:
        files.unlink(part)
        raise
    file = files.open(part, OpenMode.WRITE)
    try:
        file.sync()
    finally:
        file.close()
    files.rename(part, f"{directory}/{snapshot_id.file_name}")
    files.sync_directory(directory)
    return found


def read_snapshot_part(
    files: Files, directory: str, snapshot_id: SnapshotId, position: int, size_max: int
) -> tuple[int, bytes] | None:
    """The snapshot's size and its bytes from ``position`` on; None when it is not there any more."""
    try:
        file = files.open(f"{directory}/{snapshot_id.file_name}", OpenMode.READ)
    except FileNotFoundError:
        return None
    try:
        return file.size(), file.read(size_max, position)
    finally:
        file.close()


def write_initial_voters(files: Files, directory: str, voters: Voters, *, now_ms: int, kraft_version: int = 1) -> None:
    """Part of formatting, on each of a new cluster's voters: the snapshot that the log begins with names them all.

    ``directory`` is the metadata log's own, which is made when it is not there.
    """
    files.make_directory(directory)
    batches = snapshot_batches(
        [], epoch=0, last_contained_log_timestamp=now_ms, now_ms=now_ms, kraft_version=kraft_version, voters=voters
    )
    write_snapshot(files, directory, INITIAL_ID, list(batches))
    files.sync_directory(parent_of(directory))


def remove_snapshots_before(files: Files, directory: str, snapshot_id: SnapshotId) -> None:
    """Remove the snapshots that a newer one makes superfluous."""
    for name in files.names(directory):
        found = parse_name(name)
        if found is not None and found < snapshot_id:
            files.unlink(f"{directory}/{name}")


def read_quorum_state(files: Files, directory: str) -> QuorumState | None:
    """What the node last wrote down about epochs and votes; raises `QuorumStateFault` when the file is damaged."""
    try:
        content = read_file(files, f"{directory}/{QUORUM_STATE_NAME}", QUORUM_STATE_SIZE_BYTES_MAX)
        return None if content is None else parse_quorum_state(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise QuorumStateFault("quorum-state is no text") from error


def write_quorum_state(files: Files, directory: str, state: QuorumState) -> None:
    """Durable when this returns."""
    replace_file(files, f"{directory}/{QUORUM_STATE_NAME}", state.to_text().encode("utf-8"))


def write_bootstrap(
    files: Files,
    log_directory: str,
    *,
    now_ms: int,
    metadata_version: int = LATEST_METADATA_VERSION,
    features: Mapping[str, int] | None = None,
) -> None:
    """Part of formatting: what the cluster's log will begin with, in the directory that holds the log's.

    ``features`` are levels other than those a new cluster has at that version.
    """
    levels = {
        record.name: record.feature_level
        for record in formatted_records(metadata_version)
        if isinstance(record, FeatureLevelRecord)
    } | dict(features or {})
    records = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items() if level]
    content = bootstrap_checkpoint(records, now_ms=now_ms)
    replace_file(files, f"{log_directory}/{BOOTSTRAP_NAME}", content)


def read_bootstrap(files: Files, log_directory: str) -> list[MetadataRecord]:
    """The first records of a new cluster; the defaults when formatting left no file. Raises `MetadataFault`."""
    content = read_file(files, f"{log_directory}/{BOOTSTRAP_NAME}", SNAPSHOT_SIZE_BYTES_MAX)
    return bootstrap_records() if content is None else list(read_snapshot(content).records)
