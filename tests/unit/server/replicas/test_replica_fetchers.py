"""Fetchers over a network: a whole node leads, and a follower in the test's own process copies it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from millbeck.client.addresses import Address
from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.ids import TopicPartition
from millbeck.replication.fetcher import FetchLimits
from millbeck.replication.isr import ReplicaContext
from millbeck.replication.partition import Partition
from millbeck.server.loop.deadlines import Deadlines
from millbeck.server.replicas.replica_fetchers import ReplicaFetchers
from millbeck.storage.config import LogConfig
from millbeck.storage.directory import LogDirectory
from millbeck.storage.file_cache import FileCache
from millbeck.storage.index_cache import IndexCache
from tests.log_steps import truncate_to
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, partition_of, produce


class Follower:
    """Broker 2, as far as fetching goes."""

    def __init__(self, environment: Environment, **config: Any) -> None:
        loop = asyncio.get_running_loop()
        files = environment.files
        self.errors: list[Exception] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.cuts: list[tuple[int, bool]] = []
        self.config = LogConfig.of(**config)
        self.turn = EventBatch(loop.call_soon, self.errors.append)
        self.deadlines = Deadlines(loop, self.errors.append)
        self.context = ReplicaContext(2, self.deadlines.now_ms, lambda broker, epoch: True, 30_000)
        self.address: Address | None = Address("n1", 9092)
        self.directory = LogDirectory(
            files,
            "/follower",
            cache=FileCache(files, 100),
            index_cache=IndexCache(),
            jitter_below=lambda _: 0,
            on_failure=lambda reason: None,
        )
        self.fetchers = ReplicaFetchers(
            cast(Any, self._context(environment)),
            self,
            self,
            limits=partial(FetchLimits, backoff_ms=100),
            fetcher_count=lambda: 1,
            request_timeout_ms=lambda: 5000,
        )
        self.fetchers.start()

    def _context(self, environment: Environment) -> SimpleNamespace:
        return SimpleNamespace(
            environment=environment,
            deadlines=self.deadlines,
            node_id=2,
            spawn=lambda work: self.tasks.append(asyncio.ensure_future(work)),
            report=self.errors.append,
        )

    def partition(self, topic_id: bytes, index: int = 0, epoch: int = 1) -> Partition:
        name = TopicPartition("t", index)
        made = Partition(
            self.directory.create_log(name, topic_id, self.config, now_ms=0),
            self.turn,
            written=lambda partition, now_ms: None,
            context=self.context,
        )
        made.follow(1, epoch, 1)
        return made

    # ReplicaLogs

    async def truncate(
        self, partition: Partition, offset: int, *, starts_over: bool, is_wanted: Callable[[], bool]
    ) -> None:
        assert is_wanted()
        self.cuts.append((offset, starts_over))
        if starts_over:
            partition.log.truncate_fully_and_start_at(offset)
        else:
            truncate_to(partition.log, offset)
        partition.was_truncated()

    async def flush(self, partition: Partition) -> None:
        await asyncio.sleep(0.05)
        partition.log.flush()
        partition.flushed()

    # Neighbourhood

    def address_of(self, broker_id: int) -> Address | None:
        return self.address

    def connection_settings(self) -> ConnectionSettings:
        return ConnectionSettings(client_id="broker-2", connect_timeout_s=1.0)

    def broker_epoch(self) -> int:
        return -1

    def is_throttled(self, partition: Partition) -> bool:
        return False

    def copied(self, partition: Partition, size_bytes: int) -> None: ...


async def lead(harness: BrokerHarness, client: Client, isr: tuple[int, ...] = (1, 2), **configs: Any) -> bytes:
    topic_id = await create(client, **configs)
    partition_of(harness).lead(1, 1, (1, 2), isr)
    return topic_id


async def until(condition: Callable[[], bool], limit_s: float = 30) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.01)


def run_scenario(scenario: Any, **settings: Any) -> Any:
    return BrokerHarness(**settings).run(scenario)


def test_a_log_that_is_offline_is_not_followed_and_claims_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client, min_insync_replicas="1")
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        mine.log.mark_offline("a test")
        follower.fetchers.follow(mine)
        assert (follower.fetchers.followed, dict(follower.fetchers.lines)) == ([], {})
        assert follower.errors == []

    run_scenario(scenario)


def test_metadata_that_arrives_after_the_end_starts_no_fetcher() -> None:
    """The node shuts down: its logs may be closed already, and marked so."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        await produce(client, b"a", acks=1)
        follower.fetchers.close()
        follower.fetchers.follow(mine)
        await asyncio.sleep(3)
        assert (follower.fetchers.followed, dict(follower.fetchers.lines)) == ([], {})
        assert mine.log.end_offset == 0

    run_scenario(scenario)


