"""Beginning again with bootstrap.servers, and the timeout of connecting that grows with each failure in a row."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.cluster import FETCH, GENERAL, Cluster
from millbeck.client.errors import ConnectFailed, NoBrokerReachable
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import RebootstrapRequired
from millbeck.wire.messages.metadata import ApiVersionsRequest, MetadataRequest, MetadataResponse
from tests.unit.client.fake_cluster import SILENCE, USUAL, Call, FakeCluster, simulate
from tests.unit.client.test_cluster import open_cluster


def bootstrap_of(fake: FakeCluster, node_id: int) -> str:
    return f"127.0.0.1:{fake.brokers[node_id].port}"


async def know_only(cluster: Cluster, fake: FakeCluster, *node_ids: int) -> None:
    """The client knows these brokers alone and is connected to them, as after the others have left the cluster."""
    cluster.metadata.brokers = {
        node_id: broker for node_id, broker in cluster.metadata.brokers.items() if node_id in node_ids
    }
    for connection in list(cluster._connections.values()):
        connection.close()
    for node_id in node_ids:
        await cluster.connection(node_id, deadline=Deadline(30))


@pytest.mark.parametrize("strategy", ["rebootstrap", "none"])
def test_only_with_rebootstrap_are_bootstrap_servers_asked_when_no_known_broker_is_there(strategy: str) -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, bootstrap_of(fake, 1), metadata_recovery_strategy=strategy)
        await cluster.refresh(Deadline(30))
        await know_only(cluster, fake, 2)
        fake.brokers[2].stop()
        await asyncio.sleep(1)
        if strategy == "rebootstrap":
            await cluster.refresh(Deadline(30))
            assert {call.node_id for call in fake.asked(MetadataRequest)} == {1}
        else:
            with pytest.raises(NoBrokerReachable) as raised:
                await cluster.refresh(Deadline(30))
            assert bootstrap_of(fake, 1) not in str(raised.value)
            assert bootstrap_of(fake, 2) in str(raised.value)
        await cluster.close()

    simulate(scenario, brokers=2)


def test_without_any_known_broker_the_bootstrap_servers_are_asked_with_either_strategy() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, metadata_recovery_strategy="none")
        await cluster.refresh(Deadline(30))
        assert sorted(cluster.metadata.brokers) == [1]
        await cluster.close()

    simulate(scenario)


def test_a_cluster_that_asks_for_it_is_left_for_the_bootstrap_servers() -> None:
    """KIP-1102: also connections to the other brokers end, which would be asked first because they are open."""

    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 3)
        cluster = open_cluster(fake, bootstrap_of(fake, 1))
        await cluster.refresh(Deadline(30))
        await know_only(cluster, fake, 2, 3)
        fetching = await cluster.connection(3, FETCH, deadline=Deadline(30))
        fake.on(
            MetadataRequest,
            lambda call: USUAL if call.node_id == 1 else MetadataResponse(error_code=RebootstrapRequired.code),
        )
        fake.calls.clear()
        found = await cluster.topic("a", timeout_s=30)
        assert found.partition_count == 3
        assert [call.node_id for call in fake.asked(MetadataRequest)][1:] == [1]
        assert not fetching.is_open
        await cluster.close()

    simulate(scenario, brokers=3)


def test_with_strategy_none_a_cluster_that_asks_for_it_is_an_error() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, metadata_recovery_strategy="none")
        await cluster.refresh(Deadline(30))
        fake.on(MetadataRequest, lambda call: MetadataResponse(error_code=RebootstrapRequired.code))
        with pytest.raises(RebootstrapRequired):
            await cluster.topic("a", timeout_s=30)
        assert cluster.metadata.brokers
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize(("strategy", "finds_the_way"), [("rebootstrap", True), ("none", False)])
def test_brokers_that_take_requests_and_tell_nothing_are_given_up_after_the_trigger_s_time(
    strategy: str, finds_the_way: bool
) -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(
            fake,
            bootstrap_of(fake, 1),
            metadata_recovery_strategy=strategy,
            metadata_recovery_rebootstrap_trigger_ms=60_000,
            request_timeout_ms=5000,
        )
        await cluster.refresh(Deadline(30))
        await know_only(cluster, fake, 2)
        fake.on(MetadataRequest, lambda call: USUAL if call.node_id == 1 else SILENCE)
        fake.calls.clear()
        cluster.start_upkeep()
        cluster.request_refresh()
        await asyncio.sleep(55)
        asked = [call.node_id for call in fake.asked(MetadataRequest)]
        assert len(asked) > 5
        assert set(asked) == {2}
        assert list(cluster.metadata.brokers) == [2]
        await asyncio.sleep(20)
        assert sorted(cluster.metadata.brokers) == ([1, 2] if finds_the_way else [2])
        await cluster.close()

    simulate(scenario, brokers=2)


def test_metadata_that_arrives_starts_the_trigger_s_time_anew() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(
            fake,
            bootstrap_of(fake, 1),
            metadata_recovery_rebootstrap_trigger_ms=60_000,
            request_timeout_ms=5000,
            metadata_max_age_ms=10_000,
        )
        await cluster.refresh(Deadline(30))
        await know_only(cluster, fake, 2)
        asked = 0

        def answer(call: Call) -> Any:
            nonlocal asked
            asked += 1
            if asked % 6 == 0:
                whole = fake.metadata(call)
                whole.brokers = [broker for broker in whole.brokers if broker.node_id == 2]
                return whole
            return SILENCE

        fake.on(MetadataRequest, answer)
        fake.calls.clear()
        cluster.start_upkeep()
        await asyncio.sleep(300)
        assert asked > 12
        assert {call.node_id for call in fake.asked(MetadataRequest)} == {2}
        await cluster.close()

    simulate(scenario, brokers=2)


async def time_to_fail(cluster: Cluster) -> float:
    """How long one attempt to connect lasts, without the reconnect backoff before it."""
    loop = asyncio.get_running_loop()
    outage = cluster._outages._by_address.get(cluster._bootstrap[0])
    begins_s = max(loop.time(), 0.0 if outage is None else outage.retry_at_s)
    with pytest.raises(ConnectFailed, match="within"):
        await cluster._connect((cluster._bootstrap[0], GENERAL), Deadline(1000))
    return round(loop.time() - begins_s, 3)


@pytest.mark.parametrize(
    ("first_ms", "longest_ms", "expected"),
    [
        (10_000, 30_000, [10, 20, 30, 30]),
        (1000, 30_000, [1, 2, 4, 8, 16, 30, 30]),
        (5000, 5000, [5, 5, 5]),
        (5000, 2000, [5, 5]),
    ],
    ids=["the defaults", "many doublings", "constant", "a longest below the first"],
)
def test_the_timeout_of_connecting_doubles_with_each_failure_up_to_the_longest(
    first_ms: int, longest_ms: int, expected: list[float]
) -> None:
    async def scenario(fake: FakeCluster) -> list[float]:
        fake.on(ApiVersionsRequest, lambda call: SILENCE)
        cluster = open_cluster(
            fake,
            socket_connection_setup_timeout_ms=first_ms,
            socket_connection_setup_timeout_max_ms=longest_ms,
        )
        found = [await time_to_fail(cluster) for _ in expected]
        await cluster.close()
        return found

    assert simulate(scenario) == expected


def test_the_timeout_of_connecting_is_short_again_after_a_success() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake, socket_connection_setup_timeout_ms=1000)
        fake.on(ApiVersionsRequest, lambda call: SILENCE)
        assert [await time_to_fail(cluster) for _ in range(3)] == [1, 2, 4]
        fake.on(ApiVersionsRequest, None)
        connection = await cluster._connect((cluster._bootstrap[0], GENERAL), Deadline(30))
        connection.close()
        fake.on(ApiVersionsRequest, lambda call: SILENCE)
        assert await time_to_fail(cluster) == 1
        await cluster.close()

    simulate(scenario)
