"""A node starts whole or not at all, stops without a loss, and says when it cannot go on."""

from __future__ import annotations

import asyncio
import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import OutOfOrderSequenceNumber
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import NotFormatted, format_directories
from millbeck.server.metadata.quorum_driver import MetadataLogFailed
from millbeck.server.network.listeners import DRAIN_SECONDS_MAX
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.directory import CLEAN_SHUTDOWN_FILE_NAME, NO_BROKER_EPOCH, DirectoryLocked
from millbeck.wire.messages import configs as configs_messages
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.harness.broker_harness import SETTINGS, BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import (
    append_straight,
    create,
    fetch,
    find_coordinator,
    in_transaction,
    partition_of,
    produce,
    results,
    run_scenario,
)
from tests.unit.server.harness.real_node import running


def node_of(harness: BrokerHarness) -> Node:
    assert harness.node is not None
    return harness.node


async def stopped(harness: BrokerHarness) -> None:
    """Stop cleanly and end the process."""
    await node_of(harness).stop()
    harness.machine.crash()


# A life.


def test_a_clean_restart_keeps_everything_and_recovers_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=2, retention_ms="12345678")
        for number in range(5):
            await produce(client, b"%d" % number, producer_id=9, producer_epoch=0, base_sequence=number)
        append_straight(partition_of(harness, index=1), in_transaction(b"open", producer_id=7))
        await find_coordinator(client, "g")
        commit = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 3, committed_metadata="m")])
            ],
        )
        while (await client.ask(commit, 7)).topics[0].partitions[0].error_code:
            await asyncio.sleep(0.1)
        cluster_id, epoch = node_of(harness).cluster_id, node_of(harness).broker_epoch
        await stopped(harness)
        assert CLEAN_SHUTDOWN_FILE_NAME in harness.machine.disk.find_directory("/data").entries
        await harness.start()
        client = await harness.connect(environment)
        node = node_of(harness)
        assert CLEAN_SHUTDOWN_FILE_NAME not in harness.machine.disk.find_directory("/data").entries
        assert (node.cluster_id, node.broker.topics.by_name["t"].topic_id) == (cluster_id, topic_id)
        assert node.broker_epoch > epoch
        assert node.directories[0].had_clean_shutdown
        assert partition_of(harness).log.config.retention_ms == 12345678
        records = results(await client.ask(fetch((0, 0)), 11))[0].records
        assert all(b"%d" % number in records for number in range(5))
        assert results(await client.ask(fetch((1, 0), committed=True), 11))[1].last_stable_offset == 0
        assert await produce(client, b"4", producer_id=9, producer_epoch=0, base_sequence=4) == 4
        data = PartitionProduceData(0, one_batch(b"9", producer_id=9, producer_epoch=0, base_sequence=9))
        request = ProduceRequest(acks=1, topic_data=[TopicProduceData("t", bytes(16), [data])])
        (gap,) = (await client.ask(request, 9)).responses[0].partition_responses
        assert gap.error_code == OutOfOrderSequenceNumber.code
        wanted = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic("t", [0])])
        while (committed := await client.ask(wanted, 5)).error_code:
            await asyncio.sleep(0.1)
        assert committed.topics[0].partitions[0].committed_offset == 3

    run_scenario(scenario)


