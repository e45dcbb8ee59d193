"""Reading a range: all of it, nothing else, and clear words when it cannot be read."""

from __future__ import annotations

from struct import iter_unpack
from typing import Any

import pytest

from millbeck.client.cluster import Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.range_reader import RangeReader, RangeUnreadable, TopicRecreated
from millbeck.kernel.errors import NotLeaderOrFollower, OffsetOutOfRange, UnknownTopicId
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.wire.messages.fetch import FetchableTopicResponse, FetchedPartition, FetchRequest, FetchResponse
from tests.unit.client.fake_cluster import CLOSE, Call, FakeCluster, FakePartition, simulate

A0 = TopicPartition("a", 0)


def fill(log: FakePartition, count: int, records: int = 3) -> None:
    for _ in range(count):
        log.append(batch.build([Record(-1, 1, None, b"v")] * records))


def open_reader(cluster: FakeCluster, start: int, end: int, **options: Any) -> tuple[Cluster, RangeReader]:
    settings = {"bootstrap.servers": cluster.bootstrap, "isolation.level": "read_committed", "client.rack": "r1"}
    config = ConsumerConfig.parse(settings)
    client = Cluster(cluster.environment, config)
    return client, RangeReader(client, config, A0, start, end, **options)


async def offsets(reader: RangeReader) -> list[int]:
    found: list[int] = []
    while (chunk := await reader.next_chunk()) is not None:
        for columns in chunk.columns():
            found += [row[4] for row in iter_unpack("<6q", columns.rows)]
    return found


def answer(call: Call, **fields: Any) -> FetchResponse:
    (topic,) = call.message.topics
    found = FetchedPartition(partition_index=0, **fields)
    return FetchResponse(
        responses=[FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[found])]
    )


@pytest.mark.parametrize(("start", "end"), [(0, 30), (4, 17), (0, 0), (29, 30), (3, 6)])
def test_a_range_is_read_exactly(start: int, end: int) -> None:
    async def scenario(cluster: FakeCluster) -> list[int]:
        fill(cluster.add_topic("a")[0], 10)
        client, reader = open_reader(cluster, start, end)
        found = await offsets(reader)
        await client.close()
        return found

    assert simulate(scenario) == list(range(start, end))


def test_the_next_chunk_is_asked_for_before_the_caller_comes_back() -> None:
    async def scenario(cluster: FakeCluster) -> list[int]:
        log = cluster.add_topic("a")[0]
        fill(log, 4)
        # One batch at a time.
        cluster.on(
            FetchRequest,
            lambda call: answer(
                call,
                high_watermark=12,
                last_stable_offset=12,
                records=log.batches[call.message.topics[0].partitions[0].fetch_offset // 3],
            ),
        )
        client, reader = open_reader(cluster, 0, 12)
        await reader.next_chunk()
        assert reader._ahead is not None
        found = await offsets(reader)
        asked = [call.message.topics[0].partitions[0].fetch_offset for call in cluster.asked(FetchRequest)]
        await client.close()
        return [*asked, *found]

    assert simulate(scenario) == [0, 3, 6, 9, *range(3, 12)]


def test_offsets_that_are_gone_before_the_end_end_the_range() -> None:
    async def scenario(cluster: FakeCluster) -> list[int]:
        cluster.add_topic("a")
        cluster.on(FetchRequest, lambda call: answer(call, high_watermark=50, last_stable_offset=50, records=b""))
        client, reader = open_reader(cluster, 10, 50)
        found = await offsets(reader)
        await client.close()
        return found

    assert simulate(scenario) == []


def test_a_log_that_ends_before_the_range_is_told() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(FetchRequest, lambda call: answer(call, high_watermark=50, last_stable_offset=40, records=b""))
        client, reader = open_reader(cluster, 10, 50)
        try:
            with pytest.raises(RangeUnreadable, match="ends at offset 40 now, before 50"):
                await offsets(reader)
        finally:
            await client.close()

    simulate(scenario)


def test_offsets_deleted_by_retention_are_told() -> None:
    async def scenario(cluster: FakeCluster) -> int:
        cluster.add_topic("a")
        code = OffsetOutOfRange.code
        cluster.on(FetchRequest, lambda call: answer(call, error_code=code, log_start_offset=20, high_watermark=50))
        client, reader = open_reader(cluster, 10, 50)
        try:
            with pytest.raises(RangeUnreadable, match="starts at 20") as raised:
                await offsets(reader)
        finally:
            await client.close()
        return raised.value.log_start_offset

    assert simulate(scenario) == 20


def test_a_near_replica_is_read_and_left_when_it_fails() -> None:
    async def scenario(cluster: FakeCluster) -> list[tuple[int, str]]:
        log = cluster.add_topic("a", leader_id=1)[0]
        fill(log, 2)

        def serve(call: Call) -> Any:
            if call.node_id == 2:
                return answer(call, error_code=OffsetOutOfRange.code)
            if call.message.rack_id == "r1" and len(cluster.asked(FetchRequest)) == 1:
                return answer(call, high_watermark=6, last_stable_offset=6, preferred_read_replica=2)
            return answer(call, high_watermark=6, last_stable_offset=6, records=b"".join(log.batches))

        cluster.on(FetchRequest, serve)
        client, reader = open_reader(cluster, 0, 6)
        assert await offsets(reader) == list(range(6))
        await client.close()
        return [(call.node_id, call.message.rack_id) for call in cluster.asked(FetchRequest)]

    assert simulate(scenario, brokers=2) == [(1, "r1"), (2, ""), (1, "r1")]


def test_a_lost_connection_and_a_new_leader_are_got_over() -> None:
    async def scenario(cluster: FakeCluster) -> list[int]:
        fill(cluster.add_topic("a")[0], 2)
        cluster.next(FetchRequest, CLOSE, lambda call: answer(call, error_code=NotLeaderOrFollower.code))
        client, reader = open_reader(cluster, 0, 6)
        found = await offsets(reader)
        await client.close()
        return found

    assert simulate(scenario) == list(range(6))


def test_a_topic_that_was_created_anew_is_noticed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        fill(cluster.add_topic("a")[0], 2)
        client, reader = open_reader(cluster, 0, 6, topic_id=b"another topic id")
        try:
            with pytest.raises(TopicRecreated, match="topic a was deleted and created again"):
                await offsets(reader)
            assert not isinstance(UnknownTopicId, TopicRecreated)
        finally:
            await client.close()

    simulate(scenario)
    assert not TopicRecreated.retriable


def test_a_reader_that_is_closed_asks_no_more() -> None:
    async def scenario(cluster: FakeCluster) -> bool:
        log = cluster.add_topic("a")[0]
        fill(log, 2)
        cluster.on(
            FetchRequest,
            lambda call: answer(call, high_watermark=99, last_stable_offset=99, records=log.batches[0]),
        )
        client, reader = open_reader(cluster, 0, 99)
        await reader.next_chunk()
        await reader.close()
        await client.close()
        return reader._ahead is None

    assert simulate(scenario)
