"""A shard on its partition inside a whole node: loading, appending, failing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.coordinator.group.records import GroupRecord, offset_commit
from millbeck.coordinator.group.shard import GroupShard
from millbeck.coordinator.runtime.loader import Loader
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard_runner import ShardState
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.records import batch
from millbeck.records.compression import Codec
from millbeck.server.coordinators import shard_driver
from millbeck.server.coordinators.shard_driver import ShardDriver
from millbeck.server.loop import tasks
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator

Driver = ShardDriver[GroupShard, GroupRecord]


async def driver_of(harness: BrokerHarness, client: Client) -> Driver:
    await find_coordinator(client, "g")
    assert harness.node is not None
    return harness.node.broker.groups._drivers[0]


def record(index: int, metadata: str = "") -> GroupRecord:
    return offset_commit(
        group_id="g", topic="t", partition=index, offset=index, leader_epoch=-1, metadata=metadata, commit_timestamp=5
    )


async def write(driver: Driver, result: Result[GroupRecord, Any]) -> Any:
    """What the operation was answered: its response, or the error."""
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    reply: ResponseCallback[Any] = ResponseCallback(answer.set_result, answer.set_result)
    driver.host.write(lambda _: result, reply, now_ms=5)
    return await answer


async def reload(harness: BrokerHarness, driver: Driver) -> Driver:
    assert harness.node is not None
    groups = harness.node.broker.groups
    groups.partition_lost(0)
    groups.partition_led(driver.partition)
    again = groups._drivers[0]
    while again.host.state is ShardState.LOADING:
        await asyncio.sleep(0.001)
    return again


def test_an_empty_log_is_loaded_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        assert driver.host.state is ShardState.ACTIVE
        assert driver.load_seconds == 0

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_what_was_written_is_loaded_again(codec: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        for first in range(0, 500, 100):
            records = [record(index) for index in range(first, first + 100)]
            assert await write(driver, Result(records=records, response="done")) == "done"
        assert driver.partition.log.end_offset == 500
        found = driver.partition.log.read(0, size_bytes_max=1_000_000, upto_offset=500)
        assert found is not None
        data = found.file.read(found.size, found.position)
        found.release()
        assert {each.header.codec for each in batch.split(data)} == {Codec(codec)}
        again = await reload(harness, driver)
        assert again.host.shard._offsets.of_group("g").keys() == {("t", index) for index in range(500)}
        assert again.host.written_offset == again.host.committed_offset == 500

    BrokerHarness(offsets_topic_compression_codec=str(codec)).run(scenario)


def test_loading_reads_in_chunks_and_gives_the_loop_its_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TURN_SECONDS", 0.0)
    loaders: list[Loader] = []

    class Counted(Loader):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            loaders.append(self)

    monkeypatch.setattr(shard_driver, "Loader", Counted)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        for index in range(60):
            await write(driver, Result(records=[record(index)], response="done"))
        again = await reload(harness, driver)
        assert len(again.host.shard._offsets.of_group("g")) == 60
        assert len(loaders) > 10, "one for each chunk"

    BrokerHarness(offsets_load_buffer_size="500").run(scenario)


def test_a_partition_that_is_lost_while_it_loads_is_let_go() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        await write(driver, Result(records=[record(index) for index in range(1000)], response="done"))
        assert harness.node is not None
        groups = harness.node.broker.groups
        groups.partition_lost(0)
        groups.partition_led(driver.partition)
        loading = groups._drivers[0]
        groups.partition_lost(0)
        await asyncio.sleep(1)
        assert loading.host.state is ShardState.CLOSED

    BrokerHarness().run(scenario)


def test_records_that_cannot_be_read_leave_the_shard_unavailable() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        await write(driver, Result(records=[record(1)], response="done"))
        driver.append([(b"\x00\x02\x00\x09g", b"no group")], now_ms=5)
        await asyncio.sleep(0.1)
        again = await reload(harness, driver)
        assert again.host.state is ShardState.FAILED
        assert isinstance(await write(again, Result(response="x")), errors.CoordinatorNotAvailable)

    BrokerHarness().run(scenario)


def test_a_result_that_is_too_large_is_refused_and_changes_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        size_max = driver.partition.log.config.max_message_bytes
        records = [record(index, "m" * 30_000) for index in range(size_max // 30_000 + 1)]
        assert isinstance(await write(driver, Result(records=records, response="x")), errors.UnknownServerError)
        assert driver.partition.log.end_offset == 0
        assert driver.host.shard._offsets.of_group("g") == {}
        assert await write(driver, Result(records=records, response="cut", is_atomic=False)) == "cut"
        assert driver.partition.log.end_offset == len(records)

    BrokerHarness().run(scenario)


def test_a_write_the_disk_refuses_is_taken_back_with_everything_after_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        assert await write(driver, Result(records=[record(0)], response="done")) == "done"
        disk = harness.machine.disk
        disk.faults.capacity_bytes = disk.used_bytes + 10
        answers: list[ApiError | str] = await asyncio.gather(
            *(write(driver, Result(records=[record(index)], response="done")) for index in (1, 2, 3))
        )
        assert [type(answer) for answer in answers] == [errors.NotCoordinator] * 3
        assert list(driver.host.shard._offsets.of_group("g")) == [("t", 0)]
        disk.faults.capacity_bytes = disk.used_bytes + 10_000_000
        await asyncio.sleep(0.1)
        assert await write(driver, Result(records=[record(4)], response="done")) == "done"
        assert driver.host.written_offset == driver.partition.log.end_offset == 2

    BrokerHarness().run(scenario)


def test_a_shard_is_loaded_when_all_of_it_is_committed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        await write(driver, Result(records=[record(0)], response="done"))
        partition = driver.partition
        partition.high_watermark = 0
        assert harness.node is not None
        groups = harness.node.broker.groups
        groups.partition_lost(0)
        groups.partition_led(partition)
        again = groups._drivers[0]
        await asyncio.sleep(1)
        assert again.host.state is ShardState.LOADING
        partition.flushed()
        await asyncio.sleep(0.01)
        assert (again.host.state, again.host.written_offset, again.host.committed_offset) == (ShardState.ACTIVE, 1, 1)
        again.stop()
        assert again not in partition.watchers

    BrokerHarness().run(scenario)


def test_records_that_too_few_replicas_have_are_not_taken_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        driver = await driver_of(harness, client)
        assert await write(driver, Result(records=[record(0)], response="done")) == "done"
        staged: Any = type("Staged", (), {"first_offset": 0})()
        driver._completed(staged, errors.NotEnoughReplicasAfterAppend())
        assert (driver.host.state, driver.host.written_offset) == (ShardState.ACTIVE, 1)

    BrokerHarness().run(scenario)
