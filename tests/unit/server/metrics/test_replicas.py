"""A broker's replicas: each metric is driven over its threshold and back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import RequestTimedOut
from millbeck.metadata.records import NO_LEADER, ConfigRecord
from millbeck.replication.fetcher import FetcherState as FetchState
from millbeck.server.broker_lifecycle import BrokerLifecycleState
from millbeck.server.metrics.replicas import BROKER_STATES
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, partition_of, run_scenario
from tests.unit.server.harness.scraping import samples
from tests.unit.server.harness.three_brokers import ThreeBrokers

MANAGER = "kafka_server_replicamanager_"
FETCHERS = "kafka_server_replicafetchermanager_"
PARTITION = '{topic="t",partition="0"}'


def in_cluster(scenario: Any, **settings: Any) -> Any:
    return ThreeBrokers(**settings).run(scenario)


def of(cluster: ThreeBrokers, node_id: int, *names: str) -> tuple[float, ...]:
    found = samples(cluster.nodes[node_id])
    return tuple(found[name] for name in names)


def manager(cluster: ThreeBrokers, node_id: int, *names: str) -> tuple[float, ...]:
    return of(cluster, node_id, *(MANAGER + name for name in names))


def fetchers(cluster: ThreeBrokers, node_id: int, name: str) -> float:
    return of(cluster, node_id, f'{FETCHERS}{name}{{clientId="Replica"}}')[0]


def test_one_node_has_nothing_to_replicate() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=3, min_insync_replicas="2")
        found = samples(harness.node)
        for name, value in {
            "partitioncount": 3,
            "leadercount": 3,
            "underreplicatedpartitions": 0,
            "underminisrpartitioncount": 0,
            "atminisrpartitioncount": 3,
            "offlinereplicacount": 0,
            "reassigningpartitions": 0,
            "isrshrinks_total": 0,
            "isrexpands_total": 0,
            "failedisrupdates_total": 0,
        }.items():
            assert found[MANAGER + name] == value, name
        for name in ("maxlag", "minfetchrate", "failedpartitionscount", "deadthreadcount"):
            assert found[f'{FETCHERS}{name}{{clientId="Replica"}}'] == 0
        assert found["kafka_server_kafkaserver_brokerstate"] == 3
        assert found["kafka_server_brokertopicmetrics_replicationbytesin_total"] == 0
        partition_of(harness).log.mark_offline("a test")
        assert samples(harness.node)[MANAGER + "offlinereplicacount"] == 1

    run_scenario(scenario)


def test_a_partition_is_told_of_by_its_leader_alone() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create()
        assert manager(cluster, 1, "partitioncount", "leadercount") == (1, 1)
        assert manager(cluster, 2, "partitioncount", "leadercount") == (1, 0)
        assert (await cluster.produce(environment, b"a"))[0] == 0
        for name, value in {
            "kafka_topic_partition_replicas": 3,
            "kafka_topic_partition_in_sync_replica": 3,
            "kafka_topic_partition_current_offset": 1,
            "kafka_topic_partition_oldest_offset": 0,
            "kafka_topic_partition_leader_is_preferred": 1,
            "kafka_cluster_partition_replicascount": 3,
            "kafka_cluster_partition_insyncreplicascount": 3,
            "kafka_cluster_partition_underreplicated": 0,
            "kafka_cluster_partition_underminisr": 0,
            "kafka_cluster_partition_atminisr": 0,
        }.items():
            assert of(cluster, 1, name + PARTITION) == (value,), name
            assert name + PARTITION not in samples(cluster.nodes[2]), name
        await cluster.elect(2, (1, 2, 3))
        assert of(cluster, 2, "kafka_topic_partition_leader_is_preferred" + PARTITION) == (0,)
        assert "kafka_topic_partition_replicas" + PARTITION not in samples(cluster.nodes[1])

    in_cluster(scenario)


def test_replicas_that_fall_out_of_sync_show_and_those_that_return_show_no_more() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        health = ("underreplicatedpartitions", "underminisrpartitioncount", "atminisrpartitioncount")
        changes = ("isrshrinks_total", "isrexpands_total")
        await cluster.create(min_insync_replicas="2")
        assert (await cluster.produce(environment, b"a"))[0] == 0
        assert manager(cluster, 1, *health) == (0, 0, 0)
        cluster.world.network.partition(["n3"], ["n1", "n2"])
        assert (await cluster.produce(environment, b"b", timeout_ms=1000))[0] == RequestTimedOut.code
        await cluster.until(lambda: cluster.registration().isr == (1, 2))
        assert manager(cluster, 1, *health) == (1, 0, 1)
        assert of(cluster, 1, "kafka_cluster_partition_underreplicated" + PARTITION) == (1,)
        await cluster.until(lambda: manager(cluster, 1, *changes) == (1, 0))
        assert manager(cluster, 2, *health) == (0, 0, 0), "only its leader counts it"
        cluster.world.network.heal()
        cluster.world.network.partition(["n1"], ["n2", "n3"])
        assert (await cluster.produce(environment, b"c", node_id=1, timeout_ms=1000))[0] == RequestTimedOut.code
        await cluster.until(lambda: cluster.registration().isr == (1,))
        assert manager(cluster, 1, *health) == (1, 1, 0)
        assert of(cluster, 1, "kafka_cluster_partition_underminisr" + PARTITION) == (1,)
        cluster.world.network.heal()
        await cluster.until(lambda: len(cluster.registration().isr) == 3)
        assert manager(cluster, 1, *health) == (0, 0, 0)
        await cluster.until(lambda: manager(cluster, 1, *changes) == (2, 2))

    in_cluster(scenario, replica_lag_time_max_ms="5000")


def test_a_setting_that_asks_for_more_replicas_counts_at_once() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1, 2))
        assert manager(cluster, 1, "atminisrpartitioncount") == (0,)
        setting = ConfigRecord(resource_type=2, resource_name="t", name="min.insync.replicas", value="3")
        await cluster.decide(setting)
        assert manager(cluster, 1, "atminisrpartitioncount", "underminisrpartitioncount") == (1, 0)

    in_cluster(scenario)


def test_a_move_is_no_lack_of_replicas() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        names = ("reassigningpartitions", "underreplicatedpartitions")
        await cluster.create(replicas=(1, 2))
        cluster.is_reachable = False
        await cluster.change(replicas=[1, 2, 3], adding_replicas=[3])
        assert manager(cluster, 1, *names) == (1, 0)
        await cluster.change(adding_replicas=[])
        assert manager(cluster, 1, *names) == (0, 1)
        cluster.is_reachable = True
        await cluster.until(lambda: len(cluster.registration().isr) == 3)
        assert manager(cluster, 1, *names) == (0, 0)

    in_cluster(scenario)


def test_what_the_controller_refuses_is_counted() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1, 2))
        proposal = cluster.registration()
        cluster.nodes[1].broker.replication.isr_changes._send = _refusing(cluster)
        await cluster.change(replicas=[1, 2, 3])
        await cluster.until(lambda: manager(cluster, 1, "failedisrupdates_total")[0] > 0)
        assert proposal.isr == cluster.registration().isr

    in_cluster(scenario)


def _refusing(cluster: ThreeBrokers) -> Any:
    async def refuse(request: Any) -> Any:
        for topic in request.topics:
            for asked in topic.partitions:
                asked.leader_epoch -= 1
        return await cluster.alter_partition(request)

    return refuse


def test_followers_show_how_far_they_are_behind() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1, 2), follower_replication_throttled_replicas="*")
        for number in range(20):
            assert await cluster.produce(environment, b"x" * 10_000) == (0, number)
        lag = 'kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-1",topic="t",partition="0"}'
        await cluster.until(lambda: of(cluster, 2, lag) == (0,))
        assert lag not in samples(cluster.nodes[3])
        rate = ConfigRecord(
            resource_type=4, resource_name="", name="follower.replication.throttled.rate", value="10000"
        )
        await cluster.decide(rate)
        await cluster.change(replicas=[1, 2, 3], adding_replicas=[3])
        await cluster.until(lambda: lag in samples(cluster.nodes[3]) and of(cluster, 3, lag)[0] > 0)
        assert fetchers(cluster, 3, "maxlag") > 0
        assert fetchers(cluster, 2, "maxlag") == 0
        await cluster.until(lambda: 3 in cluster.registration().isr)
        assert fetchers(cluster, 3, "maxlag") == 0
        copied = of(cluster, 3, "kafka_server_brokertopicmetrics_replicationbytesin_total")[0]
        assert copied == len(cluster.bytes_of(1))
        sent = of(cluster, 1, "kafka_server_brokertopicmetrics_replicationbytesout_total")[0]
        assert sent >= 2 * copied
        await cluster.elect(3, (1, 2, 3))
        assert fetchers(cluster, 3, "maxlag") == 0
        assert of(cluster, 3, "kafka_server_brokertopicmetrics_replicationbytesin_total") == (copied,)

    in_cluster(scenario, replica_fetch_max_bytes="15000", replica_fetch_response_max_bytes="15000")


def test_fetchers_show_their_pace_and_those_that_do_not_go_on() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create()
        requests = 'kafka_server_fetcherstats_requests_total{clientId="ReplicaFetcherThread-0-1"}'
        fetchers(cluster, 2, "minfetchrate")
        await asyncio.sleep(10)
        assert fetchers(cluster, 2, "minfetchrate") == pytest.approx(2, rel=0.2), "replica.fetch.wait.max.ms is 500"
        assert of(cluster, 2, requests)[0] >= 20
        assert fetchers(cluster, 1, "minfetchrate") == 0, "it follows nobody"
        (line,) = cluster.nodes[2].broker.replication.fetchers.lines.values()
        (followed,) = line.fetcher.followed
        followed.state = FetchState.FENCED
        assert fetchers(cluster, 2, "failedpartitionscount") == 1
        followed.state = FetchState.FETCHING
        assert fetchers(cluster, 2, "failedpartitionscount") == 0
        cluster.partition(2).log.mark_offline("a test says so")
        assert fetchers(cluster, 2, "failedpartitionscount") == 1
        cluster.partition(2).leader_id = NO_LEADER
        assert fetchers(cluster, 2, "failedpartitionscount") == 0, "there is nobody to copy from"
        cluster.partition(2).leader_id = 1
        line._is_asking = False
        assert fetchers(cluster, 2, "deadthreadcount") == 1
        line._is_asking = True
        assert fetchers(cluster, 2, "deadthreadcount") == 0

    in_cluster(scenario)


def test_a_broker_shows_its_state() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        assert harness.node.broker_part is not None
        for state, number in BROKER_STATES.items():
            harness.node.broker_part.membership.state = state
            assert samples(harness.node)["kafka_server_kafkaserver_brokerstate"] == number
        harness.node.broker_part.membership.state = BrokerLifecycleState.RUNNING

    run_scenario(scenario)
    assert set(BROKER_STATES) == set(BrokerLifecycleState)
