"""Whole brokers replicate over a network: acknowledged means everywhere, and leaders come and go."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import NotEnoughReplicas, RequestTimedOut
from millbeck.metadata.records import ConfigRecord
from tests.unit.server.harness.three_brokers import ThreeBrokers


def in_cluster(scenario: Any, **settings: Any) -> Any:
    return ThreeBrokers(**settings).run(scenario)


def test_what_is_acknowledged_is_on_every_in_sync_replica() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="3")
        started = asyncio.get_running_loop().time()
        for number in range(20):
            assert await cluster.produce(environment, b"%d" % number) == (0, number)
            assert [cluster.partition(node_id).log.end_offset for node_id in (1, 2, 3)] == [number + 1] * 3
        assert asyncio.get_running_loop().time() - started < 2
        await cluster.until(lambda: cluster.partition(2).high_watermark == cluster.partition(3).high_watermark == 20)
        assert cluster.bytes_of(1) == cluster.bytes_of(2) == cluster.bytes_of(3)

    in_cluster(scenario)


def test_a_new_leader_has_everything_and_knows_the_producers() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2")
        numbered: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
        for number in range(5):
            assert await cluster.produce(environment, b"%d" % number, base_sequence=number, **numbered) == (0, number)
        cluster.crash(1)
        await cluster.elect(2, (2, 3))
        assert await cluster.produce(environment, b"4", base_sequence=4, **numbered) == (0, 4), "a retry"
        assert await cluster.produce(environment, b"5", base_sequence=5, **numbered) == (0, 5)
        await cluster.start(1)
        await cluster.until(lambda: cluster.registration().isr == (2, 3, 1))
        assert cluster.bytes_of(1) == cluster.bytes_of(2) == cluster.bytes_of(3)

    in_cluster(scenario)


def test_a_deposed_leader_gives_up_what_only_it_had() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2")
        assert await cluster.produce(environment, b"shared") == (0, 0)
        cluster.world.network.partition(["n1"], ["n2", "n3"])
        assert await cluster.produce(environment, b"lonely", timeout_ms=1000) == (RequestTimedOut.code, -1)
        await cluster.elect(2, (2, 3))
        assert await cluster.produce(environment, b"theirs") == (0, 1)
        cluster.world.network.heal()
        await cluster.until(lambda: cluster.bytes_of(1) == cluster.bytes_of(2))
        assert cluster.partition(1).log.end_offset == 2
        assert b"lonely" not in cluster.bytes_of(1)
        await cluster.until(lambda: set(cluster.registration().isr) == {1, 2, 3})

    in_cluster(scenario)


def test_a_silent_follower_leaves_the_isr_and_comes_back_when_it_has_caught_up() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2")
        assert await cluster.produce(environment, b"a") == (0, 0)
        cluster.world.network.partition(["n3"], ["n1", "n2"])
        assert await cluster.produce(environment, b"b", timeout_ms=1000) == (RequestTimedOut.code, -1)
        await cluster.until(lambda: cluster.registration().isr == (1, 2))
        assert await cluster.produce(environment, b"c") == (0, 2)
        cluster.world.network.heal()
        await cluster.until(lambda: cluster.registration().isr == (1, 2, 3))
        assert cluster.bytes_of(3) == cluster.bytes_of(1)
        assert cluster.isr_changes == [(1, 2), (1, 2, 3)]

    in_cluster(scenario, replica_lag_time_max_ms="5000")


def test_without_a_controller_the_isr_waits_and_acknowledged_stays_true() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2")
        cluster.is_reachable = False
        cluster.world.network.partition(["n2", "n3"], ["n1"])
        await asyncio.sleep(20)
        assert await cluster.produce(environment, b"x", timeout_ms=1000) == (RequestTimedOut.code, -1)
        cluster.is_reachable = True
        await cluster.until(lambda: cluster.registration().isr == (1,))
        assert await cluster.produce(environment, b"y") == (NotEnoughReplicas.code, -1)
        assert cluster.partition(1).high_watermark == 0
        cluster.world.network.heal()
        await cluster.until(lambda: set(cluster.registration().isr) == {1, 2, 3})
        assert (await cluster.produce(environment, b"z"))[0] == 0

    in_cluster(scenario, replica_lag_time_max_ms="5000")


def test_a_partition_moves_with_its_data_to_a_new_broker() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1, 2))
        for number in range(10):
            assert await cluster.produce(environment, b"%d" % number) == (0, number)
        before = cluster.bytes_of(1)
        await cluster.change(replicas=[1, 2, 3], adding_replicas=[3])
        await cluster.until(lambda: 3 in cluster.registration().isr)
        await cluster.change(replicas=[2, 3], isr=[2, 3], adding_replicas=[], removing_replicas=[], leader=3)
        assert cluster.bytes_of(3) == before
        assert cluster.nodes[1].broker.topics.by_id == {}
        assert await cluster.produce(environment, b"more") == (0, 10)

    in_cluster(scenario)


def test_with_flush_on_every_message_nothing_acknowledged_is_lost_with_all_power() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(min_insync_replicas="2", flush_messages="1")
        for number in range(10):
            assert await cluster.produce(environment, b"%d" % number) == (0, number)
        for node_id in (1, 2, 3):
            cluster.machines[node_id].power_loss()
        cluster.nodes.clear()
        for node_id in (1, 2, 3):
            await cluster.start(node_id)
        await cluster.elect(3, (3, 2, 1))
        assert cluster.partition(3).log.end_offset == 10
        assert await cluster.produce(environment, b"10") == (0, 10)

    in_cluster(scenario)


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_takes_its_time_and_clients_do_not_notice(side: str) -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        throttled: dict[str, Any] = {f"{side}_replication_throttled_replicas": "*"}
        await cluster.create(replicas=(1, 2), **throttled)
        rate = ConfigRecord(resource_type=4, resource_name="", name=f"{side}.replication.throttled.rate", value="20000")
        await cluster.decide(rate)
        for _ in range(40):
            assert (await cluster.produce(environment, b"x" * 20_000))[0] == 0
        loop = asyncio.get_running_loop()
        started = loop.time()
        await cluster.change(replicas=[1, 2, 3], adding_replicas=[3])
        while 3 not in cluster.registration().isr:
            assert (await cluster.produce(environment, b"y"))[0] == 0
            await asyncio.sleep(0.5)
        assert 15 <= loop.time() - started <= 60, "800 KB at 20 KB/s, with what the first window lets through"

    in_cluster(scenario, replica_fetch_max_bytes="40000")
