"""Positions are found, and checked again when a partition has a new leader."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import Consumer
from millbeck.client.errors import LogTruncated
from millbeck.kernel.errors import GroupAuthorizationFailed, UnknownLeaderEpoch
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.wire.messages.group_offsets import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup
from millbeck.wire.messages.log_offsets import (
    EpochEndOffset,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from millbeck.wire.messages.metadata import MetadataRequest
from tests.unit.client.fake_cluster import CLOSE, SILENCE, Call, FakeCluster, FakePartition, simulate

A0 = TopicPartition("a", 0)


def open_consumer(cluster: FakeCluster, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "auto.offset.reset": "earliest",
        "metadata.max.age.ms": 1000,
    }
    return Consumer(defaults | texts, environment=cluster.environment)


def fill(log: FakePartition, count: int) -> None:
    for _ in range(count):
        log.append(batch.build([Record(-1, 1, None, b"v")]))


async def read_to(consumer: Consumer, offset: int) -> None:
    async with asyncio.timeout(60):
        while await consumer.position(A0) < offset:
            await consumer.poll(timeout_s=1)
    assert await consumer.position(A0) == offset


def test_a_reset_needs_no_second_look_in_the_same_epoch() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 3)
            await asyncio.sleep(5)
        assert not cluster.asked(OffsetForLeaderEpochRequest)
        assert len(cluster.asked(MetadataRequest)) > 3

    simulate(scenario)


def test_a_new_leader_is_asked_whether_the_position_is_still_there() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 3)
            log.leader_epoch = 4
            fill(log, 1)
            await read_to(consumer, 4)
            await asyncio.sleep(3)
            (call,) = cluster.asked(OffsetForLeaderEpochRequest)
            (asked,) = call.message.topics[0].partitions
            assert (asked.leader_epoch, asked.current_leader_epoch) == (0, 4)

    simulate(scenario)


def test_a_log_that_was_cut_is_read_from_where_it_was_cut() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 5)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 5)
            del log.batches[2:]
            log.leader_epoch = 4
            fill(log, 6)
            async with asyncio.timeout(60):
                while (found := await consumer.poll(timeout_s=1)) == {}:
                    pass
            assert found[A0][0].offset == 2

    simulate(scenario)


def test_a_log_that_was_cut_is_an_error_without_a_policy() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 5)
        async with open_consumer(cluster, auto_offset_reset="none") as consumer:
            consumer.assign([A0])
            consumer.seek(A0, 0)
            await read_to(consumer, 5)
            del log.batches[2:]
            log.leader_epoch = 4
            await asyncio.sleep(2)
            with pytest.raises(LogTruncated, match="a-0 ends at 2"):
                await consumer.poll(timeout_s=5)

    simulate(scenario)


def test_an_epoch_nobody_knows_resets_the_position() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 5)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 5)
            log.batches.clear()
            log.leader_epoch = 4
            fill(log, 2)
            async with asyncio.timeout(60):
                while await consumer.position(A0) != 2:
                    await consumer.poll(timeout_s=1)
            assert consumer.lag(A0) == 0

    simulate(scenario)


def test_a_committed_offset_is_checked_against_its_epoch_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 2)
        log.leader_epoch = 9
        fill(log, 5)
        cluster.committed["g", "a", 0] = (5, 0, "")
        async with open_consumer(cluster, group_id="g", metadata_max_age_ms=300_000) as consumer:
            await consumer.topic("a")
            consumer.assign([A0])
            async with asyncio.timeout(60):
                while (found := await consumer.poll(timeout_s=1)) == {}:
                    pass
            assert found[A0][0].offset == 2

    simulate(scenario)


def test_passing_errors_are_retried_and_brokers_without_the_api_are_trusted() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)

        def unknown(call: Call) -> OffsetForLeaderEpochResponse:
            return OffsetForLeaderEpochResponse(
                topics=[
                    OffsetForLeaderTopicResult(
                        topic="a", partitions=[EpochEndOffset(error_code=UnknownLeaderEpoch.code, partition=0)]
                    )
                ]
            )

        cluster.next(OffsetForLeaderEpochRequest, unknown, CLOSE, unknown)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 3)
            log.leader_epoch = 1
            fill(log, 1)
            await read_to(consumer, 4)
            assert len(cluster.asked(OffsetForLeaderEpochRequest)) == 4
        cluster.limit(OffsetForLeaderEpochRequest, 1, 0)
        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 4)
            log.leader_epoch = 2
            fill(log, 1)
            await read_to(consumer, 5)

    simulate(scenario)


@pytest.mark.parametrize("answer", [CLOSE, SILENCE], ids=["hung up", "no answer"])
def test_lookups_survive_lost_answers(answer: Any) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        (log,) = cluster.add_topic("a")
        fill(log, 3)
        cluster.next(ListOffsetsRequest, answer)
        cluster.next(OffsetFetchRequest, answer)
        async with open_consumer(cluster, group_id="g", request_timeout_ms=2000) as consumer:
            consumer.assign([A0])
            await read_to(consumer, 3)

    simulate(scenario)


def test_a_group_that_may_not_be_read_is_an_error() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        refused = OffsetFetchResponseGroup(group_id="g", error_code=GroupAuthorizationFailed.code)
        cluster.on(OffsetFetchRequest, lambda call: OffsetFetchResponse(groups=[refused]))
        async with open_consumer(cluster, group_id="g") as consumer:
            consumer.assign([A0])
            for _ in range(2):
                with pytest.raises(GroupAuthorizationFailed):
                    await consumer.poll(timeout_s=5)

    simulate(scenario)
