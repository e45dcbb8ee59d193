"""Questions to partitions' leaders."""

from __future__ import annotations

from millbeck.client.admin import Admin
from millbeck.client.admin.results import EARLIEST, LATEST, ListedOffset
from millbeck.kernel.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.wire.messages.log_offsets import ListOffsetsRequest
from millbeck.wire.messages.transactions import (
    DescribeProducersPartition,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
    ProducerState,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
GHOST = TopicPartition("ghost", 0)


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def test_offsets_by_time() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        for timestamp in (100, 200, 300):
            first.append(batch.build([Record(-1, timestamp, None, b"v")]))
        second.start_offset = 5
        async with open_admin(cluster) as admin:
            found = await admin.list_offsets({A0: 150, A1: EARLIEST, GHOST: LATEST}, read_committed=True)
            assert found[A0] == ListedOffset(offset=1, timestamp=200, leader_epoch=-1)
            assert found[A1].offset == 5
            assert isinstance(found.failed[GHOST], UnknownTopicOrPartition)
            assert (await admin.list_offsets({A0: 999}))[A0].offset == -1
        assert {call.node_id for call in cluster.asked(ListOffsetsRequest)} == {1, 2}
        assert cluster.asked(ListOffsetsRequest)[0].message.isolation_level == 1

    simulate(scenario, brokers=2)


def test_a_leader_that_moves_is_followed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a", leader_id=1)

        def move(call: Call) -> object:
            answer = cluster.usual(call)
            log.leader_id = 2
            answer.topics[0].partitions[0].error_code = NotLeaderOrFollower.code
            return answer

        cluster.next(ListOffsetsRequest, move)
        async with open_admin(cluster) as admin:
            assert (await admin.list_offsets({A0: LATEST}))[A0].offset == 0
        assert [call.node_id for call in cluster.asked(ListOffsetsRequest)] == [1, 2]

    simulate(scenario, brokers=2)


def test_producers_of_partitions() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)

        def describe(call: Call) -> DescribeProducersResponse:
            (topic,) = call.message.topics
            state = ProducerState(
                producer_id=7, producer_epoch=1, last_sequence=42, last_timestamp=5, current_txn_start_offset=9
            )
            results = [
                DescribeProducersPartition(partition_index=number, active_producers=[state])
                if number == 0
                else DescribeProducersPartition(partition_index=number, error_code=3, error_message="gone")
                for number in topic.partition_indexes
            ]
            return DescribeProducersResponse(topics=[DescribeProducersTopicResponse(name="a", partitions=results)])

        cluster.on(DescribeProducersRequest, describe)
        async with open_admin(cluster) as admin:
            found = await admin.describe_producers([A0, A1])
        (producer,) = found[A0]
        assert (producer.producer_id, producer.last_sequence, producer.transaction_start_offset) == (7, 42, 9)
        assert str(found.failed[A1]) == "gone"

    simulate(scenario)