@pytest.mark.parametrize("ending", ["crash", "power loss"])
def test_a_hard_end_loses_nothing_that_was_promised_and_is_told_of(
    ending: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert "cleanly" not in caplog.text, "a new directory was not closed by anybody"
        await create(client, "durable", flush_messages="1")
        await create(client, "usual")
        for number in range(20):
            for topic in ("durable", "usual"):
                await produce(client, b"record-%d" % number, topic=topic, acks=-1)
        if ending == "crash":
            harness.machine.crash()
        else:
            harness.machine.power_loss(survival=0.0)
        await harness.start()
        assert not node_of(harness).directories[0].had_clean_shutdown
        client = await harness.connect(environment)
        for topic in ("durable", "usual") if ending == "crash" else ("durable",):
            records = results(await client.ask(fetch((0, 0), topic=topic), 11))[0].records
            assert all(b"record-%d" % number in records for number in range(20))
        assert await produce(client, b"next", topic="durable", acks=-1) == 20
        assert "/data was not closed cleanly: recovering its 3 logs" in caplog.text
        assert "recovered durable-0 up to offset 20, " in caplog.text
        assert "/data: opened 3 logs in" in caplog.text

    run_scenario(scenario)


def test_stopping_answers_what_is_open_and_closes_the_connections() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        other = await harness.connect(environment)
        parked = client.send(fetch((0, 0), max_wait_ms=1000), 11)
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        await node_of(harness).stop()
        assert asyncio.get_running_loop().time() - began < 2
        assert results(await parked)[0].error_code == 0
        assert client.is_lost
        assert other.is_lost
        with pytest.raises(OSError):
            await harness.connect(environment)

    run_scenario(scenario)


def test_stopping_does_not_wait_for_ever_for_those_who_do() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        client.send(fetch((0, 0), max_wait_ms=1_000_000), 11)
        await asyncio.sleep(0.1)
        began = asyncio.get_running_loop().time()
        await node_of(harness).stop()
        assert asyncio.get_running_loop().time() - began < DRAIN_SECONDS_MAX + 1
        await asyncio.sleep(0.1)
        assert client.is_lost
        assert node_of(harness).tasks.running == {}

    run_scenario(scenario)


def test_a_stopped_node_leaves_no_lock_no_port_and_no_task() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await node_of(harness).stop()
        assert harness.machine.disk.locks == {}
        run = harness.machine.run
        assert run is not None
        for port in (9092, 9404):
            listening = await run.environment.network.listen(asyncio.Protocol, host="", port=port)
            listening.close()

    run_scenario(scenario)


# A start that fails.


def starting(prepare: Any, *, settings: dict[str, str] | None = None, seed: int = 1) -> tuple[World, BaseException]:
    """Let a node start in a process that did something before; the error it ended with."""
    world = World(seed)
    machine = world.node("n1")
    config = NodeConfig(SETTINGS | (settings or {}))

    async def main(environment: Environment) -> None:
        format_directories(environment, config, ignore_formatted=True)
        undo = await prepare(machine, environment)
        node = Node(environment, config, NodeSettings())
        try:
            await node.start()
        except BaseException:
            assert node.tasks.running == {}
            assert len(node.deadlines) == 0
            if undo is not None:
                undo()
            # Whatever it was, it left nothing behind that would be in the way of the next.
            second = Node(environment, config, NodeSettings())
            await second.start()
            await second.stop()
            raise

    async def scenario(environment: Environment) -> BaseException:
        run = machine.start(main, may_fail=True)
        await run.wait()
        assert run.leftover_task_count == 0
        assert run.error is not None
        return run.error

    return world, world.run(scenario, limit_s=100)


def test_a_taken_port_is_named_and_everything_is_let_go() -> None:
    async def take_port(machine: Any, environment: Environment) -> Any:
        return (await environment.network.listen(asyncio.Protocol, host="", port=9092)).close

    world, error = starting(take_port)
    assert isinstance(error, OSError)
    assert "PLAINTEXT://:9092" in str(error)
    world.close()


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_start_that_fails_leaves_directories_closed_as_it_has_found_them(is_clean: bool) -> None:
    """Else one wrong setting, or a minute without a controller, would pass for a broker that may have lost records."""
    world = World(1)
    machine = world.node("n1")
    config = NodeConfig(SETTINGS)
    epochs: list[int] = []

    async def begin(environment: Environment) -> None:
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings())
        await node.start()
        epochs.append(node.broker_epoch)
        if is_clean:
            await node.stop()

    async def go_on(environment: Environment) -> None:
        taken = await environment.network.listen(asyncio.Protocol, host="", port=9092)
        with pytest.raises(OSError):
            await Node(environment, config, NodeSettings()).start()
        taken.close()
        node = Node(environment, config, NodeSettings())
        await node.start()
        (directory,) = node.directories
        found = (directory.had_clean_shutdown, directory.previous_broker_epoch)
        assert found == ((True, epochs[0]) if is_clean else (False, NO_BROKER_EPOCH))
        await node.stop()

    async def scenario(environment: Environment) -> None:
        for main in (begin, go_on):
            run = machine.start(main)
            await run.wait()
            assert run.error is None
            machine.crash()

    world.run(scenario, limit_s=100)
    world.close()


def test_the_second_of_two_ports_that_is_taken_lets_go_of_the_first() -> None:
    async def take_port(machine: Any, environment: Environment) -> Any:
        return (await environment.network.listen(asyncio.Protocol, host="", port=9095)).close

    settings = {
        "listeners": "PLAINTEXT://:9092,OTHER://:9095",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    }
    world, error = starting(take_port, settings=settings)
    assert "OTHER://:9095" in str(error)
    world.close()


def test_a_directory_in_use_is_named() -> None:
    async def take_lock(machine: Any, environment: Environment) -> Any:
        return environment.files.lock("/two/.lock").release

    world, error = starting(take_lock, settings={"log.dirs": "/one,/two"})
    assert isinstance(error, DirectoryLocked)
    assert "/two" in str(error)
    world.close()


