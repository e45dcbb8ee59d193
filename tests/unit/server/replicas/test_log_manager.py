"""The node's logs follow the metadata, and are kept tidy without getting in each other's way."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.kernel.errors import ApiError, CorruptMessage, KafkaStorageError, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.replication.partition import Partition
from millbeck.server.loop import tasks
from millbeck.server.replicas.log_manager import LogManager
from millbeck.server.replicas.log_upkeep import FIRST_SCRUB_SECONDS_MAX
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.checkpoints import HIGH_WATERMARKS, read_offsets
from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME
from millbeck.storage.log import Log
from millbeck.storage.partition_directory import METADATA_FILE_NAME, encode_metadata
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import (
    NOW_MS,
    create,
    delete,
    fetch,
    leases,
    partition_of,
    produce,
    results,
    run_scenario,
)

SCRUB_SECONDS = 200


def names(harness: BrokerHarness, path: str = "/data") -> list[str]:
    return sorted(harness.machine.disk.find_directory(path).entries)


def logs_of(harness: BrokerHarness) -> Any:
    assert harness.node is not None
    return harness.node.broker.logs


async def stop_and_start(harness: BrokerHarness, environment: Environment, between: Any = lambda: None) -> Client:
    """Stop cleanly, do something to the disk, start; a new client."""
    assert harness.node is not None
    await harness.node.stop()
    harness.machine.crash()
    between()
    await harness.start()
    return await harness.connect(environment)


def write_file(harness: BrokerHarness, path: str, content: bytes) -> None:
    files = harness.machine.disk.mount()
    file = files.open(path, OpenMode.WRITE)
    file.truncate(0)
    file.write([content], 0)
    file.sync()
    file.close()
    harness.machine.disk.unmount(files)


def damage(harness: BrokerHarness, path: str, position: int) -> None:
    """Change one byte, as a disk that rots does."""
    inode = harness.machine.disk.find(path)
    assert isinstance(inode, Inode)
    inode.rot(8 * position)


# Following the metadata.


def test_a_topics_logs_come_with_it_and_go_after_the_delay() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2, file_delete_delay_ms="5000")
        assert {"t-0", "t-1"} <= set(names(harness))
        await produce(client, b"x")
        await delete(client)
        renamed = [name for name in names(harness) if name.endswith("-delete")]
        assert len(renamed) == 2
        assert "t-0" not in names(harness)
        await asyncio.sleep(4)
        assert [name for name in names(harness) if name.endswith("-delete")] == renamed
        await asyncio.sleep(2)
        assert [name for name in names(harness) if name.endswith("-delete")] == []
        assert logs_of(harness).directory_of(TopicPartition("t", 0)) is None

    run_scenario(scenario)


def test_a_deleted_topic_costs_no_task_for_each_of_its_partitions() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, partitions=100, file_delete_delay_ms="5000")
        before = len(harness.node.tasks.running)
        await delete(client)
        assert len([name for name in names(harness) if name.endswith("-delete")]) == 100
        assert len(harness.node.tasks.running) <= before + 1
        await asyncio.sleep(6)
        assert not any(name.endswith("-delete") for name in names(harness))
        assert len(harness.node.tasks.running) == before

    run_scenario(scenario)


def test_files_of_deleted_logs_go_many_at_a_time() -> None:
    """One after the other, each would wait for a turn of the loop, and a busy one would never be done."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, partitions=100, file_delete_delay_ms="5000")
        await delete(client)
        jobs = 0
        in_thread = harness.node.broker.in_thread

        async def counted(job: Any, *arguments: Any) -> Any:
            nonlocal jobs
            jobs += 1
            return await in_thread(job, *arguments)

        harness.node.broker.in_thread = counted  # type: ignore[method-assign,assignment]
        await asyncio.sleep(6)
        assert not any(name.endswith("-delete") for name in names(harness))
        assert jobs < 10

    run_scenario(scenario)


