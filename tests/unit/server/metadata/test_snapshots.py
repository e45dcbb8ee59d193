from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.metadata.records import BeginTransactionRecord, ConfigRecord, EndTransactionRecord
from millbeck.metadata.snapshot import parse_name, read_snapshot
from millbeck.server.metadata import snapshots
from millbeck.server.metadata.quorum_driver import MetadataLogFailed, QuorumDriver
from millbeck.server.metadata.retention import MetadataRetention
from millbeck.simulation.environment.disk_faults import DiskCall


def _option(name: str) -> ConfigRecord:
    return ConfigRecord(resource_type=4, resource_name="", name=name, value="v")


async def _set(driver: QuorumDriver, name: str) -> None:
    await driver.submit(lambda image: Result(response=None, records=[_option(name)]))


def _snapshots(node: Any) -> list[str]:
    return [name for name in node.names() if parse_name(name) is not None]


def test_a_snapshot_is_made_by_size_and_the_log_begins_after_it(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_bytes=2000)
        for index in range(100):
            await _set(driver, f"n{index}")
        await metadata_node.wait_for_tasks()
        assert driver.snapshots.newest_id is not None
        assert driver.log.log_start_offset == driver.snapshots.newest_id.end_offset
        assert _snapshots(metadata_node) == [driver.snapshots.newest_id.file_name]
        before = list(driver.image.records())
        metadata_node.kill()
        again = await metadata_node.started()
        assert list(again.image.records()) == before
        assert again.log.log_start_offset > 0

    asyncio.run(scenario())