def test_a_metadata_log_that_cannot_be_written_is_named() -> None:
    async def break_disk(machine: Any, environment: Environment) -> Any:
        machine.disk.fail_next(DiskCall.SYNC, path_part="__cluster_metadata-0", error=errno.EIO, count=50)
        return machine.disk._planned.clear

    world, error = starting(break_disk)
    assert isinstance(error, MetadataLogFailed)
    assert "/data/__cluster_metadata-0" in str(error)
    world.close()


def test_a_node_that_fails_while_it_waits_for_the_others_does_not_wait_on() -> None:
    cluster = SimCluster(1, is_combined=False)
    member = cluster.brokers[0]

    async def scenario(environment: Environment) -> None:
        cluster.start(member)
        await asyncio.sleep(1)
        assert cluster.machine(member).is_running
        cluster.nodes[member.name]._fail(OSError("the disk is gone"))
        await asyncio.sleep(0.1)

    with cluster.world as world:
        world.run(scenario, limit_s=10)
        run = cluster.machine(member).run
        assert run is not None
        assert not run.is_running
        assert str(run.error) == "the disk is gone"


def test_a_directory_may_fail_before_anybody_waits_for_its_logs() -> None:
    world = World(1)
    config = NodeConfig(SETTINGS)

    async def main(environment: Environment) -> None:
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings())
        node._open_directories()
        node.directories[0].failed("a test")
        assert node.directories[0].offline_reason == "a test"
        await node._abandon()

    async def scenario(environment: Environment) -> None:
        await world.node("n1").start(main).wait()

    world.run(scenario, limit_s=100)
    world.close()


def test_a_certificate_that_is_not_there_is_named() -> None:
    settings = {"listeners": "SSL://:9092", "ssl.keystore.location": "/no/such.pem", "ssl.keystore.type": "PEM"}
    world = World(1)
    machine = world.node("n1")

    async def main(environment: Environment) -> None:
        config = NodeConfig(SETTINGS | settings)
        format_directories(environment, config)
        await Node(environment, config).start()

    async def scenario(environment: Environment) -> None:
        run = machine.start(main, may_fail=True)
        await run.wait()
        assert "/no/such.pem" in str(run.error)
        assert machine.disk.locks == {}
        assert run.leftover_task_count == 0

    world.run(scenario, limit_s=100)
    world.close()


def test_an_unformatted_directory_is_not_touched() -> None:
    async def scenario(environment: Environment) -> None:
        async def main(environment: Environment) -> None:
            Node(environment, NodeConfig(SETTINGS))

        run = machine.start(main, may_fail=True)
        await run.wait()
        assert isinstance(run.error, NotFormatted)
        assert machine.disk.root.entries == {}

    world = World(1)
    machine = world.node("n1")
    world.run(scenario, limit_s=10)
    world.close()


# Trouble on the way.


class StopsOnFailure(BrokerHarness):
    """Does with a failed node what the command does."""

    failure: BaseException | None = None
    locks_left: int | None = None

    async def main(self, environment: Environment) -> None:
        config = NodeConfig(self.settings)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        self.node = node
        self.failure = await node.failed
        await node.stop()
        self.locks_left = len(self.machine.disk.locks)


def test_a_metadata_log_that_fails_ends_the_node_and_it_still_stops() -> None:
    async def scenario(harness: Any, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, b"x")
        harness.machine.disk.fail_next(DiskCall.SYNC, path_part="__cluster_metadata-0")
        with pytest.raises((AssertionError, ConnectionError)):
            await create(client, "second")
        run = harness.machine.run
        await run.wait()
        assert run.error is None
        assert isinstance(harness.failure, MetadataLogFailed)
        assert (harness.locks_left, run.leftover_task_count) == (0, 0)
        harness.node.broker.unexpected_errors = 0
        assert CLEAN_SHUTDOWN_FILE_NAME in harness.machine.disk.find_directory("/data").entries
        assert CLEAN_SHUTDOWN_FILE_NAME not in harness.machine.disk.find_directory("/meta").entries

    StopsOnFailure(metadata_log_dir="/meta").run(scenario)


def test_every_directory_failing_ends_the_node() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        node = node_of(harness)
        first, second = node.broker.logs.directories
        first.failed("one")
        assert not node.failed.done()
        second.failed("two")
        assert "two" in str(node.failed.result())
        # What the controller was told of the first begins to be written.
        await asyncio.sleep(0.1)

    run_scenario(scenario, log_dirs="/one,/two", metadata_log_dir="/meta")


