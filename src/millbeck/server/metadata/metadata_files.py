"""The files of the metadata log besides its segments: snapshots, ``quorum-state`` and ``bootstrap.checkpoint``.

Everything here is blocking I/O on small or rarely written files; the driver calls it at start or on a thread. A
snapshot is written under a temporary name, synced and renamed, so a file with a snapshot's name is complete unless the
disk damaged it.
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
from millbeck.raft.quorum_state import QuorumState, QuorumStateError, parse_quorum_state
from millbeck.records.control import Voters
from millbeck.server.metadata.retention import RetainedSnapshot
from millbeck.storage.atomic_file import parent_of, read_file, replace_file

SNAPSHOT_SIZE_BYTES_MAX = 1 << 31
QUORUM_STATE_SIZE_BYTES_MAX = 1 << 20
HEADER_SIZE_BYTES_MAX = 1 << 16
"""An upper bound for the first batch of a snapshot, which holds its header."""
INITIAL_ID = SnapshotId(0, 0)
"""The initial snapshot of a cluster whose voters are in the log (kraft.version 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    id: SnapshotId
    content: Snapshot
    size_bytes: int

    @property
    def kept(self) -> RetainedSnapshot:
        return RetainedSnapshot(self.id, self.size_bytes, self.content.last_contained_log_timestamp)


def newest_snapshot(files: Files, directory: str) -> SnapshotFile | None:
    """The newest snapshot in the metadata log's directory; unfinished snapshot files are removed.

    Raises `MetadataFault` when it is damaged: falling back to an older one would silently lose committed records.
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
    return SnapshotFile(id=newest, content=read_snapshot(content), size_bytes=len(content))


def older_snapshots(files: Files, directory: str, newest: SnapshotId) -> list[RetainedSnapshot]:
    """The snapshots before the newest, oldest first; those with an unreadable header are skipped."""
    ids = [snapshot_id for name in files.names(directory) if (snapshot_id := parse_name(name)) is not None]
    found = []
    for snapshot_id in sorted(each for each in ids if each < newest):
        file = files.open(f"{directory}/{snapshot_id.file_name}", OpenMode.READ)
        try:
            size_bytes, beginning = file.size(), file.read(HEADER_SIZE_BYTES_MAX, 0)
        finally:
            file.close()
        try:
            found.append(RetainedSnapshot(snapshot_id, size_bytes, last_timestamp_of(beginning)))
        except MetadataFault:
            continue
    return found


def write_snapshot(files: Files, directory: str, snapshot_id: SnapshotId, batches: Sequence[bytes]) -> None:
    """Write a complete snapshot; durable when this returns."""
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
    """Write fetched bytes into an incomplete snapshot; position 0 starts it over."""
    file = files.open(f"{directory}/{snapshot_id.part_name}", OpenMode.WRITE)
    try:
        if position == 0:
            file.truncate(0)
        file.write([data], position)
    finally:
        file.close()


def finish_snapshot(files: Files, directory: str, snapshot_id: SnapshotId) -> SnapshotFile:
    """Verify a completely fetched snapshot, sync and rename it. Raises `MetadataFault`, OSError."""
    part = f"{directory}/{snapshot_id.part_name}"
    content = read_file(files, part, SNAPSHOT_SIZE_BYTES_MAX)
    try:
        found = SnapshotFile(
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
    """The snapshot's size and its bytes from ``position`` on; None when the snapshot was deleted."""
    try:
        file = files.open(f"{directory}/{snapshot_id.file_name}", OpenMode.READ)
    except FileNotFoundError:
        return None
    try:
        return file.size(), file.read(size_max, position)
    finally:
        file.close()


def write_initial_voters(files: Files, directory: str, voters: Voters, *, now_ms: int, kraft_version: int = 1) -> None:
    """Write the initial snapshot with the voter set; part of formatting, on each voter of a new cluster.

    ``directory`` is the metadata log's directory, which is created if it does not exist.
    """
    files.make_directory(directory)
    batches = snapshot_batches(
        [], epoch=0, last_contained_log_timestamp=now_ms, now_ms=now_ms, kraft_version=kraft_version, voters=voters
    )
    write_snapshot(files, directory, INITIAL_ID, list(batches))
    files.sync_directory(parent_of(directory))


def remove_snapshots_before(files: Files, directory: str, snapshot_id: SnapshotId) -> None:
    """Remove the snapshots older than this one."""
    for name in files.names(directory):
        found = parse_name(name)
        if found is not None and found < snapshot_id:
            files.unlink(f"{directory}/{name}")


def read_quorum_state(files: Files, directory: str) -> QuorumState | None:
    """The persisted epoch, leader and vote; raises `QuorumStateError` when the file is damaged."""
    try:
        content = read_file(files, f"{directory}/{QUORUM_STATE_NAME}", QUORUM_STATE_SIZE_BYTES_MAX)
        return None if content is None else parse_quorum_state(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise QuorumStateError("quorum-state is not UTF-8 text") from error


def write_quorum_state(files: Files, directory: str, state: QuorumState) -> None:
    """Replace ``quorum-state``; durable when this returns."""
    replace_file(files, f"{directory}/{QUORUM_STATE_NAME}", state.to_text().encode("utf-8"))


def write_bootstrap(
    files: Files,
    log_directory: str,
    *,
    now_ms: int,
    metadata_version: int = LATEST_METADATA_VERSION,
    features: Mapping[str, int] | None = None,
    others: Sequence[MetadataRecord] = (),
) -> None:
    """Write ``bootstrap.checkpoint``, the first records of the cluster's metadata log; part of formatting.

    ``log_directory`` is the directory that holds the metadata log's directory. ``features`` overrides the default
    feature levels of that metadata version, ``others`` are records besides the levels.
    """
    levels = {
        record.name: record.feature_level
        for record in formatted_records(metadata_version)
        if isinstance(record, FeatureLevelRecord)
    } | dict(features or {})
    records: list[MetadataRecord] = [
        FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items() if level
    ]
    records.extend(others)
    content = bootstrap_checkpoint(records, now_ms=now_ms)
    replace_file(files, f"{log_directory}/{BOOTSTRAP_NAME}", content)


def read_bootstrap(files: Files, log_directory: str) -> list[MetadataRecord]:
    """The first records of a new cluster; the defaults when formatting left no file. Raises `MetadataFault`."""
    content = read_file(files, f"{log_directory}/{BOOTSTRAP_NAME}", SNAPSHOT_SIZE_BYTES_MAX)
    return bootstrap_records() if content is None else list(read_snapshot(content).records)