def test_a_follower_copies_its_leader_and_lets_acks_all_go() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client, min_insync_replicas="2")
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        started = asyncio.get_running_loop().time()
        for number in range(20):
            assert await produce(client, b"%d" % number, acks=-1) == number
        assert asyncio.get_running_loop().time() - started < 1, "no fetch waits for its time while there is data"
        await until(lambda: mine.high_watermark == 20)
        leader = partition_of(harness)
        assert (mine.log.end_offset, leader.high_watermark) == (20, 20)
        assert follower.fetchers.bytes_in > 0
        assert follower.errors == []
        follower.fetchers.close()

    run_scenario(scenario)


def test_a_fetcher_comes_back_after_its_leader_was_gone() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment)
        follower.address = None
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        await produce(client, b"x")
        await asyncio.sleep(1)
        assert mine.log.end_offset == 0
        follower.address = Address("n1", 1)
        await asyncio.sleep(1)
        follower.address = Address("n1", 9092)
        await until(lambda: mine.log.end_offset == 1)
        assert harness.node is not None
        for listener in harness.node.listeners:
            for connection in list(listener.connections.values()):
                connection.close("a test")
        client = await harness.connect(environment)
        await produce(client, b"y")
        await until(lambda: mine.log.end_offset == 2)
        assert follower.errors == []
        follower.fetchers.close()

    run_scenario(scenario)


def test_a_follower_with_another_history_is_cut_and_goes_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        await produce(client, b"theirs")
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        mine.follow(1, 3, 3)
        leader = partition_of(harness)
        leader.lead(3, 3, (1, 2), (1, 2))
        await produce(client, b"new")
        piece = leader.log.read(0, size_bytes_max=1, upto_offset=leader.log.end_offset)
        assert piece is not None
        data = bytearray(piece.file.read(piece.size, piece.position))
        data[12:16] = (2).to_bytes(4, "big")
        piece.release()
        mine.append_as_follower(bytes(data), 0)
        follower.fetchers.follow(mine)
        await until(lambda: mine.log.end_offset == 2 and mine.log.epochs.latest_epoch == 3)
        assert follower.cuts == [(0, False)]
        assert mine.log.epochs.entries() == leader.log.epochs.entries()
        follower.fetchers.close()

    run_scenario(scenario)


def test_a_follower_behind_the_leaders_start_begins_there() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client, isr=(1,))
        for number in range(5):
            await produce(client, b"%d" % number)
        partition_of(harness).log.delete_records(3)
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        await until(lambda: mine.log.end_offset == 5)
        assert follower.cuts == [(3, True)]
        assert mine.log.log_start_offset == 3
        follower.fetchers.close()

    run_scenario(scenario)


def test_with_flush_messages_of_one_progress_waits_for_the_disk() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment, flush_messages="1")
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        await produce(client, b"x")
        await until(lambda: mine.log.end_offset == 1)
        leader = partition_of(harness)
        assert (mine.log.flushed_offset, leader.high_watermark) == (0, 0)
        await until(lambda: leader.high_watermark == 1)
        assert mine.log.flushed_offset == 1
        follower.fetchers.close()

    run_scenario(scenario)


def test_who_stops_following_is_fetched_no_more_and_idle_connections_end() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        assert follower.fetchers.followed == [mine]
        await produce(client, b"x")
        await until(lambda: mine.log.end_offset == 1)
        follower.fetchers.stop(mine)
        assert follower.fetchers.followed == []
        await produce(client, b"y")
        await asyncio.sleep(2)
        assert mine.log.end_offset == 1
        assert harness.node is not None
        follower.fetchers.close_idle()
        await asyncio.sleep(1)
        assert sum(len(listener.connections) for listener in harness.node.listeners) == 1
        mine.follow(-1, 5, 5)
        follower.fetchers.follow(mine)
        assert follower.fetchers.followed == []

    run_scenario(scenario)


def test_an_idle_follower_asks_twice_a_second() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment)
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        await asyncio.sleep(1)
        assert harness.node is not None
        (session,) = harness.node.broker.fetch_sessions._sessions.values()
        before = session.epoch
        await asyncio.sleep(10)
        assert 18 <= session.epoch - before <= 21
        leader = partition_of(harness)
        assert leader.replicas is not None
        assert leader.replicas.followers[2].session is session
        follower.fetchers.close()

    run_scenario(scenario)


def test_nothing_is_fetched_before_the_node_is_registered() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await lead(harness, client)
        follower = Follower(environment)
        follower.fetchers.is_started = False
        mine = follower.partition(topic_id)
        follower.fetchers.follow(mine)
        await produce(client, b"a", acks=1)
        await asyncio.sleep(3)
        assert mine.log.end_offset == 0
        follower.fetchers.start()
        await until(lambda: mine.log.end_offset == 1)

    run_scenario(scenario)
