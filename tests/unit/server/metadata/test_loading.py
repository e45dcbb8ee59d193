from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.metadata.batches import data_batch
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.records import ConfigRecord
from millbeck.metadata.snapshot import SnapshotId, snapshot_batches
from millbeck.records.control import KRaftVersion, LeaderChange, Voter, Voters, control_batch
from millbeck.server.metadata import metadata_files
from millbeck.server.metadata.loading import (
    METADATA_PARTITION,
    METADATA_TOPIC_ID,
    batches_from,
    load_state,
    voter_changes_of,
)
from millbeck.storage.producer_state import AppendOrigin


def _set(value: str) -> Any:
    record = ConfigRecord(resource_type=4, resource_name="", name="x", value=value)
    return lambda image: Result(response=None, records=[record])


def test_the_log_is_where_and_what_kafka_has_it(metadata_node: Any) -> None:
    driver = metadata_node.make()
    assert driver.log.topic_partition == METADATA_PARTITION
    assert driver.log.directory.endswith("/__cluster_metadata-0")
    driver.log.flush()
    assert driver.log.topic_id is METADATA_TOPIC_ID
    assert metadata_node.content("partition.metadata") == b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_nothing_is_removed_for_its_age(metadata_node: Any) -> None:
    driver = metadata_node.make()
    assert (driver.log.config.retention_ms, driver.log.config.retention_bytes) == (-1, -1)


def test_a_new_directory_holds_nothing(metadata_node: Any) -> None:
    log = metadata_node.make().log
    opened = load_state(metadata_node.files, log)
    assert (opened.snapshot, opened.voter_changes) == (None, ())
    assert list(batches_from(log, 0, 0)) == []


def _snapshot(node: Any, log: Any, snapshot_id: SnapshotId, *, value: str = "1") -> None:
    records = [ConfigRecord(resource_type=4, resource_name="", name="x", value=value)]
    batches = list(snapshot_batches(records, epoch=snapshot_id.epoch, last_contained_log_timestamp=8, now_ms=9))
    metadata_files.write_snapshot(node.files, log.directory, snapshot_id, batches)


def test_what_is_read_begins_where_the_newest_snapshot_ends_and_the_log_where_it_did(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for value in "123":
            await driver.submit(_set(value))
        _snapshot(metadata_node, driver.log, SnapshotId(5, 1))
        opened = load_state(metadata_node.files, driver.log)
        assert opened.snapshot is not None
        assert (opened.snapshot.id, opened.older, opened.start_epoch) == ((5, 1), (), 0)
        assert (driver.log.log_start_offset, driver.log.end_offset) == (0, 7)
        assert [batch.base_offset for batch in batches_from(driver.log, 5, 7)] == [5, 6]

    asyncio.run(scenario())


def test_the_log_begins_with_the_oldest_snapshot_that_it_continues(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for value in "123456":
            await driver.submit(_set(value))
        # Of another history, before the log's start, two that fit, and the newest.
        for snapshot_id in (SnapshotId(7, 9), SnapshotId(4, 1), SnapshotId(6, 1), SnapshotId(8, 1), SnapshotId(9, 1)):
            _snapshot(metadata_node, driver.log, snapshot_id)
        driver.log.delete_records(5)
        opened = load_state(metadata_node.files, driver.log)
        assert opened.snapshot is not None
        assert [each.id for each in opened.older] == [(6, 1), (8, 1)]
        assert {each.timestamp_ms for each in opened.older} == {8}
        assert opened.older[0].size_bytes == len(metadata_node.content(SnapshotId(6, 1).file_name))
        assert (opened.snapshot.id, opened.start_epoch, driver.log.log_start_offset) == ((9, 1), 1, 6)
        assert SnapshotId(4, 1).file_name not in metadata_node.names()

    asyncio.run(scenario())


def test_a_log_that_ends_before_its_snapshot_begins_anew_after_it(metadata_node: Any) -> None:
    log = metadata_node.make().log
    _snapshot(metadata_node, log, SnapshotId(50, 3))
    opened = load_state(metadata_node.files, log)
    assert (log.log_start_offset, log.end_offset) == (50, 50)
    assert opened.snapshot is not None


def test_a_log_that_came_before_the_snapshot_that_was_fetched_does_not_follow_it(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        for value in "123":
            await driver.submit(_set(value))
        _snapshot(metadata_node, driver.log, SnapshotId(5, 4))
        load_state(metadata_node.files, driver.log)
        assert (driver.log.log_start_offset, driver.log.end_offset) == (5, 5)

    asyncio.run(scenario())


def test_a_gap_between_snapshot_and_log_is_a_fault(metadata_node: Any) -> None:
    log = metadata_node.make().log
    log.truncate_fully_and_start_at(10)
    with pytest.raises(MetadataFault, match="begins at offset 10"):
        load_state(metadata_node.files, log)


def test_a_long_log_is_read_in_pieces(metadata_node: Any) -> None:
    log = metadata_node.make().log
    for index in range(5):
        records = [ConfigRecord(resource_type=4, resource_name="", name=f"{index}", value="v" * (4 << 20))]
        batch = data_batch(records, base_offset=0, epoch=1, timestamp_ms=1)
        log.stage(batch, leader_epoch=1, now_ms=1, origin=AppendOrigin.QUORUM)
        log.write_staged()
    found = [record.name for batch in batches_from(log, 1, 4) for record in batch.records]  # type: ignore[union-attr]
    assert found == ["1", "2", "3"]


def test_voters_in_the_log_are_found_by_offset(metadata_node: Any) -> None:
    log = metadata_node.make().log
    voters = Voters(voters=(Voter(node_id=1, directory_id=b"d" * 16, endpoints=()),))
    values: list[Any] = [
        LeaderChange(leader_id=1, voters=(), granting_voters=()),
        KRaftVersion(kraft_version=1),
        voters,
    ]
    for offset in (0, 3):
        batch = control_batch(values, base_offset=offset, timestamp=1, partition_leader_epoch=1)
        log.stage(batch, leader_epoch=1, now_ms=1, origin=AppendOrigin.QUORUM)
        log.write_staged()
    expected = [(1, values[1]), (2, voters), (4, values[1]), (5, voters)]
    assert list(load_state(metadata_node.files, log).voter_changes) == expected
    data = data_batch([ConfigRecord(name="x")], base_offset=0, epoch=1, timestamp_ms=1)
    assert list(voter_changes_of(data)) == []
