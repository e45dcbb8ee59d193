"""Replicas move between the directories of a node while they are used."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import KafkaStorageError, LogDirNotFound
from millbeck.kernel.ids import TopicPartition
from millbeck.metadata.records import ConfigRecord
from millbeck.server.replicas.directory_moves import DirectoryMoves
from millbeck.storage.log import Log
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, delete, fetch, partition_of, produce, results
from tests.unit.server.harness.three_brokers import ThreeBrokers

NAME = TopicPartition("t", 0)


def run_scenario(scenario: Any, **settings: Any) -> Any:
    return BrokerHarness(log_dirs="/one,/two", **settings).run(scenario)


def moves_of(harness: BrokerHarness) -> DirectoryMoves:
    assert harness.node is not None
    return harness.node.broker.replication.moves


def endpoint_for(harness: BrokerHarness) -> str:
    assert harness.node is not None
    directory = harness.node.broker.logs.directory_of(NAME)
    assert directory is not None
    return directory.path


def other(path: str) -> str:
    return "/two" if path == "/one" else "/one"


def names(harness: BrokerHarness, path: str) -> list[str]:
    return [name for name in harness.machine.disk.find_directory(path).entries if name.startswith("t-0")]


async def until(condition: Any, limit_s: float = 60) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_replica_moves_while_it_is_written_and_read() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, internal_segment_bytes="2000", file_delete_delay_ms="0")
        for number in range(40):
            await produce(client, b"%d" % number * 60)
        partition, before = partition_of(harness), endpoint_for(harness)
        old = partition.log
        moves_of(harness).begin(partition, other(before))
        number = 40
        while endpoint_for(harness) == before:
            await produce(client, b"%d" % number * 60)
            number += 1
        assert partition.log is not old
        assert (partition.log.end_offset, partition.high_watermark) == (number, number)
        assert len(partition.log.segments) > 2
        assert partition.log.epochs.entries() == old.epochs.entries()
        for offset in (0, 17, number - 1):
            assert b"%d" % offset * 60 in results(await client.ask(fetch((0, offset)), 11))[0].records
        assert await produce(client, b"after") == number
        await asyncio.sleep(1)
        assert (names(harness, other(before)), names(harness, before)) == (["t-0"], [])
        assert moves_of(harness).all == []
        assert harness.node is not None
        await harness.node.stop()
        harness.machine.crash()
        await harness.start()
        assert endpoint_for(harness) == other(before)
        assert partition_of(harness).log.end_offset == number + 1

    run_scenario(scenario)


def test_producers_are_known_in_the_new_place() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for sequence in range(3):
            await produce(client, b"x", producer_id=7, producer_epoch=0, base_sequence=sequence)
        before = endpoint_for(harness)
        moves_of(harness).begin(partition_of(harness), other(before))
        await until(lambda: endpoint_for(harness) != before)
        assert await produce(client, b"x", producer_id=7, producer_epoch=0, base_sequence=2) == 2
        assert await produce(client, b"x", producer_id=7, producer_epoch=0, base_sequence=3) == 3

    run_scenario(scenario)


def test_a_log_that_has_nothing_where_it_should_go_on_keeps_nobody_else_waiting() -> None:
    """As one that Kafka has compacted, of which nothing is left before the end."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        moves, partition, before = moves_of(harness), partition_of(harness), endpoint_for(harness)
        looks = 0

        async def nothing(source: Log, offset: int) -> bytes:
            nonlocal looks
            looks += 1
            assert looks < 1000, "the loop is kept busy with it"
            return b""

        moves._read = nothing  # type: ignore[method-assign]
        moves.begin(partition, other(before))
        await asyncio.sleep(0.5)
        assert looks > 1
        del moves._read
        await until(lambda: endpoint_for(harness) != before)

    run_scenario(scenario)


def test_what_cannot_be_moved_is_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        moves, partition = moves_of(harness), partition_of(harness)
        with pytest.raises(LogDirNotFound):
            moves.begin(partition, "/three")
        moves.begin(partition, endpoint_for(harness))
        assert moves.all == []
        assert harness.node is not None
        target = next(
            each for each in harness.node.broker.logs.directories if each.path == other(endpoint_for(harness))
        )
        target.offline_reason = "a test"
        with pytest.raises(KafkaStorageError):
            moves.begin(partition, target.path)
        target.offline_reason = None

    run_scenario(scenario)


def test_a_move_that_is_not_wanted_any_more_leaves_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x" * 1000)
        assert harness.node is not None
        rate = ConfigRecord(
            resource_type=4, resource_name="", name="replica.alter.log.dirs.io.max.bytes.per.second", value="1"
        )
        await harness.node.broker.quorum.submit(lambda image: Result(response=None, records=[rate]))
        moves, partition, before = moves_of(harness), partition_of(harness), endpoint_for(harness)
        moves._throttle.record(1000)
        moves.begin(partition, other(before))
        await asyncio.sleep(0.5)
        move = moves.of(partition)
        assert move is not None
        assert move.future is not None
        assert names(harness, other(before)) != []
        moves.begin(partition, other(before))
        assert moves.of(partition) is move, "it is on its way already"
        moves.begin(partition, before)
        await asyncio.sleep(1)
        assert (moves.all, names(harness, other(before)), endpoint_for(harness)) == ([], [], before)
        moves.begin(partition, other(before))
        await asyncio.sleep(0.5)
        await delete(client)
        await asyncio.sleep(1)
        assert (moves.all, names(harness, other(before))) == ([], [])

    run_scenario(scenario)


