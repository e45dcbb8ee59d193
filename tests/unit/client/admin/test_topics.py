"""Administration of topics: what is asked, and what comes back."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewPartitions, NewTopic
from millbeck.kernel.errors import (
    InvalidPartitions,
    NotController,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from millbeck.wire.messages.topics import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from tests.unit.client.fake_cluster import CLOSE, Call, FakeCluster, simulate

ID = b"i" * 16


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def test_creating_topics() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def create(call: Call) -> CreateTopicsResponse:
            config = CreatableTopicConfigs(name="retention.ms", value="5", config_source=1)
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(
                        name="a", topic_id=ID, num_partitions=3, replication_factor=1, configs=[config]
                    ),
                    CreatableTopicResult(name="b", error_code=TopicAlreadyExists.code, error_message="b is there"),
                ]
            )

        cluster.on(CreateTopicsRequest, create)
        async with open_admin(cluster) as admin:
            outcomes = await admin.create_topics(
                [
                    NewTopic(name="a", partition_count=3, configs={"retention.ms": "5"}),
                    NewTopic(name="b", assignments={0: [1, 2]}, partition_count=7, replication_factor=9),
                ],
                validate_only=True,
            )
        assert (outcomes["a"].topic_id, outcomes["a"].partition_count) == (ID, 3)
        assert outcomes["a"].configs["retention.ms"].value == "5"
        with pytest.raises(TopicAlreadyExists, match="b is there"):
            outcomes["b"]
        (call,) = cluster.asked(CreateTopicsRequest)
        first, second = call.message.topics
        assert call.message.validate_only
        assert (first.num_partitions, first.replication_factor) == (3, -1)
        assert (first.configs[0].name, first.configs[0].value) == ("retention.ms", "5")
        assert (second.num_partitions, second.replication_factor) == (-1, -1)
        assert (second.assignments[0].partition_index, second.assignments[0].broker_ids) == (0, [1, 2])

    simulate(scenario)


def test_a_broker_that_is_not_the_controller_is_asked_again_later() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(
            CreateTopicsRequest,
            CreateTopicsResponse(topics=[CreatableTopicResult(name="a", error_code=NotController.code)]),
            CLOSE,
        )
        cluster.on(
            CreateTopicsRequest, lambda call: CreateTopicsResponse(topics=[CreatableTopicResult(name="a", topic_id=ID)])
        )
        async with open_admin(cluster) as admin:
            assert (await admin.create_topics([NewTopic(name="a")]))["a"].topic_id == ID
        assert len(cluster.asked(CreateTopicsRequest)) == 3

    simulate(scenario)


@pytest.mark.parametrize("highest", [1, 5, 6])
def test_deleting_topics(highest: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.limit(DeleteTopicsRequest, 1, highest)

        def delete(call: Call) -> DeleteTopicsResponse:
            names = call.message.topic_names or [topic.name for topic in call.message.topics]
            assert names == ["a", "b"]
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(name="a", topic_id=ID),
                    DeletableTopicResult(name="b", error_code=UnknownTopicOrPartition.code),
                ]
            )

        cluster.on(DeleteTopicsRequest, delete)
        async with open_admin(cluster) as admin:
            outcomes = await admin.delete_topics(["a", "b"])
        assert list(outcomes.succeeded) == ["a"]
        assert list(outcomes.failed) == ["b"]

    simulate(scenario)


def test_listing_topics() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("b", 2)
        cluster.add_topic("a")
        async with open_admin(cluster) as admin:
            listed = await admin.list_topics()
        assert [(entry.name, entry.partition_count) for entry in listed.values()] == [("a", 1), ("b", 2)]
        assert listed["a"].topic_id == cluster.topics["a"][0]

    simulate(scenario)


def test_describing_goes_page_by_page() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def page(call: Call) -> DescribeTopicPartitionsResponse:
            start = 0 if call.message.cursor is None else call.message.cursor.partition_index
            partitions = [
                DescribeTopicPartitionsResponsePartition(
                    partition_index=number,
                    leader_id=1,
                    leader_epoch=4,
                    replica_nodes=[1, 2],
                    isr_nodes=[1],
                    eligible_leader_replicas=[2],
                )
                for number in range(start, start + 2)
            ]
            topics = [DescribeTopicPartitionsResponseTopic(name="a", topic_id=ID, partitions=partitions)]
            if start == 0:
                topics.append(DescribeTopicPartitionsResponseTopic(name="b", error_code=UnknownTopicOrPartition.code))
            cursor = Cursor(topic_name="a", partition_index=start + 2) if start < 4 else None
            return DescribeTopicPartitionsResponse(topics=topics, next_cursor=cursor)

        cluster.on(DescribeTopicPartitionsRequest, page)
        async with open_admin(cluster) as admin:
            outcomes = await admin.describe_topics(["a", "b"])
        described = outcomes["a"]
        assert [entry.partition for entry in described.partitions] == list(range(6))
        first = described.partitions[0]
        assert (first.leader_id, first.leader_epoch, first.replicas, first.in_sync) == (1, 4, (1, 2), (1,))
        assert (first.eligible_leaders, first.last_known_eligible_leaders) == ((2,), None)
        assert isinstance(outcomes.failed["b"], UnknownTopicOrPartition)

    simulate(scenario)


def test_describing_falls_back_to_metadata() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 3)
        cluster.limit(DescribeTopicPartitionsRequest, 1, 0)
        async with open_admin(cluster) as admin:
            outcomes = await admin.describe_topics(["a", "ghost"])
        assert [entry.partition for entry in outcomes["a"].partitions] == [0, 1, 2]
        assert isinstance(outcomes.failed["ghost"], UnknownTopicOrPartition)

    simulate(scenario)


def test_adding_partitions() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def create(call: Call) -> CreatePartitionsResponse:
            first, second = call.message.topics
            assert (first.count, first.assignments) == (5, None)
            assert [entry.broker_ids for entry in second.assignments] == [[1], [2]]
            return CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(name="a"),
                    CreatePartitionsTopicResult(name="b", error_code=InvalidPartitions.code, error_message="fewer"),
                ]
            )

        cluster.on(CreatePartitionsRequest, create)
        wanted = {"a": NewPartitions(total_count=5), "b": NewPartitions(total_count=3, assignments=[[1], [2]])}
        async with open_admin(cluster) as admin:
            outcomes = await admin.create_partitions(wanted)
        assert outcomes["a"].total_count == 5
        with pytest.raises(InvalidPartitions, match="fewer"):
            outcomes["b"]

    simulate(scenario)


def test_deleting_records_asks_each_leader() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        logs = cluster.add_topic("a", 2)

        def delete(call: Call) -> DeleteRecordsResponse:
            results: list[Any] = []
            for entry in call.message.topics[0].partitions:
                log = logs[entry.partition_index]
                code = 0 if log.leader_id == call.node_id else NotLeaderOrFollower.code
                code = OffsetOutOfRange.code if entry.offset > 100 else code
                results.append(
                    DeleteRecordsPartitionResult(
                        partition_index=entry.partition_index, low_watermark=entry.offset, error_code=code
                    )
                )
            return DeleteRecordsResponse(topics=[DeleteRecordsTopicResult(name="a", partitions=results)])

        cluster.on(DeleteRecordsRequest, delete)
        first, second = TopicPartition("a", 0), TopicPartition("a", 1)
        async with open_admin(cluster) as admin:
            outcomes = await admin.delete_records({first: 5, second: 500})
            assert outcomes[first] == 5
            assert isinstance(outcomes.failed[second], OffsetOutOfRange)
            logs[0].leader_id = 2
            assert (await admin.delete_records({first: 7})).all() == {first: 7}

    simulate(scenario, brokers=2)