def test_what_a_task_raises_is_reported_and_what_should_end_the_process_does() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        node = node_of(harness)

        async def fails() -> None:
            raise ZeroDivisionError

        node.spawn(fails())
        await asyncio.sleep(0.1)
        assert node.broker.unexpected_errors == 1
        node.broker.unexpected_errors = 0
        assert not node.failed.done()
        node._fail(KeyboardInterrupt())
        node._fail(SystemExit())
        assert isinstance(node.failed.result(), KeyboardInterrupt)

    run_scenario(scenario)


# Limits.


def test_connections_above_the_limit_are_refused_and_the_limit_may_change() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        async def is_served() -> bool:
            other = await harness.connect(environment)
            try:
                await other.ask(ApiVersionsRequest(), 0)
            except ConnectionError:
                return False
            return True

        assert await is_served()
        assert await is_served()
        assert not await is_served()
        change = configs_messages.IncrementalAlterableConfig("max.connections", 0, "4")
        resource = configs_messages.IncrementalAlterConfigsResource(4, "", [change])
        request = configs_messages.IncrementalAlterConfigsRequest(resources=[resource])
        (answer,) = (await client.ask(request, 1)).responses
        assert answer.error_code == 0
        assert await is_served()
        assert not await is_served()

    run_scenario(scenario, max_connections="3")


def test_idle_connections_are_closed_and_busy_ones_are_not() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        idle, busy = await harness.connect(environment), await harness.connect(environment)
        parked = busy.send(fetch((0, 0), max_wait_ms=40_000), 11)
        for _ in range(30):
            await asyncio.sleep(1)
            await client.ask(ApiVersionsRequest(), 0)
        assert idle.is_lost
        assert not client.is_lost
        assert results(await parked)[0].error_code == 0

    run_scenario(scenario, connections_max_idle_ms="10000")


def test_a_request_that_never_ends_and_one_that_is_too_large_cost_their_connection() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        slow, large, negative = [await harness.connect(environment) for _ in range(3)]
        slow.write(b"\x00\x00\x00\x64" + bytes(20))
        large.write((2**31 - 1).to_bytes(4, "big") + bytes(100))
        negative.write(b"\xff\xff\xff\xff" + bytes(100))
        await asyncio.sleep(1)
        assert (slow.is_lost, large.is_lost, negative.is_lost) == (False, True, True)
        await asyncio.sleep(60)
        assert slow.is_lost
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0

    run_scenario(scenario)


# On a real machine.


def test_librdkafka_describes_a_group_in_which_the_broker_assigns(tmp_path: Path) -> None:
    """It asks with version 0, which has fewer fields than the answer is made of."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    admin_module = pytest.importorskip("confluent_kafka.admin")
    with running(tmp_path, num_partitions="2", offsets_topic_num_partitions="1") as node:
        bootstrap = {"bootstrap.servers": f"127.0.0.1:{node.listeners[0].port}"}
        admin = admin_module.AdminClient(bootstrap)
        admin.create_topics([admin_module.NewTopic("t", 2, 1)])["t"].result(10)
        consumer = confluent_kafka.Consumer({**bootstrap, "group.id": "g", "group.protocol": "consumer"})
        try:
            consumer.subscribe(["t"])
            for _ in range(200):
                consumer.poll(0.05)
                if consumer.assignment():
                    break
            described = admin.describe_consumer_groups(["g"])["g"].result(10)
        finally:
            consumer.close()
        assert (described.type.name, described.state.name) == ("CONSUMER", "STABLE")
        (member,) = described.members
        assert [each.partition for each in member.assignment.topic_partitions] == [0, 1]


@pytest.mark.parametrize("portable", [False, True], ids=["as it is", "portable"])
def test_librdkafka_reads_after_a_restart_what_it_wrote_before(portable: bool, tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    values = [b"%06d" % number + b"x" * 10_000 for number in range(400)]
    settings = {"log_segment_bytes": "1048576", "num_partitions": "1"}
    with running(tmp_path, portable=portable, **settings) as node:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": f"127.0.0.1:{node.listeners[0].port}", "enable.idempotence": True, "linger.ms": 1}
        )
        failures: list[Any] = []
        for value in values:
            producer.produce("t", value, on_delivery=lambda error, message: failures.append(error) if error else None)
        assert producer.flush(20) == 0
        assert failures == []
        assert len(node.broker.topics.partition("t", 0).log.segments) > 2
    with running(tmp_path, portable=portable, **settings) as node:
        assert node.directories[0].had_clean_shutdown
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": f"127.0.0.1:{node.listeners[0].port}",
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "fetch.max.bytes": 300_000,
                "message.max.bytes": 300_000,
            }
        )
        consumer.subscribe(["t"])
        read: list[bytes] = []
        for _ in range(1000):
            read += [each.value() for each in consumer.consume(100, 0.05) if each.error() is None]
            if len(read) >= len(values):
                break
        consumer.close()
        assert read == values