def test_a_move_starts_over_when_its_log_is_cut() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for number in range(5):
            await produce(client, b"%d" % number * 200)
        moves, partition, before = moves_of(harness), partition_of(harness), endpoint_for(harness)
        moves._throttle.record(10**9)
        assert harness.node is not None
        harness.node.broker.config.replication_throttle = type(harness.node.broker.config.replication_throttle).of(
            replica_alter_log_dirs_io_max_bytes_per_second="1"
        )
        moves.begin(partition, other(before))
        await asyncio.sleep(0.5)
        move = moves.of(partition)
        assert move is not None
        first = move.future
        moves.truncated(partition)
        await asyncio.sleep(0.5)
        assert move.future is not None
        assert move.future is not first
        await asyncio.sleep(30)
        assert endpoint_for(harness) != before

    run_scenario(scenario)


def test_a_copy_of_records_that_were_cut_is_not_taken_over() -> None:
    """A truncation tells of itself only once it is durable, and the copy may be complete by then."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for number in range(5):
            await produce(client, b"%d" % number * 200)
        moves, partition, before = moves_of(harness), partition_of(harness), endpoint_for(harness)
        moves.begin(partition, other(before))
        move = moves.of(partition)
        assert move is not None
        await until(lambda: move.future is not None and move.future.end_offset == 5)
        assert endpoint_for(harness) == before
        partition.log.cut_to(2)
        await until(lambda: moves.of(partition) is None)
        assert endpoint_for(harness) != before
        assert (partition.log.end_offset, names(harness, other(before))) == (2, ["t-0"])
        assert "t-0" not in names(harness, before)

    run_scenario(scenario)


def test_a_flush_that_a_move_overtakes_is_that_of_the_old_log() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a")
        assert harness.node is not None
        partition, old = partition_of(harness), partition_of(harness).log
        logs = harness.node.broker.logs
        target = next(each for each in logs.directories if each.path == other(endpoint_for(harness)))
        flushing = asyncio.ensure_future(logs.flush(partition))
        await asyncio.sleep(0)
        assert old.durability.is_running
        uuid = environment.randomness.uuid()
        new = target.create_future_log(NAME, old.topic_id, old.config, now_ms=0, start_offset=0, unique=uuid)
        partition.log = new
        await flushing
        assert (old.flushed_offset, new.flushed_offset, old.durability.is_running) == (1, 0, False)
        partition.log = old

    run_scenario(scenario)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_move_that_was_interrupted_begins_again_at_the_next_start(is_stopped: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x" * 1000)
        moves, partition, before = moves_of(harness), partition_of(harness), endpoint_for(harness)
        moves._throttle.record(10**9)
        assert harness.node is not None
        slow = type(harness.node.broker.config.replication_throttle).of(
            replica_alter_log_dirs_io_max_bytes_per_second="1"
        )
        harness.node.broker.config.replication_throttle = slow
        moves.begin(partition, other(before))
        await asyncio.sleep(2)
        assert (endpoint_for(harness), len(moves.all)) == (before, 1)
        if is_stopped:
            await harness.node.stop()
        harness.machine.crash()
        await harness.start()
        await until(lambda: endpoint_for(harness) == other(before))
        assert partition_of(harness).log.end_offset == 1
        await asyncio.sleep(1)
        assert names(harness, other(before)) == ["t-0"]

    run_scenario(scenario)


def test_a_move_of_a_topic_that_is_another_one_by_now_is_forgotten() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert harness.node is not None
        logs, before = harness.node.broker.logs, endpoint_for(harness)
        target = next(each for each in logs.directories if each.path != before)
        for name in (NAME, TopicPartition("gone", 0)):
            logs.interrupted_moves[name] = (target, b"another-topic-id")
        moves_of(harness).resume()
        assert (moves_of(harness).all, logs.interrupted_moves) == ([], {})
        logs.interrupted_moves[NAME] = (target, partition_of(harness).topic_id)
        target.offline_reason = "a test"
        moves_of(harness).resume()
        target.offline_reason = None
        assert moves_of(harness).all == []

    run_scenario(scenario)


def test_followers_move_as_well() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="3")
        for number in range(10):
            assert (await cluster.produce(environment, b"%d" % number))[0] == 0
        broker = cluster.nodes[2].broker
        name = cluster.partition(2).name
        before = broker.logs.directory_of(name)
        assert before is not None
        target = next(each for each in broker.logs.directories if each is not before)
        broker.replication.moves.begin(cluster.partition(2), target.path)
        for number in range(10, 20):
            assert await cluster.produce(environment, b"%d" % number) == (0, number)
        await cluster.until(lambda: broker.logs.directory_of(name) is target)
        assert await cluster.produce(environment, b"after") == (0, 20)
        assert cluster.bytes_of(2) == cluster.bytes_of(1)
        assert target.meta is not None
        meta = target.meta
        assert meta is not None
        await cluster.until(lambda: (2, meta.directory_id) in cluster.assigned)

    ThreeBrokers(log_dirs="/data,/data2").run(scenario)
