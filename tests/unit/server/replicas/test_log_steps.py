"""Retention, truncation, new logs and failed writes wait for the disk on threads; the house fails on any other sync."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import KafkaStorageError
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.checkpoints import RECOVERY_POINTS, read_offsets
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, delete, partition_of, produce, run_scenario


def logs_of(harness: BrokerHarness) -> Any:
    assert harness.node is not None
    return harness.node.broker.logs


def recovery_point(harness: BrokerHarness) -> int:
    files = harness.machine.disk.mount()
    try:
        return read_offsets(files, "/data", RECOVERY_POINTS).get(partition_of(harness).name, 0)
    finally:
        harness.machine.disk.unmount(files)


def test_retention_of_what_was_never_flushed_flushes_it_off_the_loop() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="200", retention_ms="1000")
        for _ in range(5):
            await produce(client, b"x" * 50)
        log = partition_of(harness).log
        assert log.recovery_point == 0
        await asyncio.sleep(40)
        assert (log.log_start_offset, log.base_offsets) == (5, [5])
        # The roll that makes room for the last one is durable, too, without waiting for an append.
        assert log.recovery_point == recovery_point(harness) == 5
        assert not log.is_flush_due(environment.clock.wall_ms())
        assert not log.detached
        assert await produce(client, b"y") == 5

    run_scenario(scenario, log_retention_check_interval_ms="30000")


def test_files_of_detached_segments_go_after_the_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="200", retention_ms="1000", file_delete_delay_ms="0")
        for _ in range(5):
            await produce(client, b"x" * 50)
        await asyncio.sleep(31)
        trace = [event for event in harness.world.trace.recent() if "n1" in event]
        renamed = next(at for at, event in enumerate(trace) if "00000000000000000000.log.deleted" in event)
        checkpointed = [
            at for at, event in enumerate(trace[:renamed]) if "rename" in event and RECOVERY_POINTS in event
        ]
        assert checkpointed

    run_scenario(scenario, log_retention_check_interval_ms="30000", log_flush_offset_checkpoint_interval_ms="1000000")


@pytest.mark.parametrize("starts_over", [False, True])
def test_truncation_lowers_the_checkpoint_cuts_and_syncs(starts_over: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="200")
        for _ in range(5):
            await produce(client, b"x" * 50)
        partition = partition_of(harness)
        await asyncio.sleep(70)
        assert recovery_point(harness) == 5
        task = asyncio.ensure_future(logs_of(harness).truncate(partition, 3, starts_over=starts_over))
        while not partition.log.must_settle:
            await asyncio.sleep(0.0002)
        assert recovery_point(harness) <= (0 if starts_over else 3)
        with pytest.raises(KafkaStorageError, match="not synced yet"):
            partition.log.roll(0) if partition.log.active.size else partition.log._check_settled(0)
        await task
        assert not partition.log.must_settle
        assert (partition.log.end_offset, partition.log.log_start_offset) == (3, 3 if starts_over else 0)

    run_scenario(scenario)


@pytest.mark.parametrize("starts_over", [False, True])
def test_a_truncation_that_is_not_wanted_when_the_checkpoint_is_lowered_leaves_the_log_alone(starts_over: bool) -> None:
    """The replica may have been elected while it waited for the disk: what it has counts now."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(5):
            await produce(client, b"x")
        await asyncio.sleep(70)
        partition = partition_of(harness)
        await logs_of(harness).truncate(partition, 3, starts_over=starts_over, is_wanted=lambda: False)
        assert recovery_point(harness) <= 3
        assert (partition.log.log_start_offset, partition.log.end_offset, partition.high_watermark) == (0, 5, 5)
        assert await produce(client, b"y") == 5

    run_scenario(scenario)


def test_a_truncation_that_cannot_be_synced_takes_the_directory_offline() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        partition = partition_of(harness)
        harness.machine.disk.fail_next(DiskCall.SYNC, path_part="t-0")
        with pytest.raises(KafkaStorageError):
            await logs_of(harness).truncate(partition, 0)
        assert partition.log.is_offline

    run_scenario(scenario, log_dirs="/data,/other")


def test_a_topic_made_again_does_not_inherit_the_checkpoint_of_the_old_one() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(5):
            await produce(client, b"x")
        await asyncio.sleep(70)
        assert recovery_point(harness) == 5
        await delete(client)
        await create(client)
        assert recovery_point(harness) == 0

    run_scenario(scenario)


def test_after_a_failed_write_the_log_is_synced_without_being_asked() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        log = partition_of(harness).log
        harness.machine.disk.fail_next(DiskCall.WRITE, path_part=".log")
        with pytest.raises(AssertionError):
            await produce(client, b"y")
        assert log.must_settle
        await asyncio.sleep(0.1)
        assert not log.must_settle
        assert await produce(client, b"z") == 1

    run_scenario(scenario)


def test_dirty_logs_are_synced_side_by_side_when_the_node_stops() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=60)
        for index in range(60):
            await produce(client, b"x", index=index)
        assert harness.node is not None
        harness.machine.disk.faults.sync_cost_s = 0.1
        before = environment.clock.monotonic()
        await harness.node.stop()
        # Some 8 syncs each: 48 s one after another.
        assert environment.clock.monotonic() - before < 10
        harness.machine.crash()
        await harness.start()
        assert harness.node.directories[0].had_clean_shutdown
        for index in range(60):
            assert partition_of(harness, index=index).log.end_offset == 1

    run_scenario(scenario)
