"""The shipped alerts fire for what they are about, stay silent otherwise, and go away again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import RequestTimedOut
from millbeck.metadata.records import MetadataRecord, PartitionChangeRecord
from millbeck.server.node import Node
from millbeck.storage.room import ROOM_BYTES
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from nemesis.alerts import Alerts
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, find_coordinator, produce
from tests.unit.server.harness.three_brokers import ThreeBrokers

NO_LEADER = -1


class Scraper:
    """Asks every node for its page, and the rules what they make of it."""

    def __init__(self, nodes: Callable[[], dict[str, Node | None]]) -> None:
        self.alerts = Alerts()
        self._nodes = nodes

    def look(self) -> list[str]:
        pages = {name: None if node is None else self._page(name, node) for name, node in self._nodes().items()}
        return self.alerts.scraped(asyncio.get_running_loop().time(), pages)

    def _page(self, name: str, node: Node) -> str:
        text = node.render_metrics()
        if name == "n1":
            return text
        # Three brokers that a test decides for are each their own controller: one of them is enough.
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("kafka_controller_"))

    async def until(self, name: str, limit_s: float, interval_s: float = 15) -> float:
        """Scrape until an alert fires; how long that took."""
        return await self._until(lambda firing: name in firing, limit_s, interval_s)

    async def until_silence(self, limit_s: float, interval_s: float = 15) -> float:
        return await self._until(lambda firing: not firing, limit_s, interval_s)

    async def _until(self, is_met: Callable[[list[str]], bool], limit_s: float, interval_s: float) -> float:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while not is_met(firing := self.look()):
            assert loop.time() - began_s <= limit_s, firing
            await asyncio.sleep(interval_s)
        return loop.time() - began_s


def of_harness(harness: BrokerHarness) -> Scraper:
    return Scraper(lambda: {"n1": harness.node})


async def decide(harness: BrokerHarness, *records: MetadataRecord) -> None:
    assert harness.node is not None
    await harness.node.broker.quorum.submit(lambda image: Result(response=None, records=list(records)))


async def change(harness: BrokerHarness, topic_id: bytes, **fields: Any) -> None:
    if "replicas" in fields:
        fields["directories"] = [bytes(15) + b"\x01"] * len(fields["replicas"])
    await decide(harness, PartitionChangeRecord(partition_id=0, topic_id=topic_id, **fields))


def test_one_node_that_works_is_silent() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3)
        scraper = of_harness(harness)
        for _ in range(60):
            await produce(client, b"x" * 100)
            await asyncio.sleep(30)
            assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


def test_an_unclean_election_fires_for_an_hour() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        scraper = of_harness(harness)
        scraper.look()
        await change(harness, topic_id, replicas=[1, 2], isr=[2])
        await change(harness, topic_id, leader=1, isr=[1])
        assert scraper.look() == [], "it led before"
        await change(harness, topic_id, isr=[1, 2], leader=2)
        await change(harness, topic_id, isr=[2])
        await change(harness, topic_id, leader=1, isr=[1])
        await change(harness, topic_id, replicas=[1])
        await asyncio.sleep(15)
        assert scraper.look() == ["UncleanLeaderElection"]
        assert 3500 <= await scraper.until_silence(4000, interval_s=60) <= 3700

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_partition_without_leader_fires_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        scraper = of_harness(harness)
        await change(harness, topic_id, leader=NO_LEADER)
        assert scraper.look() == ["OfflinePartitions"]
        await change(harness, topic_id, leader=1)
        assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


def test_without_an_active_controller_nodes_are_behind_as_well() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        scraper = of_harness(harness)
        harness.node.broker.quorum._is_stopped = True
        assert 29 < await scraper.until("ActiveControllers", 60) < 46
        await scraper.until("MetadataLag", 120)
        harness.node.broker.quorum._is_stopped = False
        assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_disk_that_fills_is_warned_of_and_one_that_is_full_wakes_somebody_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        disk, scraper = harness.machine.disk, of_harness(harness)
        before = disk.faults.capacity_bytes
        disk.faults.capacity_bytes = disk.used_bytes + ROOM_BYTES + 65_536
        assert scraper.look() == []
        await asyncio.sleep(90)
        assert scraper.look() == []
        disk.faults.capacity_bytes = disk.used_bytes + ROOM_BYTES - 65_536
        assert 59 < await scraper.until("DiskFull", 120) < 76
        disk.faults.capacity_bytes = disk.used_bytes * 100 // 91
        assert 299 < await scraper.until("DiskFilling", 400) < 316
        assert await produce(client, b"x") == 0
        disk.faults.capacity_bytes = before
        await asyncio.sleep(15)
        assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


class Busy:
    """A clock on which the processor was busy for a share of the time."""

    def __init__(self, environment: Environment, share: float) -> None:
        self.monotonic = environment.clock.monotonic
        self.wall_ms = environment.clock.wall_ms
        self.wall_ns = environment.clock.wall_ns
        self._share = share

    def busy_seconds(self) -> float:
        return self.monotonic() * self._share


def test_a_busy_loop_fires_after_five_minutes() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        scraper = of_harness(harness)
        clock = harness.node.watch._clock
        harness.node.watch._clock = Busy(environment, 0.8)
        await asyncio.sleep(15)
        assert 299 < await scraper.until("EventLoopBusy", 400) < 316
        harness.node.watch._clock = clock
        await scraper.until_silence(60)

    BrokerHarness().run(scenario, limit_s=10_000)


def test_decisions_that_wait_fire_after_five_minutes() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        scraper = of_harness(harness)
        for _ in range(30):
            for histogram in harness.node.watch.lateness_ms * 10:
                histogram.record(800)
            await asyncio.sleep(15)
            firing = scraper.look()
        assert firing == ["ControllerSlow", "LoopLate"]
        await scraper.until_silence(120)

    BrokerHarness().run(scenario, limit_s=10_000)


def test_a_group_that_falls_back_fires_until_it_has_caught_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        scraper = of_harness(harness)
        await find_coordinator(client, "g")
        await commit(client, 0)
        end_offset = 0
        for minute in range(60):
            await produce(client, *[b"x"] * 500)
            end_offset += 500
            await asyncio.sleep(60)
            firing = scraper.look()
            assert minute > 30 or not firing, "it has to be so for a while"
        assert firing == ["ConsumerLagGrowing"]
        await commit(client, end_offset)
        assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


async def commit(client: Client, offset: int) -> None:
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset)])
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    while (await client.ask(request, 7)).topics[0].partitions[0].error_code:
        await asyncio.sleep(0.1)


def test_a_lost_directory_and_a_lost_node_fire() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        node: Node | None = harness.node
        scraper = Scraper(lambda: {"n1": node})
        directory = harness.node.broker.logs.directories[0]
        directory.offline_reason = "a test"
        assert scraper.look() == ["LogDirectoryOffline"]
        directory.offline_reason = None
        node = None
        assert 59 < await scraper.until("NodeDown", 120) < 76
        node = harness.node
        assert scraper.look() == []

    BrokerHarness().run(scenario, limit_s=10_000)


def test_replicas_that_are_cut_off_fire_in_the_order_of_the_danger() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        scraper = Scraper(lambda: {f"n{node_id}": node for node_id, node in cluster.nodes.items()})
        await cluster.create(min_insync_replicas="2")
        assert (await cluster.produce(environment, b"a"))[0] == 0
        assert scraper.look() == []
        cluster.world.network.partition(["n3"], ["n1", "n2"])
        assert (await cluster.produce(environment, b"b", timeout_ms=1000))[0] == RequestTimedOut.code
        await cluster.until(lambda: cluster.registration().isr == (1, 2))
        assert 299 < await scraper.until("UnderReplicated", 600) < 316
        assert 284 < await scraper.until("AtMinIsr", 600) < 316
        cluster.world.network.partition(["n1"], ["n2", "n3"])
        assert (await cluster.produce(environment, b"c", node_id=1, timeout_ms=1000))[0] == RequestTimedOut.code
        await cluster.until(lambda: cluster.registration().isr == (1,))
        assert scraper.look() == ["UnderMinIsr", "UnderReplicated"]
        cluster.world.network.heal()
        await cluster.until(lambda: len(cluster.registration().isr) == 3)
        await scraper.until_silence(60)

    in_cluster(scenario)


def in_cluster(scenario: Any) -> None:
    ThreeBrokers(replica_lag_time_max_ms="5000").run(scenario, limit_s=5000)
