"""Lag of groups, whoever has the partitions. (One node has its tests beside those of the other metrics.)"""

from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.metadata.image.directories import UNASSIGNED_DIRECTORY
from millbeck.metadata.records import PartitionRecord, TopicRecord
from millbeck.server.coordinators.internal_topics import OFFSETS_TOPIC
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from millbeck.wire.messages.streams_groups import StreamsGroupHeartbeatRequest, Subtopology, Topology
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator
from tests.unit.server.harness.scraping import samples
from tests.unit.server.harness.three_brokers import ThreeBrokers

OFFSETS_TOPIC_ID = b"offsets of groups"[:16]
LABELS = '{consumergroup="g",topic="t",partition="0"}'
LAG = f"kafka_consumergroup_lag{LABELS}"


async def coordinate(cluster: ThreeBrokers, node_id: int) -> None:
    """Let a node be the coordinator of all groups."""
    await cluster.decide(
        TopicRecord(name=OFFSETS_TOPIC, topic_id=OFFSETS_TOPIC_ID),
        PartitionRecord(
            partition_id=0,
            topic_id=OFFSETS_TOPIC_ID,
            replicas=[node_id],
            isr=[node_id],
            leader=node_id,
            leader_epoch=0,
            partition_epoch=0,
            directories=[UNASSIGNED_DIRECTORY],
        ),
    )


async def commit(
    cluster: ThreeBrokers, environment: Environment, node_id: int, offset: int, group_id: str = "g"
) -> None:
    client = await cluster.connect(environment, node_id)
    await find_coordinator(client, group_id)
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset)])
    request = OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=[topic])
    while (await client.ask(request, 7)).topics[0].partitions[0].error_code:
        await asyncio.sleep(0.1)


def test_the_lag_in_partitions_that_others_have_is_asked_for() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create(replicas=(1, 2))
        await coordinate(cluster, 3)
        for number in range(5):
            assert await cluster.produce(environment, b"x") == (0, number)
        await commit(cluster, environment, 3, 2)
        assert samples(cluster.nodes[3])[f"kafka_consumergroup_current_offset{LABELS}"] == 2
        assert LAG not in samples(cluster.nodes[3])
        await cluster.until_sampled(3, lambda found: found.get(LAG) == 3)
        assert (await cluster.produce(environment, b"x"))[0] == 0
        await cluster.until_sampled(3, lambda found: found.get(LAG) == 4)
        await commit(cluster, environment, 3, 6)
        assert samples(cluster.nodes[3])[LAG] == 0
        await cluster.change(leader=-1)
        await asyncio.sleep(10)
        assert LAG not in samples(cluster.nodes[3]), "nobody knows"

    ThreeBrokers(offsets_topic_num_partitions="1").run(scenario)


def test_groups_of_batch_notes_have_no_lag() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create()
        await coordinate(cluster, 2)
        assert await cluster.produce(environment, b"x") == (0, 0)
        await commit(cluster, environment, 2, 0, group_id="millbeck-0123456789abcdef01234567")
        await commit(cluster, environment, 2, 0)
        await cluster.until_sampled(2, lambda found: found.get(LAG) == 1)
        told = [name for name in samples(cluster.nodes[2]) if name.startswith("kafka_consumergroup")]
        assert all('consumergroup="g"' in name for name in told), told

    ThreeBrokers(offsets_topic_num_partitions="1").run(scenario)


def test_a_follower_knows_the_lag_itself() -> None:
    async def scenario(cluster: ThreeBrokers, environment: Environment) -> None:
        await cluster.create()
        await coordinate(cluster, 2)
        for number in range(5):
            assert await cluster.produce(environment, b"x") == (0, number)
        await commit(cluster, environment, 2, 1)
        await cluster.until_sampled(2, lambda found: found.get(LAG) == 4, limit_s=2)

    ThreeBrokers(offsets_topic_num_partitions="1").run(scenario)


def test_groups_in_which_the_broker_assigns_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client, "g")
        await client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", 1, 1)]), 7)
        request = ConsumerGroupHeartbeatRequest(
            "g", "m", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
        )
        assert (await client.ask(request, 1)).error_code == 0
        topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 0)])
        commit = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=1, member_id="m", topics=[topic])
        await client.ask(commit, 9)
        found = samples(harness.node)
        prefix = "kafka_server_group_coordinator_metrics_"
        assert found[prefix + 'group_count{protocol="consumer"}'] == 1
        assert found[prefix + 'group_count{protocol="classic"}'] == 0
        assert found[prefix + 'consumer_group_count{state="stable"}'] == 1
        assert found[prefix + "consumer_group_rebalance_count"] == 1
        assert found[prefix + "offset_commit_count"] == 1
        assert found[LAG] == 0
        await client.ask(ConsumerGroupHeartbeatRequest("g", "m", -1), 1)
        found = samples(harness.node)
        assert found[prefix + 'consumer_group_count{state="empty"}'] == 1
        assert found[LAG] == 0

    BrokerHarness().run(scenario)


def test_streams_groups_are_counted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client, "g")
        topology = Topology(0, [Subtopology("0", ["t"])])
        request = StreamsGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=1000, topology=topology)
        assert (await client.ask(request, 0)).error_code == 0
        found = samples(harness.node)
        prefix = "kafka_server_group_coordinator_metrics_"
        assert found[prefix + 'group_count{protocol="streams"}'] == 1
        assert found[prefix + 'streams_group_count{state="notready"}'] == 1
        assert found[prefix + "streams_group_rebalance_count"] == 1

    BrokerHarness().run(scenario)