def test_the_old_segment_goes_when_nothing_came_after(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        await _set(driver, "a")
        snapshot_id = await driver.snapshots.write(driver.image)
        assert snapshot_id == (5, 1)
        logs = [name for name in metadata_node.names() if name.endswith(".log")]
        assert logs == ["00000000000000000005.log"]
        await _set(driver, "b")
        metadata_node.kill()
        metadata_node.disk.power_loss(survival=0.0)
        again = await metadata_node.started()
        assert sorted(again.image.configs.of_all_brokers()) == ["a", "b"]
        assert again.epoch == 2

    asyncio.run(scenario())


def test_an_image_older_than_a_snapshot_that_was_fetched_is_not_written(metadata_node: Any) -> None:
    """Who voted at the older image's time is forgotten by then, and nobody may be asked for it."""

    async def scenario() -> None:
        driver = await metadata_node.started()
        await _set(driver, "a")
        old = driver.image
        await _set(driver, "b")
        newest = await driver.snapshots.write(driver.image)
        driver.machine.history.restart(newest.end_offset, driver.voters, 1)
        assert old.offset + 1 < newest.end_offset
        assert await driver.snapshots.write(old) == newest
        assert await driver.snapshots.write(driver.image) == newest
        assert _snapshots(metadata_node) == [newest.file_name]

    asyncio.run(scenario())


def test_a_snapshot_is_made_after_a_time(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_ms=20)
        await _set(driver, "a")
        assert _snapshots(metadata_node) == []
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 10
        while driver.snapshots.newest_id is None and loop.time() < deadline:
            await asyncio.sleep(0.005)
        await metadata_node.wait_for_tasks()
        assert _snapshots(metadata_node) == ["00000000000000000005-0000000001.checkpoint"]
        assert driver.snapshots.bytes_since == 0

    asyncio.run(scenario())


def _ends(node: Any) -> list[int]:
    return [found.end_offset for name in _snapshots(node) if (found := parse_name(name)) is not None]


def test_older_snapshots_and_their_part_of_the_log_stay_as_long_as_the_retention_says(metadata_node: Any) -> None:
    async def scenario() -> None:
        keep = MetadataRetention(size_bytes_max=1 << 20)
        driver = await metadata_node.started(retention=keep)
        for name in "abc":
            await _set(driver, name)
            await driver.snapshots.write(driver.image)
        assert (_ends(metadata_node), driver.log.log_start_offset) == ([5, 6, 7], 0)
        before = list(driver.image.records())
        metadata_node.kill()
        again = await metadata_node.started(retention=keep)
        assert list(again.image.records()) == before
        assert (_ends(metadata_node), again.log.log_start_offset, again.snapshots.start_epoch) == ([5, 6, 7], 0, 0)
        assert again.snapshots.newest_id == (7, 1)
        metadata_node.kill()
        small = await metadata_node.started()
        await _set(small, "d")
        newest = await small.snapshots.write(small.image)
        assert _ends(metadata_node) == [newest.end_offset] == [small.log.log_start_offset]
        assert small.snapshots.start_epoch == newest.epoch == 3

    asyncio.run(scenario())


def test_a_snapshot_that_becomes_too_old_goes_though_nothing_happens(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(retention=MetadataRetention(size_bytes_max=-1, age_ms_max=1))
        for name in "ab":
            await _set(driver, name)
            await driver.snapshots.write(driver.image)
        metadata_node.clock.now_ms += 1000
        driver.snapshots._begin_cleaning()
        await metadata_node.wait_for_tasks()
        assert _ends(metadata_node) == [6]

    asyncio.run(scenario())


def test_what_is_too_old_is_looked_at_again_when_a_snapshot_was_being_written(
    metadata_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one may come to nothing, and the next may be long in coming."""
    monkeypatch.setattr(snapshots, "CLEANING_SECONDS_MIN", 0.0)

    async def scenario() -> None:
        driver = await metadata_node.started(retention=MetadataRetention(size_bytes_max=-1, age_ms_max=100_000))
        for name in "ab":
            await _set(driver, name)
            await driver.snapshots.write(driver.image)
        metadata_node.clock.now_ms += 200_000
        driver.snapshots._is_writing = True
        driver.snapshots._begin_cleaning()
        await asyncio.sleep(0)
        assert _ends(metadata_node) == [5, 6]
        driver.snapshots._is_writing = False
        async with asyncio.timeout(5):
            while _ends(metadata_node) != [6]:
                await asyncio.sleep(0)

    asyncio.run(scenario())


def test_the_file_holds_the_image_and_its_time(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started()
        await _set(driver, "a")
        snapshot_id = await driver.snapshots.write(driver.image)
        snapshot = read_snapshot(metadata_node.content(snapshot_id.file_name))
        assert list(snapshot.records) == list(driver.image.records())
        assert snapshot.last_contained_log_timestamp == driver.image.timestamp_ms

    asyncio.run(scenario())


def test_no_snapshot_is_made_inside_a_transaction(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_bytes=300)
        begin: list[Any] = [BeginTransactionRecord(), *(_option(f"n{index}") for index in range(50))]
        await driver.submit(lambda image: Result(response=None, records=begin))
        await metadata_node.wait_for_tasks()
        assert _snapshots(metadata_node) == []
        await driver.submit(lambda image: Result(response=None, records=[EndTransactionRecord()]))
        await metadata_node.wait_for_tasks()
        assert len(_snapshots(metadata_node)) == 1

    asyncio.run(scenario())


def test_a_snapshot_that_can_not_be_written_is_tried_again(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_bytes=300)
        metadata_node.disk.fail_next(DiskCall.WRITE, path_part=".checkpoint.part")
        await _set(driver, "a" * 300)
        await metadata_node.wait_for_tasks()
        assert _snapshots(metadata_node) == []
        assert driver.failure is None
        await _set(driver, "b")
        await metadata_node.wait_for_tasks()
        assert len(_snapshots(metadata_node)) == 1

    asyncio.run(scenario())


def test_a_sync_of_the_log_that_fails_on_the_way_is_fatal(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_bytes=300)
        metadata_node.disk.fail_next(DiskCall.SYNC, path_part=".snapshot")
        await _set(driver, "a" * 300)
        await metadata_node.wait_for_tasks()
        assert metadata_node.fatal == [driver.failure]
        with pytest.raises(MetadataLogFailed):
            await _set(driver, "b")

    asyncio.run(scenario())


def test_after_stopping_no_snapshot_is_begun(metadata_node: Any) -> None:
    async def scenario() -> None:
        driver = await metadata_node.started(after_ms=200)
        await _set(driver, "a")
        await driver.stop()
        await asyncio.sleep(0.25)
        assert _snapshots(metadata_node) == []

    asyncio.run(scenario())
