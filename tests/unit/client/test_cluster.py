"""Finding brokers, keeping connections, keeping metadata fresh."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.cluster import COORDINATOR, FETCH, GENERAL, Cluster
from millbeck.client.errors import ClientClosed, NoBrokerReachable, RequestTimeout, UnsupportedByBroker
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    CoordinatorNotAvailable,
    InvalidTopic,
    LeaderNotAvailable,
    UnknownTopicOrPartition,
)
from millbeck.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse
from millbeck.wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic
from tests.unit.client.fake_cluster import CLOSE, SILENCE, FakeCluster, later, simulate


def open_cluster(fake: FakeCluster, bootstrap: str | None = None, **settings: Any) -> Cluster:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return Cluster(fake.environment, AdminConfig.parse({"bootstrap.servers": bootstrap or fake.bootstrap} | texts))


def test_the_first_broker_that_answers_names_all_others() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 3)
        cluster = open_cluster(fake, f"127.0.0.1:1,127.0.0.1:2,{fake.bootstrap.split(',')[1]}")
        cluster.add_topics(["a"])
        await cluster.refresh(Deadline(30))
        assert sorted(cluster.metadata.brokers) == [1, 2, 3]
        assert cluster.metadata.topics["a"].partition_count == 3
        await cluster.close()

    simulate(scenario, brokers=3)


def test_nobody_reachable_is_an_error_that_names_everybody_tried() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, "127.0.0.1:1,127.0.0.1:2")
        with pytest.raises(NoBrokerReachable, match=r"127\.0\.0\.1:1") as raised:
            await cluster.refresh(Deadline(30))
        assert "127.0.0.1:2" in str(raised.value)
        await cluster.close()

    simulate(scenario)


def test_the_bootstrap_list_is_asked_again_when_no_known_broker_is_left() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        (broker,) = fake.brokers.values()
        cluster.metadata.brokers.clear()
        cluster.metadata.learn_broker(1, "127.0.0.1", 1)
        broker.drop_connections()
        await asyncio.sleep(1)
        await cluster.refresh(Deadline(30))
        assert cluster.metadata.brokers[1].address.port == broker.port
        await cluster.close()

    simulate(scenario)


def test_connections_are_kept_by_purpose_and_opened_once() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        found = await asyncio.gather(
            *(cluster.connection(1, purpose, deadline=Deadline(30)) for purpose in (FETCH, FETCH, COORDINATOR, GENERAL))
        )
        assert found[0] is found[1]
        assert len({id(connection) for connection in found}) == 3
        assert fake.connection_count == 3
        await cluster.close()

    simulate(scenario)


def test_a_lost_connection_is_opened_again() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        before = await cluster.connection(1, deadline=Deadline(30))
        fake.brokers[1].drop_connections()
        await asyncio.sleep(1)
        assert not before.is_open
        assert (await cluster.connection(1, deadline=Deadline(30))) is not before
        await cluster.close()

    simulate(scenario)


def test_a_broker_that_cannot_be_reached_is_tried_less_and_less_often() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        fake.brokers[1].stop()
        await asyncio.sleep(1)
        loop = asyncio.get_running_loop()
        times: list[float] = []
        cluster.on_connected.append(lambda: times.append(loop.time()))
        for _ in range(7):
            with pytest.raises(Exception, match="no connection"):
                await cluster.connection(1, deadline=Deadline(30))
        gaps = [after - before for before, after in pairwise(times)]
        assert gaps[0] < 0.1
        assert all(0.7 < gap < 1.3 for gap in gaps[-1:])
        await cluster.close()

    simulate(scenario)


def test_an_unknown_broker_is_a_passing_error() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        with pytest.raises(LeaderNotAvailable, match="broker 9"):
            await cluster.connection(9, deadline=Deadline(30))
        assert cluster.connection_nowait(9) is None
        await cluster.close()

    simulate(scenario)


def test_connection_nowait_begins_to_open() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        assert cluster.connection_nowait(1, FETCH) is None
        opened = asyncio.Event()
        cluster.on_connected.append(opened.set)
        await opened.wait()
        found = cluster.connection_nowait(1, FETCH)
        assert found is not None
        assert found.is_open
        await cluster.close()

    simulate(scenario)


def test_whoever_needs_metadata_at_the_same_time_asks_once() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await asyncio.gather(*(cluster.refresh(Deadline(30)) for _ in range(5)))
        assert len(fake.asked(MetadataRequest)) == 1
        await cluster.close()

    simulate(scenario)


def test_a_topic_is_waited_for_until_it_is_there() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        loop = asyncio.get_running_loop()
        loop.call_later(2, lambda: fake.add_topic("late") and None)
        found = await cluster.topic("late", timeout_s=30)
        assert found.partition_count == 1
        assert 2 <= loop.time() <= 5
        await cluster.close()

    simulate(scenario)


def test_a_topic_that_never_comes_is_named() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        with pytest.raises(UnknownTopicOrPartition, match="there is no topic ghost"):
            await cluster.topic("ghost", timeout_s=3)
        fake.on(
            MetadataRequest,
            lambda call: MetadataResponse(topics=[MetadataResponseTopic(name="a b", error_code=InvalidTopic.code)]),
        )
        with pytest.raises(InvalidTopic, match="'a b'"):
            await cluster.topic("a b", timeout_s=3)
        await cluster.close()

    simulate(scenario)


def test_upkeep_asks_again_at_the_given_age_and_on_request() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, metadata_max_age_ms=10_000)
        await cluster.refresh(Deadline(30))
        cluster.start_upkeep()
        await asyncio.sleep(9)
        assert len(fake.asked(MetadataRequest)) == 1
        await asyncio.sleep(2)
        assert len(fake.asked(MetadataRequest)) == 2
        for _ in range(50):
            cluster.request_refresh()
            await asyncio.sleep(0.01)
        assert 3 <= len(fake.asked(MetadataRequest)) <= 9
        await cluster.close()

    simulate(scenario)


def test_whoever_misses_something_for_long_asks_less_often() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        cluster.on_update.append(cluster.request_refresh)
        cluster.start_upkeep()
        cluster.request_refresh()
        await asyncio.sleep(2)
        assert 4 <= len(fake.asked(MetadataRequest)) <= 8
        before = len(fake.asked(MetadataRequest))
        await asyncio.sleep(30)
        assert len(fake.asked(MetadataRequest)) - before <= 40
        await cluster.close()

    simulate(scenario)


def test_upkeep_survives_failures() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, metadata_max_age_ms=1000)
        fake.next(MetadataRequest, CLOSE, CLOSE, CLOSE)
        cluster.start_upkeep()
        await asyncio.sleep(10)
        assert cluster.metadata.brokers
        await cluster.close()

    simulate(scenario)


def test_idle_connections_are_closed() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, connections_max_idle_ms=5000)
        await cluster.refresh(Deadline(30))
        busy = await cluster.connection(1, FETCH, deadline=Deadline(30))
        fake.on(HeartbeatRequest, later(20, HeartbeatResponse()))
        waiting = asyncio.ensure_future(busy.request(HeartbeatRequest(), HeartbeatResponse, timeout_s=60))
        await asyncio.sleep(6)
        cluster.close_idle_connections()
        await asyncio.sleep(1)
        assert busy.is_open
        assert fake.connection_count == 1
        await waiting
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize("highest", [0, 3, 6])
def test_a_coordinator_is_found_in_every_version_and_remembered(highest: int) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.limit(FindCoordinatorRequest, 0, highest)
        fake.coordinator_id = 2
        cluster = open_cluster(fake)
        for _ in range(2):
            assert await cluster.coordinator("g", deadline=Deadline(30)) == 2
        assert len(fake.asked(FindCoordinatorRequest)) == 1
        cluster.forget_coordinator("g")
        assert await cluster.coordinator("g", deadline=Deadline(30)) == 2
        assert len(fake.asked(FindCoordinatorRequest)) == 2
        if highest == 0:
            with pytest.raises(UnsupportedByBroker):
                await cluster.coordinator("t", deadline=Deadline(30), key_type=1)
        await cluster.close()

    simulate(scenario, brokers=2)


def test_a_coordinator_that_is_not_there_yet_is_a_passing_error() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        fake.next(FindCoordinatorRequest, FindCoordinatorResponse())
        with pytest.raises(CoordinatorNotAvailable):
            await cluster.coordinator("g", deadline=Deadline(30))
        await cluster.close()

    simulate(scenario)


def test_a_closed_cluster_opens_nothing() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        await cluster.refresh(Deadline(30))
        await cluster.close()
        with pytest.raises(ClientClosed):
            await cluster.refresh(Deadline(30))
        with pytest.raises(ClientClosed):
            await cluster.connection(1, FETCH, deadline=Deadline(30))
        await asyncio.sleep(1)
        assert fake.connection_count == 0

    simulate(scenario)


def test_closing_ends_whoever_waits() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.on(MetadataRequest, lambda call: SILENCE)
        cluster = open_cluster(fake)
        waiting = asyncio.ensure_future(cluster.refresh(Deadline(600)))
        await asyncio.sleep(1)
        await cluster.close()
        with pytest.raises(ClientClosed):
            await waiting

    simulate(scenario)


def test_a_refresh_that_takes_too_long_is_a_timeout() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.on(MetadataRequest, lambda call: SILENCE)
        cluster = open_cluster(fake)
        with pytest.raises(RequestTimeout):
            await cluster.refresh(Deadline(2))
        await cluster.close()

    simulate(scenario)


def test_a_broker_that_is_away_is_known_since_when_and_why_until_it_is_back() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        cluster.start_upkeep()
        await cluster.refresh(Deadline(30))
        assert cluster.outage() is None
        (broker,) = fake.brokers.values()
        broker.stop()
        began_s = asyncio.get_running_loop().time()
        cluster.request_refresh()
        await asyncio.sleep(10)
        outage = cluster.outage()
        assert outage is not None
        assert began_s <= outage.since_s < began_s + 2
        assert str(outage.address) == fake.bootstrap
        assert f"no connection to {fake.bootstrap}: connection refused" in outage.reason
        await broker.start()
        await asyncio.sleep(10)
        assert cluster.outage() is None
        await cluster.close()

    simulate(scenario)


def test_a_broker_that_does_not_answer_is_an_outage_too_unless_it_coordinates() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.on(MetadataRequest, lambda call: SILENCE)
        cluster = open_cluster(fake)
        connection = await cluster.any_connection(Deadline(30))
        assert cluster.outage() is None
        asked_s = asyncio.get_running_loop().time()
        waiting = asyncio.ensure_future(connection.request(MetadataRequest(), MetadataResponse, timeout_s=20))
        await asyncio.sleep(5)
        outage = cluster.outage()
        assert outage is not None
        assert (outage.since_s, outage.reason) == (asked_s, "no answer to Metadata")
        cluster._connections = {(address, COORDINATOR): each for (address, _), each in cluster._connections.items()}
        assert cluster.outage() is None, "a group's phase may take as long as it takes"
        await cluster.close()
        with pytest.raises(Exception, match="closed"):
            await waiting

    simulate(scenario)
