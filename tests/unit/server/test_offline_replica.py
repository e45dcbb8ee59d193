"""A log is damaged and nobody else has it: what clients, tools and alerts are told, until it is repaired."""

from __future__ import annotations

import asyncio
import errno
from typing import Any

import pytest

from millbeck.client.admin import Admin
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import CorruptMessage, LeaderNotAvailable
from millbeck.kernel.ids import TopicPartition
from millbeck.simulation.environment.files import SimFiles
from millbeck.simulation.environment.inode import Inode
from millbeck.storage.checkpoints import RECOVERY_POINTS, read_offsets
from millbeck.storage.directory import LogDirectory
from millbeck.storage.log import Log
from millbeck.storage.repair import cut, find_damage
from millbeck.wire.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsTopic,
    MetadataRequest,
    MetadataRequestTopic,
)
from nemesis.alerts import Alerts
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, fetch, partition_of, produce, results
from tests.unit.server.harness.scraping import samples

COUNT = 12
OFFLINE_PARTITIONS = "kafka_controller_kafkacontroller_offlinepartitionscount"
OFFLINE_REPLICAS = "kafka_server_replicamanager_offlinereplicacount"


async def fill(client: Client) -> None:
    """Batches of one record, some to a segment, all of them known to be durable."""
    for topic in ("t", "sound"):
        await create(client, topic, flush_messages="1", internal_segment_bytes="400")
        for number in range(COUNT):
            await produce(client, b"%d" % number * 50, topic=topic, acks=-1)
    await asyncio.sleep(120)  # Checkpoints are written once a minute.


def rot(harness: BrokerHarness, *, offset: int, byte: int) -> tuple[str, int]:
    """A bit of the batch with this offset goes bad; its file and its position there."""
    log = partition_of(harness).log
    segment = log.segments[log.segment_index_for(offset)]
    [position] = [each for each, header in segment.headers() if header.base_offset == offset]
    inode = harness.machine.disk.find(segment.log_path)
    assert isinstance(inode, Inode)
    inode.rot(8 * (position + byte))
    return segment.log_path, position


async def restart(harness: BrokerHarness, environment: Environment) -> Client:
    harness.machine.crash()
    await harness.start()
    return await harness.connect(environment)


async def partition_told(client: Client) -> Any:
    (topic,) = (await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)).topics
    return topic.partitions[0]


async def partition_described(client: Client) -> Any:
    request = DescribeTopicPartitionsRequest(topics=[DescribeTopicPartitionsTopic("t")])
    (topic,) = (await client.ask(request, 0)).topics
    return topic.partitions[0]


async def until_leader_is(client: Client, leader: int) -> None:
    async with asyncio.timeout(30):
        while (await partition_told(client)).leader_id != leader:
            await asyncio.sleep(0.1)


def alerts_of(harness: BrokerHarness) -> list[str]:
    assert harness.node is not None
    return Alerts().scraped(asyncio.get_running_loop().time(), {"n1": harness.node.render_metrics()})


async def reasons_told(environment: Environment) -> list[str]:
    """Why logs are offline, as `millbeck log-dirs` and `millbeck doctor` learn it."""
    async with Admin({"bootstrap.servers": "n1:9092"}, environment=environment) as admin:
        directories = (await admin.describe_log_dirs()).succeeded[1]
    return [
        each.offline_reason
        for directory in directories
        for each in directory.replicas
        if each.offline_reason is not None
    ]


