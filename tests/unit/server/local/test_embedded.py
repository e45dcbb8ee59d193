from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.embedded import EMBEDDED, FAST_FAILOVER, NodePlacement, cluster_settings, embedded_settings
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.faults.rolling import create_topics, is_in_sync, wait_in_sync


def test_the_settings_make_a_configuration() -> None:
    config = NodeConfig(embedded_settings("logs", host="127.0.0.1", port=9092, metrics_port=0))
    assert config.directories == ("logs",)
    assert [str(address) for address in config.client_addresses()] == ["PLAINTEXT://127.0.0.1:9092"]
    assert config.metrics.port == 0


@pytest.mark.parametrize(("host", "shown"), [("::1", "[::1]"), ("", ""), ("localhost", "localhost")])
def test_a_host_of_any_family_can_be_listened_on(host: str, shown: str) -> None:
    settings = embedded_settings("logs", host=host, port=1, metrics_port=0)
    assert settings["listeners"] == f"PLAINTEXT://{shown}:1"


def test_nothing_asks_for_a_second_replica() -> None:
    assert {value for name, value in EMBEDDED.items() if "replication.factor" in name} == {"1"}


def places(count: int) -> list[NodePlacement]:
    return [
        NodePlacement(
            node_id=number, directory=f"/d{number}", port=number, controller_port=100 + number, metrics_port=0
        )
        for number in range(1, count + 1)
    ]


def test_nodes_of_a_cluster_name_the_same_voters_and_listen_apart() -> None:
    three = places(3)
    settings = [cluster_settings(place, three, host="127.0.0.1") for place in three]
    for each in settings:
        assert each["controller.quorum.bootstrap.servers"] == "127.0.0.1:101,127.0.0.1:102,127.0.0.1:103"
        assert "controller.quorum.voters" not in each
    assert len({each["listeners"] for each in settings}) == 3
    assert len({each["log.dirs"] for each in settings}) == 3


def test_settings_name_the_voters_where_the_log_does_not() -> None:
    old = [replace(place, voters_in_log=False) for place in places(2)]
    settings = cluster_settings(old[1], old, host="::1")
    assert settings["controller.quorum.voters"] == "1@[::1]:101,2@[::1]:102"
    assert "controller.quorum.bootstrap.servers" not in settings


def test_a_controller_may_listen_elsewhere_than_its_node() -> None:
    apart = [replace(place, controller_host="127.0.0.1") for place in places(1)]
    settings = cluster_settings(apart[0], apart, host="0.0.0.0")
    assert settings["listeners"] == "PLAINTEXT://0.0.0.0:1,CONTROLLER://127.0.0.1:101"
    assert settings["controller.quorum.bootstrap.servers"] == "127.0.0.1:101"


@pytest.mark.parametrize(
    ("count", "replicas", "in_sync_min"), [(1, "1", "1"), (2, "2", "1"), (3, "3", "2"), (5, "3", "2")]
)
def test_a_cluster_keeps_as_many_replicas_as_it_can_and_misses_one(count: int, replicas: str, in_sync_min: str) -> None:
    settings = cluster_settings(places(count)[0], places(count), host="::1")
    assert {value for name, value in settings.items() if "replication.factor" in name} == {replicas}
    assert {value for name, value in settings.items() if "min.i" in name} == {in_sync_min}
    assert settings["listeners"].startswith("PLAINTEXT://[::1]:1,")


@pytest.mark.parametrize("stagger_s", [0.0, 0.7, 3.0])
def test_nodes_with_short_timeouts_that_slept_together_settle(stagger_s: float) -> None:
    """As on a laptop: nobody is fenced for long, and nothing moves any more once all of them are awake."""
    cluster = SimCluster(1, settings=FAST_FAILOVER)

    def state() -> list[object]:
        """On each node the epoch of the quorum, and every partition with its epochs: whatever moves changes it."""
        return [(node.broker.quorum.leader, node.broker.image.topics.named("t")) for node in cluster.running()]

    async def scenario(environment: Environment) -> None:
        cluster.start_all()
        servers = ",".join(f"{host}:{port}" for host, port in cluster.addresses)
        async with Admin({"bootstrap.servers": servers}, environment=environment) as admin:
            await create_topics(admin, [NewTopic(name="t", partition_count=3, replication_factor=3)])
        for _ in range(3):
            await wait_in_sync(cluster, ["t"])
            for index, member in enumerate(cluster.members):
                cluster.machine(member).pause(60 + index * stagger_s)
            await asyncio.sleep(60 + 2 * stagger_s + 10)
            assert is_in_sync(cluster, ["t"])
            awake = state()
            assert len(awake) == 3
            await asyncio.sleep(60)
            assert state() == awake

    with cluster.world as world:
        world.run(scenario, limit_s=600)