def test_a_topic_made_again_before_the_old_files_are_gone_is_empty() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for _ in range(3):
            await create(client)
            assert await produce(client, b"x") == 0
            await delete(client)
        await create(client)
        await asyncio.sleep(120)
        assert await produce(client, b"last") == 0
        assert [name for name in names(harness) if name.startswith("t")] == ["t-0"]

    run_scenario(scenario)


def test_what_a_stop_left_of_deleted_topics_is_removed_at_the_next_start() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await delete(client)
        assert any(name.endswith("-delete") for name in names(harness))
        await stop_and_start(harness, environment)
        await asyncio.sleep(1)
        assert not any(name.endswith("-delete") for name in names(harness))

    run_scenario(scenario)


def test_a_log_the_metadata_does_not_know_is_kept_aside() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)

        def leave_stray() -> None:
            files = harness.machine.disk.mount()
            files.make_directory("/data/ghost-3")
            harness.machine.disk.unmount(files)
            write_file(harness, f"/data/ghost-3/{METADATA_FILE_NAME}", encode_metadata(bytes(range(16))))
            write_file(harness, "/data/ghost-3/00000000000000000000.log", one_batch(b"boo"))

        client = await stop_and_start(harness, environment, leave_stray)
        strays = [name for name in names(harness) if name.startswith("ghost-3")]
        assert len(strays) == 1
        assert strays[0].endswith("-stray")
        assert "00000000000000000000.log" in names(harness, f"/data/{strays[0]}")
        await create(client, "ghost", partitions=4)
        assert await produce(client, b"x", topic="ghost", index=3) == 0

    run_scenario(scenario)


def test_a_log_of_another_topic_with_that_name_is_kept_aside() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"theirs")
        client = await stop_and_start(
            harness,
            environment,
            lambda: write_file(harness, f"/data/t-0/{METADATA_FILE_NAME}", encode_metadata(bytes(range(16)))),
        )
        assert any(name.startswith("t-0.") and name.endswith("-stray") for name in names(harness))
        assert await produce(client, b"ours") == 0

    run_scenario(scenario)


@pytest.mark.parametrize("piece", [None, b"", encode_metadata(bytes(range(16)))[:7]])
def test_a_log_that_was_about_to_be_made_when_the_node_died_is_made_anew(
    piece: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)

        def leave_unfinished() -> None:
            files = harness.machine.disk.mount()
            for name in names(harness, "/data/t-0"):
                files.unlink(f"/data/t-0/{name}")
            harness.machine.disk.unmount(files)
            if piece is not None:
                write_file(harness, f"/data/t-0/{METADATA_FILE_NAME}", piece)

        client = await stop_and_start(harness, environment, leave_unfinished)
        assert await produce(client, b"ours") == 0
        await asyncio.sleep(1)
        assert not any(name.endswith(("-stray", "-delete")) for name in names(harness))
        assert "another topic" not in caplog.text

    run_scenario(scenario)


def test_a_log_that_does_not_say_whose_it_is_and_has_records_is_kept_aside(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"whose")
        client = await stop_and_start(
            harness, environment, lambda: write_file(harness, f"/data/t-0/{METADATA_FILE_NAME}", b"")
        )
        assert any(name.startswith("t-0.") and name.endswith("-stray") for name in names(harness))
        assert "t-0 on disk has no topic id" in caplog.text
        assert await produce(client, b"ours") == 0

    run_scenario(scenario)


def test_partitions_are_spread_over_the_directories_and_found_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=6)
        for index in range(6):
            await produce(client, b"%d" % index, index=index)
        where = [
            [name for name in names(harness, path) if name.startswith("t-")] for path in ("/one", "/two", "/three")
        ]
        assert [len(each) for each in where] == [2, 2, 2]
        client = await stop_and_start(harness, environment)
        for index in range(6):
            result = results(await client.ask(fetch((index, 0)), 11))[index]
            assert b"%d" % index in result.records

    run_scenario(scenario, log_dirs="/one,/two,/three")