def test_everybody_is_told_of_damage_and_the_documented_repair_ends_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await fill(client)
        path, position = rot(harness, offset=COUNT - 1, byte=80)
        client = await restart(harness, environment)
        await until_leader_is(client, -1)
        for told in (await partition_told(client), await partition_described(client)):
            assert (told.error_code, told.leader_id, told.offline_replicas) == (LeaderNotAvailable.code, -1, [1])
        (reason,) = await reasons_told(environment)
        assert reason.startswith(f"{path} is corrupt at position {position}: ")
        shown = samples(harness.node)
        assert (shown[OFFLINE_PARTITIONS], shown[OFFLINE_REPLICAS]) == (1, 1)
        assert alerts_of(harness) == ["OfflinePartitions"]
        assert await produce(client, b"more", topic="sound", acks=-1) == COUNT

        harness.machine.crash()
        files = harness.machine.disk.mount()
        damage = find_damage(files, "/data", TopicPartition("t", 0))
        assert damage is not None
        assert (damage.path, damage.position, damage.first_offset) == (path, position, COUNT - 1)
        assert cut(files, "/data", TopicPartition("t", 0), damage, now_ms=0) == COUNT - 1
        harness.machine.disk.unmount(files)
        await harness.start()
        client = await harness.connect(environment)
        await until_leader_is(client, 1)
        assert (await partition_told(client)).offline_replicas == []
        assert await reasons_told(environment) == []
        assert (samples(harness.node)[OFFLINE_PARTITIONS], alerts_of(harness)) == (0, [])
        assert await produce(client, b"more", acks=-1) == COUNT - 1
        assert partition_of(harness, "sound").log.end_offset == COUNT + 1

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_consumer_that_meets_the_damage_is_told_that_it_is_corrupt() -> None:
    """As Kafka answers it; what comes before it is read, and from then on there is no leader."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await fill(client)
        rot(harness, offset=1, byte=16)  # The magic byte.
        below = results(await client.ask(fetch((0, 0), partition_max_bytes=1), 12))[0]
        assert (below.error_code, below.high_watermark) == (0, COUNT)
        met = results(await client.ask(fetch((0, 1), partition_max_bytes=1), 12))[0]
        assert met.error_code == CorruptMessage.code
        began_s = environment.clock.monotonic()
        await until_leader_is(client, -1)
        assert environment.clock.monotonic() - began_s < 1

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_damaged_log_is_not_made_anew_elsewhere_while_its_directory_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be empty, and lead."""
    is_away = False
    lock = SimFiles.lock

    def lock_if_there(files: SimFiles, path: str) -> Any:
        if is_away and path.startswith("/one/"):
            raise OSError(errno.EIO, "Input/output error", path)
        return lock(files, path)

    monkeypatch.setattr(SimFiles, "lock", lock_if_there)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        nonlocal is_away
        await fill(client)
        home = partition_of(harness).log.directory.partition("/t-0")[0]
        assert home == "/one"
        rot(harness, offset=1, byte=16)
        await client.ask(fetch((0, 1), partition_max_bytes=1), 12)
        await until_leader_is(client, -1)
        is_away = True
        client = await restart(harness, environment)
        await asyncio.sleep(30)
        assert (await partition_told(client)).leader_id == -1
        assert not any(name.startswith("t-0") for name in harness.machine.disk.find_directory("/two").entries)
        is_away = False
        client = await restart(harness, environment)
        await until_leader_is(client, -1)
        assert await reasons_told(environment) != []

    BrokerHarness(log_dirs="/one,/two", metadata_log_dir="/meta").run(scenario, limit_s=10_000)


def test_a_log_that_cannot_be_opened_is_offline_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    is_refused = True
    open_log = LogDirectory.open_log

    def refuse(directory: LogDirectory, name: TopicPartition, *arguments: Any, **options: Any) -> Log:
        if is_refused and name.topic == "t":
            raise OSError(errno.EACCES, "Permission denied", "/data/t-0")
        return open_log(directory, name, *arguments, **options)

    monkeypatch.setattr(LogDirectory, "open_log", refuse)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        nonlocal is_refused
        await fill(client)
        client = await restart(harness, environment)
        await until_leader_is(client, -1)
        assert (await partition_told(client)).offline_replicas == [1]
        (reason,) = await reasons_told(environment)
        assert "Permission denied: '/data/t-0'" in reason
        assert alerts_of(harness) == ["OfflinePartitions"]
        await asyncio.sleep(120)  # Checkpoints are written meanwhile, and must not forget the log.
        is_refused = False
        files = harness.machine.disk.mount()
        recovery_point = read_offsets(files, "/data", RECOVERY_POINTS)[TopicPartition("t", 0)]
        harness.machine.disk.unmount(files)
        client = await restart(harness, environment)
        await until_leader_is(client, 1)
        assert recovery_point == partition_of(harness).log.recovery_point == COUNT
        assert await produce(client, b"more", acks=-1) == COUNT

    BrokerHarness().run(scenario, limit_s=10_000)
