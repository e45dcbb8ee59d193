"""Commits in the background take effect in order, tell their callback, and are waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import CommittedOffset, Consumer
from millbeck.client.consumer.ordered_commits import Offsets
from millbeck.kernel.errors import ApiError, CoordinatorLoadInProgress, OffsetMetadataTooLarge
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.unit.client.fake_cluster import FakeCluster, later, simulate

A0 = TopicPartition("a", 0)


def refusal(cluster: FakeCluster, error: type[ApiError]) -> OffsetCommitResponse:
    entry = OffsetCommitResponsePartition(partition_index=0, error_code=error.code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(topic_id=cluster.topics["a"][0], partitions=[entry])])


def open_consumer(cluster: FakeCluster) -> Consumer[Any, Any]:
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "g"}
    return Consumer(settings, enable_auto_commit=False, environment=cluster.environment)


def test_a_late_retry_does_not_overwrite_a_newer_offset() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        told: list[tuple[int, ApiError | None]] = []

        def callback(offsets: Offsets, error: ApiError | None) -> None:
            told.append((offsets[A0].offset, error))

        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await asyncio.sleep(1)
            cluster.next(OffsetCommitRequest, later(0.5), refusal(cluster, CoordinatorLoadInProgress))
            futures = [consumer.commit_nowait({A0: offset}, callback=callback) for offset in (1, 2)]
            assert told == []
            await consumer.commit({A0: 3})
            assert [offset for offset, _ in told] == [1, 2]
            assert all(future.done() for future in futures)
            consumer.commit_nowait({A0: CommittedOffset(4)}, callback=callback)
        assert cluster.committed["g", "a", 0][0] == 4
        assert told == [(1, None), (2, None), (4, None)]

    simulate(scenario)


def test_a_failed_commit_tells_its_callback_and_does_not_hold_up_the_next(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        told: list[ApiError | None] = []

        def callback(offsets: Offsets, error: ApiError | None) -> None:
            told.append(error)
            raise ZeroDivisionError

        async with open_consumer(cluster) as consumer:
            consumer.assign([A0])
            await asyncio.sleep(1)
            cluster.next(OffsetCommitRequest, *2 * [refusal(cluster, OffsetMetadataTooLarge)])
            with pytest.raises(OffsetMetadataTooLarge):
                await consumer.commit_nowait({A0: 1}, callback=callback)
            with pytest.raises(OffsetMetadataTooLarge):
                await consumer.commit_nowait({A0: 2})
            await consumer.commit_nowait({A0: 3}, callback=callback)
        assert [type(error) for error in told] == [OffsetMetadataTooLarge, type(None)]
        assert cluster.committed["g", "a", 0][0] == 3

    simulate(scenario)
    assert "a commit failed" in caplog.text
    assert "the callback of a commit failed" in caplog.text
