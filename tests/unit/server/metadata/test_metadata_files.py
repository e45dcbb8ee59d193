from __future__ import annotations

import random

import pytest

from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.records import FeatureLevelRecord
from millbeck.metadata.snapshot import SnapshotId, bootstrap_records, read_snapshot, snapshot_batches
from millbeck.raft.quorum_state import QuorumState, QuorumStateError
from millbeck.server.metadata import metadata_files
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.environment.files import SimFiles
from millbeck.storage.atomic_file import read_file, write_file

LOG = "/data/log"
RECORDS = [FeatureLevelRecord(name="metadata.version", feature_level=30)]
BATCHES = list(snapshot_batches(RECORDS, epoch=2, last_contained_log_timestamp=3, now_ms=4))


@pytest.fixture
def files() -> SimFiles:
    files = SimDisk(random.Random(1)).mount()
    files.make_directory(LOG)
    return files


def test_the_newest_snapshot_is_taken_and_leftovers_go(files: SimFiles) -> None:
    assert metadata_files.newest_snapshot(files, LOG) is None
    for end_offset in (5, 40, 12):
        metadata_files.write_snapshot(files, LOG, SnapshotId(end_offset, 2), BATCHES)
    write_file(files, f"{LOG}/{SnapshotId(99, 2).part_name}", b"half", sync=False)
    write_file(files, f"{LOG}/{SnapshotId(3, 2).file_name}.deleted", b"old", sync=False)
    found = metadata_files.newest_snapshot(files, LOG)
    assert found is not None
    assert found.id == SnapshotId(40, 2)
    assert list(found.content.records) == RECORDS
    assert files.names(LOG) == sorted(SnapshotId(offset, 2).file_name for offset in (5, 12, 40))
    metadata_files.remove_snapshots_before(files, LOG, SnapshotId(40, 2))
    assert files.names(LOG) == [SnapshotId(40, 2).file_name]


def test_a_damaged_snapshot_is_not_passed_over(files: SimFiles) -> None:
    metadata_files.write_snapshot(files, LOG, SnapshotId(5, 2), BATCHES)
    metadata_files.write_snapshot(files, LOG, SnapshotId(9, 2), BATCHES[:-1])
    with pytest.raises(MetadataFault, match="no footer"):
        metadata_files.newest_snapshot(files, LOG)


def test_a_snapshot_survives_a_power_loss_once_written() -> None:
    disk = SimDisk(random.Random(2))
    files = disk.mount()
    files.make_directory(LOG)
    files.sync_directory("/data")
    files.sync_directory("/")
    metadata_files.write_snapshot(files, LOG, SnapshotId(5, 2), BATCHES)
    disk.power_loss(survival=0.0)
    found = metadata_files.newest_snapshot(disk.mount(), LOG)
    assert found is not None
    assert list(found.content.records) == RECORDS


def test_the_quorum_state_is_written_and_read(files: SimFiles) -> None:
    assert metadata_files.read_quorum_state(files, LOG) is None
    state = QuorumState(leader_epoch=3, leader_id=1, current_voters=(1,))
    metadata_files.write_quorum_state(files, LOG, state)
    assert metadata_files.read_quorum_state(files, LOG) == state
    assert files.names(LOG) == ["quorum-state"]


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe"], ids=["empty", "no fields", "no text"])
def test_a_damaged_quorum_state_is_a_fault(files: SimFiles, content: bytes) -> None:
    write_file(files, f"{LOG}/quorum-state", content, sync=False)
    with pytest.raises(QuorumStateError):
        metadata_files.read_quorum_state(files, LOG)


def test_formatting_leaves_the_bootstrap_records(files: SimFiles) -> None:
    assert metadata_files.read_bootstrap(files, "/data") == bootstrap_records()
    metadata_files.write_bootstrap(files, "/data", now_ms=1, metadata_version=21)
    assert metadata_files.read_bootstrap(files, "/data") == bootstrap_records(21)
    content = read_file(files, "/data/bootstrap.checkpoint", 10_000)
    assert content is not None
    assert read_snapshot(content).last_contained_log_timestamp == 0
