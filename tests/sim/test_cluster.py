"""Three nodes as one: what clients, administrators and operators rely on, with the real nodes in the simulator."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.cluster import SimCluster
from millbeck.simulation.workloads.leaders import MultiNodeCluster
from millbeck.simulation.workloads.produce_and_read import TOPIC
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from millbeck.wire.messages.transactions import InitProducerIdRequest

MOVING = (NotCoordinator.code, CoordinatorLoadInProgress.code, CoordinatorNotAvailable.code)
Scenario = Callable[[SimCluster, MultiNodeCluster], Coroutine[Any, Any, None]]


def in_cluster(scenario: Scenario, *, is_combined: bool = True, voters_in_log: bool = False, seed: int = 1) -> None:
    cluster = SimCluster(seed, is_combined=is_combined, voters_in_log=voters_in_log)

    async def whole(environment: Environment) -> None:
        cluster.start_all()
        clients = MultiNodeCluster(environment, cluster.addresses, random.Random(seed))
        await clients.create_topic(3, {"min.insync.replicas": "2"}, replication_factor=3)
        await scenario(cluster, clients)
        assert cluster.unexpected_errors() == {}

    with cluster.world as world:
        world.run(whole, limit_s=150)


async def until(condition: Callable[[], bool], limit_s: float = 60) -> None:
    async with asyncio.timeout(limit_s):
        while not condition():
            await asyncio.sleep(0.05)


async def produce(clients: MultiNodeCluster, partition: int, value: bytes) -> None:
    """Until it is acknowledged by all."""
    data = batch.build([Record(-1, clients.environment.clock.wall_ms(), None, value)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=5000,
        topic_data=[TopicProduceData(name=TOPIC, partition_data=[PartitionProduceData(partition, data)])],
    )
    while True:
        client = await clients.connect_to(partition)
        try:
            (answer,) = (await client.ask(request, 9, timeout_s=6)).responses[0].partition_responses
            if answer.error_code == 0:
                return
        except (OSError, TimeoutError):
            pass
        finally:
            client.close()
        await asyncio.sleep(0.1)


async def read(clients: MultiNodeCluster, partition: int) -> list[bytes]:
    client = await clients.connect_to(partition)
    wanted = FetchPartition(partition, fetch_offset=0, partition_max_bytes=1 << 20)
    answer = await client.ask(FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(TOPIC, partitions=[wanted])]), 11)
    client.close()
    (found,) = answer.responses[0].partitions
    assert found.error_code == 0
    return [bytes(each.value or b"") for one in batch.split(found.records) for each in batch.records_of(one.data)]


def in_sync(cluster: SimCluster, partition: int) -> int:
    image = max((node.broker.image for node in cluster.running()), key=lambda each: each.offset)
    found = image.topics.partition(TOPIC, partition)
    return 0 if found is None else len(found.isr)


@pytest.mark.parametrize("voters_in_log", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("is_combined", [True, False], ids=["combined", "apart"])
def test_records_survive_the_death_of_their_leader(is_combined: bool, voters_in_log: bool) -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        for number in range(10):
            await produce(clients, 0, b"before-%d" % number)
        leader = cluster.leader_of(TOPIC, 0)
        assert leader is not None
        cluster.machine(leader).crash()
        for number in range(10):
            await produce(clients, 0, b"after-%d" % number)
        another = cluster.leader_of(TOPIC, 0)
        assert another is not None
        assert another != leader
        expected = [b"before-%d" % number for number in range(10)] + [b"after-%d" % number for number in range(10)]
        assert await read(clients, 0) == expected
        cluster.start(leader)
        await until(lambda: in_sync(cluster, 0) == 3)
        cluster.machine(another).crash()
        await produce(clients, 0, b"last")
        assert await read(clients, 0) == [*expected, b"last"]

    in_cluster(scenario, is_combined=is_combined, voters_in_log=voters_in_log)


@pytest.mark.parametrize("is_combined", [True, False], ids=["combined", "apart"])
def test_every_broker_takes_what_the_controller_does_and_tells_of_all_brokers(is_combined: bool) -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        await until(lambda: len(cluster.running()[0].broker.image.cluster.unfenced_brokers()) == 3)
        for number, member in enumerate(cluster.brokers):
            client = await clients._try(member.name, 9092)
            assert client is not None
            topic = CreatableTopic(f"t{number}", num_partitions=3, replication_factor=3)
            (created,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
            assert created.error_code == 0
            (refused,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
            assert refused.error_code == 36
            first = await client.ask(InitProducerIdRequest(transactional_id=None), 4)
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name=f"auto{number}")])
            missing = await client.ask(wanted, 9)
            assert (first.error_code, missing.topics[0].error_code) == (CoordinatorLoadInProgress.code, 3)
            await asyncio.sleep(1)
            assert (await client.ask(InitProducerIdRequest(transactional_id=None), 4)).producer_id >= 0
            metadata = await client.ask(wanted, 9)
            assert {(each.node_id, each.host) for each in metadata.brokers} == {
                (each.number, each.name) for each in cluster.brokers
            }
            assert metadata.topics[0].error_code == 0
            quorum = DescribeQuorumRequest(
                topics=[DescribeQuorumRequestTopic("__cluster_metadata", [DescribeQuorumRequestPartition(0)])]
            )
            (described,) = (await client.ask(quorum, 2)).topics[0].partitions
            active = cluster.active_controller()
            assert active is not None
            assert described.leader_id == active.number
            assert len(described.current_voters) == 3
            client.close()

    in_cluster(scenario, is_combined=is_combined)


async def at_coordinator(clients: MultiNodeCluster, group: str) -> WireClient:
    while True:
        client = await clients.connect()
        try:
            found = await client.ask(FindCoordinatorRequest(key=group), 2, timeout_s=5)
        except (OSError, TimeoutError):
            continue
        finally:
            client.close()
        if found.error_code == 0:
            coordinator = await clients._try(found.host, found.port)
            if coordinator is not None:
                return coordinator
        await asyncio.sleep(0.2)


async def ask_coordinator(clients: MultiNodeCluster, group: str, request: Any, version: int, code: Any) -> Any:
    """Ask until somebody coordinates the group; ``code`` finds the error in the answer."""
    while True:
        client = await at_coordinator(clients, group)
        try:
            answer = await client.ask(request, version, timeout_s=6)
            if code(answer) == 0:
                return answer
            assert code(answer) in MOVING, answer
        except (OSError, TimeoutError):
            pass
        finally:
            client.close()
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("is_combined", [True, False], ids=["combined", "apart"])
def test_groups_move_with_the_partition_that_keeps_them(is_combined: bool) -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        groups = [f"group-{number}" for number in range(6)]
        for offset, group in enumerate(groups):
            commit = OffsetCommitRequest(
                group_id=group,
                generation_id_or_member_epoch=-1,
                topics=[OffsetCommitRequestTopic(TOPIC, partitions=[OffsetCommitRequestPartition(0, offset)])],
            )
            await ask_coordinator(clients, group, commit, 7, lambda each: each.topics[0].partitions[0].error_code)
        leader = cluster.leader_of("__consumer_offsets", 0)
        assert leader is not None
        cluster.machine(leader).crash()
        for offset, group in enumerate(groups):
            wanted = OffsetFetchRequest(group_id=group, topics=[OffsetFetchRequestTopic(TOPIC, [0])])
            found = await ask_coordinator(clients, group, wanted, 5, lambda each: each.error_code)
            assert found.topics[0].partitions[0].committed_offset == offset

    in_cluster(scenario, is_combined=is_combined)


def test_a_node_that_stops_in_order_hands_its_partitions_over_first() -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        await until(lambda: all(in_sync(cluster, partition) == 3 for partition in range(3)))
        leader = cluster.leader_of(TOPIC, 0)
        assert leader is not None
        await produce(clients, 0, b"before")
        began = asyncio.get_running_loop().time()
        await cluster.stop(leader)
        assert asyncio.get_running_loop().time() - began < 8
        after = cluster.leader_of(TOPIC, 0)
        assert after is not None
        assert after != leader
        async with asyncio.timeout(2):
            await produce(clients, 0, b"after")
        cluster.start(leader)
        await until(lambda: in_sync(cluster, 0) == 3)
        assert await read(clients, 0) == [b"before", b"after"]

    in_cluster(scenario)


def test_without_a_quorum_records_flow_and_changes_wait() -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        await until(lambda: all(each.broker.image.topics.named(TOPIC) is not None for each in cluster.running()))
        await until(lambda: all(in_sync(cluster, partition) == 3 for partition in range(3)))
        for member in cluster.controllers[:2]:
            cluster.machine(member).crash()
        for number in range(5):
            await produce(clients, 0, b"%d" % number)
        client = await clients.connect()
        topic = CreatableTopic("later", num_partitions=1, replication_factor=3)
        created = client.send(CreateTopicsRequest(topics=[topic], timeout_ms=60_000), 7)
        await asyncio.sleep(15)
        assert not created.done()
        await produce(clients, 1, b"still")
        cluster.start_all()
        assert (await asyncio.wait_for(created, 40)).topics[0].error_code == 0
        client.close()

    in_cluster(scenario, is_combined=False)


def test_a_broker_that_hangs_is_fenced_and_comes_back_by_itself() -> None:
    async def scenario(cluster: SimCluster, clients: MultiNodeCluster) -> None:
        leader = cluster.leader_of(TOPIC, 0)
        assert leader is not None
        cluster.machine(leader).pause(12)
        await produce(clients, 0, b"meanwhile")
        await until(lambda: in_sync(cluster, 0) == 3)
        assert await read(clients, 0) == [b"meanwhile"]

    in_cluster(scenario, is_combined=False)