def test_a_log_that_cannot_be_made_leaves_the_others_alone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        write_file(harness, "/data/t-1", b"a file where a directory should be")
        await create(client, partitions=3)
        assert await produce(client, b"x", index=0) == 0
        assert await produce(client, b"x", index=2) == 0
        assert results(await client.ask(fetch((1, 0)), 11))[1].error_code == KafkaStorageError.code
        data = PartitionProduceData(1, one_batch(b"x"))
        produced = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[data])])
        (answer,) = (await client.ask(produced, 9)).responses[0].partition_responses
        assert (answer.error_code, "the log of t-1 is not usable" in answer.error_message) == (
            KafkaStorageError.code,
            True,
        )
        assert results(await client.ask(fetch((3, 0)), 11))[3].error_code == UnknownTopicOrPartition.code
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
        (topic,) = (await client.ask(request, 9)).topics
        assert [each.offline_replicas for each in topic.partitions] == [[], [1], []]
        assert [name for name in names(harness) if name.startswith("t-")] == ["t-0", "t-1", "t-2"]

    run_scenario(scenario)


@pytest.mark.parametrize("is_created", [True, False], ids=["a-topic-is-created", "nothing-is-done"])
def test_a_directory_that_is_gone_goes_offline_and_is_not_made_anew(is_created: bool) -> None:
    """As when its disk is unmounted: what would be created there is on another disk."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=4)
        lost = [name for name in names(harness, "/two") if name.startswith("t-")]
        files = harness.machine.disk.mount()
        files.rename("/two", "/away")
        if is_created:
            await create(client, "u", partitions=4)
            assert [name for name in names(harness, "/one") if name.startswith("u-")] == ["u-0", "u-1", "u-2", "u-3"]
            assert await produce(client, b"x", topic="u", index=3) == 0
        else:
            await asyncio.sleep(6)  # High watermarks are looked after every five seconds.
        one, two = logs_of(harness).directories
        assert (one.offline_reason, "/two/meta.properties no longer exists" in str(two.offline_reason)) == (None, True)
        assert not files.exists("/two")
        assert harness.node is not None
        offline = [each.name for each in harness.node.broker.topics.all_partitions() if each.log.is_offline]
        assert sorted(map(str, offline)) == lost

    run_scenario(scenario, log_dirs="/one,/two", metadata_log_dir="/one")


# Damage.


def test_damage_found_at_the_start_takes_only_that_partition_offline() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2, segment_bytes="1048576")
        for index in (0, 1):
            for _ in range(12):
                await produce(client, b"x" * 100_000, index=index)
        client = await stop_and_start(
            harness, environment, lambda: damage(harness, "/data/t-0/00000000000000000000.log", 16)
        )
        result = results(await client.ask(fetch((0, 0)), 11))[0]
        assert result.error_code == CorruptMessage.code
        assert await produce(client, b"fine", index=1) == 12
        assert results(await client.ask(fetch((1, 0)), 11))[1].error_code == 0

    run_scenario(scenario)


def test_a_scrub_that_finds_damage_takes_only_that_partition_offline() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        for index in (0, 1):
            await produce(client, b"x" * 1000, index=index)
        await asyncio.sleep(120)  # until it is flushed, and so below the recovery point
        damage(harness, "/data/t-0/00000000000000000000.log", 500)
        await asyncio.sleep(SCRUB_SECONDS)
        log = partition_of(harness, index=1).log
        assert not log.is_offline
        assert harness.node is not None
        damaged = harness.node.broker.topics.by_name["t"].partitions[0].log
        assert damaged.is_offline
        assert "00000000000000000000.log is corrupt at position 0" in (damaged.offline_reason or "")
        assert logs_of(harness).directories[0].offline_reason is None
        assert await produce(client, b"still", index=1) == 1

    run_scenario(scenario, log_scrub_interval_ms=str(SCRUB_SECONDS * 1000))


def test_the_first_scrub_does_not_wait_for_a_day() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x" * 1000)
        await asyncio.sleep(120)
        log = partition_of(harness).log
        damage(harness, "/data/t-0/00000000000000000000.log", 500)
        await asyncio.sleep(FIRST_SCRUB_SECONDS_MAX - 240)
        assert not log.is_offline
        await asyncio.sleep(240)
        assert log.is_offline

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_scrub_that_cannot_read_one_log_goes_on_with_the_next() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3)
        for index in range(3):
            await produce(client, b"x" * 1000, index=index)
        await asyncio.sleep(120)
        harness.machine.disk.fail_next(DiskCall.READ, path_part="/t-0/")
        damage(harness, "/data/t-2/00000000000000000000.log", 500)
        await asyncio.sleep(SCRUB_SECONDS)
        assert harness.node is not None
        offline = [each.log.is_offline for each in harness.node.broker.topics.by_name["t"].partitions.values()]
        assert offline == [False, False, True]
        assert leases(harness) == 0

    run_scenario(scenario, log_scrub_interval_ms=str(SCRUB_SECONDS * 1000))


# Upkeep.


def test_retention_removes_old_segments_and_tells_the_readers() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, segment_bytes="1048576", retention_bytes="1500000", file_delete_delay_ms="1000")
        for _ in range(40):
            await produce(client, b"x" * 100_000)
        other = await harness.connect(environment)
        response = await other.ask(fetch((0, 40), session=(0, 0)), 11)
        segments = len(partition_of(harness).log.segments)
        assert segments > 3
        await asyncio.sleep(400)
        log = partition_of(harness).log
        assert len(log.segments) < segments
        assert log.log_start_offset > 0
        assert min(int(name[:20]) for name in names(harness, "/data/t-0") if name.endswith(".log")) > 0
        told = results(await other.ask(fetch(session=(response.session_id, 1)), 11))
        assert told[0].log_start_offset == log.log_start_offset

    run_scenario(scenario)


def test_retention_that_fails_for_one_log_goes_on_with_the_next(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2, segment_bytes="1048576", retention_bytes="1048576")
        for index in (0, 1):
            for _ in range(25):
                await produce(client, b"x" * 100_000, index=index)
        target = Log.retention_target

        def refuses_first(log: Log, *arguments: Any) -> Any:
            if log.topic_partition.partition == 0:
                raise KafkaStorageError("not today")
            return target(log, *arguments)

        monkeypatch.setattr(Log, "retention_target", refuses_first)
        await asyncio.sleep(400)
        assert partition_of(harness, index=0).log.log_start_offset == 0
        assert partition_of(harness, index=1).log.log_start_offset > 0

    run_scenario(scenario)
    assert "not today" in caplog.text


@pytest.mark.parametrize("method", ["retention_target", "flush_job", "expire_producers", "is_flush_due"])
def test_a_defect_in_one_log_stops_the_upkeep_of_no_other(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, partitions=2, segment_bytes="1048576", retention_bytes="1048576")
        before = getattr(Log, method)

        def defective(log: Log, *arguments: Any) -> Any:
            if log.topic_partition.partition == 0:
                raise ValueError("a defect")
            return before(log, *arguments)

        for index in (0, 1):
            for _ in range(25):
                await produce(client, b"x" * 100_000, index=index)
        monkeypatch.setattr(Log, method, defective)
        await produce(client, b"x", index=1)
        await asyncio.sleep(130)
        log = partition_of(harness, index=1).log
        assert log.log_start_offset > 0
        assert log.flushed_offset == log.end_offset
        files = harness.machine.disk.mount()
        recovery_points = read_offsets(files, "/data", "recovery-point-offset-checkpoint")
        harness.machine.disk.unmount(files)
        assert recovery_points[TopicPartition("t", 1)] == log.end_offset
        assert harness.node.broker.isolation.failure_count > 0
        # Expected here; the harness takes them for a failure.
        harness.node.broker.unexpected_errors = 0

    run_scenario(scenario, log_retention_check_interval_ms="50000", log_flush_scheduler_interval_ms="10000")


def test_producers_expire() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x", producer_id=5, producer_epoch=0, base_sequence=0)
        log = partition_of(harness).log
        await asyncio.sleep(55)
        assert list(log.producers.producers) == [5]
        await asyncio.sleep(20)
        assert list(log.producers.producers) == []

    run_scenario(scenario, producer_id_expiration_ms="60000", log_retention_check_interval_ms="10000")


def test_an_interval_makes_what_was_written_durable_and_writes_it_down() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"a", b"b")
        assert partition_of(harness).log.flushed_offset == 0
        await asyncio.sleep(65)
        assert partition_of(harness).log.flushed_offset == 2
        files = harness.machine.disk.mount()
        key = TopicPartition("t", 0)
        assert read_offsets(files, "/data", "recovery-point-offset-checkpoint")[key] == 2
        assert read_offsets(files, "/data", HIGH_WATERMARKS)[key] == 2
        harness.machine.power_loss(survival=0.0)
        await harness.start()
        assert partition_of(harness).log.end_offset == 2

    run_scenario(scenario)


def test_flush_ms_is_kept_by_the_scheduler() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, flush_ms="2000")
        await produce(client, b"a")
        await asyncio.sleep(1)
        assert partition_of(harness).log.flushed_offset == 0
        await asyncio.sleep(3)
        assert partition_of(harness).log.flushed_offset == 1

    run_scenario(scenario, log_flush_scheduler_interval_ms="500")


def test_flushes_in_a_row_do_not_pile_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, flush_messages="1")
        harness.machine.disk.faults.sync_cost_s = 0.01
        data = PartitionProduceData(0, one_batch(b"x"))
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData("t", bytes(16), [data])])
        clients = [await harness.connect(environment) for _ in range(3)]

        async def produce_on(one: Client) -> None:
            for _ in range(800):
                (answer,) = (await one.ask(request, 9)).responses[0].partition_responses
                assert answer.error_code == 0

        await asyncio.gather(*map(produce_on, clients))
        assert partition_of(harness).log.flushed_offset == 2400

    run_scenario(scenario)


def test_writeback_is_started_early_and_gives_its_lease_back() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(12):
            await produce(client, b"x" * 900_000)
        await asyncio.sleep(1)
        assert leases(harness) == 0

    run_scenario(scenario)


def test_a_topic_deleted_during_its_flush_does_not_cost_the_directory() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "other")
        for _ in range(20):
            await create(client, flush_messages="1", segment_bytes="1048576")
            harness.machine.disk.faults.sync_cost_s = 0.01
            for _ in range(12):
                await produce(client, b"x" * 100_000)
            await delete(client)
            harness.machine.disk.faults.sync_cost_s = 0.001
        await asyncio.sleep(5)
        assert logs_of(harness).directories[0].offline_reason is None
        assert await produce(client, b"x", topic="other", acks=-1) == 0

    run_scenario(scenario)


# A directory that fails.


def test_what_a_failed_directory_dropped_is_never_acknowledged() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        await produce(client, b"x")
        await produce(client, b"x", index=1)
        # The write of the first partition fails, and so does cutting its file back: the directory is given up with
        # what the second has staged in the same turn.
        harness.machine.disk.fail_next(DiskCall.WRITE, path_part="/t-0/", count=2)
        data = [PartitionProduceData(index, one_batch(b"y")) for index in (0, 1)]
        request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData("t", bytes(16), data)])
        answers = (await client.ask(request, 9)).responses[0].partition_responses
        assert [each.error_code for each in answers] == [KafkaStorageError.code] * 2
        assert harness.node is not None
        assert harness.node.failed.done()
        harness.node.failed = asyncio.get_running_loop().create_future()

    run_scenario(scenario)


def test_those_who_wait_for_a_failed_directory_are_told() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2, flush_messages="1")
        other = await harness.connect(environment)
        reader = await harness.connect(environment)
        parked = reader.send(fetch((1, 0), max_wait_ms=100_000), 11)
        await asyncio.sleep(1)
        directory = logs_of(harness).directory_of(TopicPartition("t", 1))
        harness.machine.disk.faults.sync_cost_s = 10
        waiting = asyncio.ensure_future(
            other.ask(
                ProduceRequest(
                    acks=-1,
                    timeout_ms=60_000,
                    topic_data=[TopicProduceData("t", bytes(16), [PartitionProduceData(1, one_batch(b"y"))])],
                ),
                9,
            )
        )
        await asyncio.sleep(1)
        directory.failed("a test")
        answer = (await asyncio.wait_for(waiting, 20)).responses[0].partition_responses[0]
        assert answer.error_code == KafkaStorageError.code
        assert results(await asyncio.wait_for(parked, 20))[1].error_code == KafkaStorageError.code
        harness.machine.disk.faults.sync_cost_s = 0.001
        assert await produce(client, b"x", index=0, acks=-1) == 0
        assert harness.node is not None
        assert not harness.node.failed.done()

    run_scenario(scenario, log_dirs="/one,/two")


def test_new_topics_go_to_the_directories_that_are_left() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        logs_of(harness).directories[0].failed("a test")
        await create(client, partitions=2)
        assert {"t-0", "t-1"} <= set(names(harness, "/two"))
        assert await produce(client, b"x", timestamp=NOW_MS) == 0

    run_scenario(scenario, log_dirs="/one,/two", metadata_log_dir="/meta")


def test_logs_take_at_most_half_of_the_files_that_may_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimFiles, "open_files_limit", lambda self: 40)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, "many", 60)
        cache = harness.node.broker.logs.directories[0]._environment.cache
        assert cache.open_count <= 20
        assert [await produce(client, b"x", topic="many", index=index) for index in range(60)] == [0] * 60
        assert cache.open_count <= 20

    run_scenario(scenario)


def test_a_stop_during_a_flush_waits_for_it_and_is_clean() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, flush_messages="1")
        threads: Any = harness.node.environment.threads
        threads._delay_s = 5.0
        await produce(client, b"x")
        await asyncio.sleep(0.05)
        await harness.node.stop()
        assert harness.machine.disk.mount().exists(f"/data/{CLEAN_SHUTDOWN_FILE_NAME}")

    run_scenario(scenario)


def test_a_deleted_topic_leaves_no_partition_behind_though_the_loop_has_its_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tasks, "TURN_SECONDS", -1.0)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, "many", 30)
        await create(client, "other")
        await delete(client, "many")
        broker = harness.node.broker
        assert [partition.name.topic for partition in broker.topics.all_partitions()] == ["other"]
        assert [name.topic for name in broker.logs.directories[0].logs if name.topic[0] != "_"] == ["other"]
        await create(client, "many", 3)
        assert await produce(client, b"x", topic="many", index=2) == 0

    run_scenario(scenario)


def test_partitions_of_a_deleted_topic_are_freed_as_they_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Freed all together with their topic, thousands of them hold the loop for longer than a turn may take."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client, "many", 5)
        topic = harness.node.broker.topics.by_name["many"]
        left: list[int] = []
        remove = LogManager._remove_partition

        def counted(logs: LogManager, partition: Partition, error: ApiError) -> None:
            left.append(len(topic.partitions))
            remove(logs, partition, error)

        monkeypatch.setattr(LogManager, "_remove_partition", counted)
        await delete(client, "many")
        assert left == [4, 3, 2, 1, 0]

    run_scenario(scenario)


def test_checkpoints_that_cannot_be_written_are_named_and_hold_up_no_other_directory(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        for index in (0, 1):
            await produce(client, b"x", index=index)
        harness.machine.disk.fail_next(DiskCall.WRITE, path_part="/one/re", error=errno.ENOSPC, count=100)
        await asyncio.sleep(90)
        for what in ("checkpoints", "high watermarks"):
            assert caplog.text.count(f"the {what} of /one could not be written: [Errno 28]") == 1, "logged once"
        files = harness.machine.disk.mount()
        assert list(read_offsets(files, "/two", "recovery-point-offset-checkpoint").values()) == [1]
        assert list(read_offsets(files, "/two", HIGH_WATERMARKS).values()) == [1]
        harness.machine.disk.unmount(files)

    run_scenario(scenario, log_dirs="/one,/two", metadata_log_dir="/meta")
