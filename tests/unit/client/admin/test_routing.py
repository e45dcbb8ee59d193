"""Each request reaches the broker that can answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millbeck.client.admin import AdminConfig
from millbeck.client.admin.routing import (
    call_all_brokers,
    call_controller,
    call_coordinators,
    call_leaders,
    refresh_controller,
)
from millbeck.client.cluster import Cluster
from millbeck.client.errors import Disconnected
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, NotController, NotCoordinator, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.groups import FindCoordinatorRequest
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.client.fake_cluster import FakeCluster, simulate

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))
GHOST = TopicPartition("ghost", 0)


def open_cluster(fake: FakeCluster) -> Cluster:
    return Cluster(fake.environment, AdminConfig.parse({"bootstrap.servers": fake.bootstrap}))


def test_leaders_are_asked_for_their_own_partitions() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 3)
        cluster = open_cluster(fake)

        async def ask(node_id: int, led: list[TopicPartition]) -> Mapping[TopicPartition, Any]:
            if node_id == 2:
                raise Disconnected("gone")
            return dict.fromkeys(led, node_id)

        found = await call_leaders(cluster, [A0, A1, A2, GHOST], ask, Deadline(30))
        assert (found[A0], found[A2]) == (1, 1)
        assert isinstance(found[A1], Disconnected)
        assert isinstance(found[GHOST], UnknownTopicOrPartition)
        await cluster.close()

    simulate(scenario, brokers=2)


def test_coordinators_are_asked_and_forgotten_when_they_are_none() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.coordinator_id = 2
        cluster = open_cluster(fake)

        async def ask(node_id: int, group: str) -> str:
            if group == "moved":
                raise NotCoordinator
            return f"{group} at {node_id}"

        found = await call_coordinators(cluster, ["g", "moved"], ask, Deadline(30))
        assert found["g"] == "g at 2"
        assert isinstance(found["moved"], NotCoordinator)
        before = len(fake.asked(FindCoordinatorRequest))
        await call_coordinators(cluster, ["g", "moved"], ask, Deadline(30))
        assert len(fake.asked(FindCoordinatorRequest)) == before + 1
        await cluster.close()

    simulate(scenario, brokers=2)


def test_all_brokers_are_asked_and_one_that_fails_hides_no_other() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)

        async def ask(node_id: int) -> int:
            if node_id == 2:
                raise Disconnected("gone")
            return node_id * 10

        found: dict[int, int | ApiError] = await call_all_brokers(cluster, ask, Deadline(30))
        assert (found[1], found[3]) == (10, 30)
        assert isinstance(found[2], Disconnected)
        assert list(await call_all_brokers(cluster, ask, Deadline(30), [3])) == [3]
        await cluster.close()

    simulate(scenario, brokers=3)


def test_any_broker_passes_a_request_on_to_the_controller() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = open_cluster(fake)
        answer = await call_controller(cluster, MetadataRequest(topics=[]), MetadataResponse, Deadline(30))
        assert answer.cluster_id == "fake"
        before = len(fake.asked(MetadataRequest))
        await refresh_controller(cluster, {"a": 1}, Deadline(30))
        assert len(fake.asked(MetadataRequest)) == before
        await refresh_controller(cluster, {"a": NotController()}, Deadline(30))
        assert len(fake.asked(MetadataRequest)) == before + 1
        await cluster.close()

    simulate(scenario)
