"""Committed offsets written and read, in every version and through every passing trouble."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.consumer.commits import commit, committed
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    CoordinatorLoadInProgress,
    FencedInstanceId,
    NotCoordinator,
    OffsetMetadataTooLarge,
    UnstableOffsetCommit,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from millbeck.wire.messages.group_offsets import OffsetFetchResponsePartitions as FetchedEntry
from millbeck.wire.messages.group_offsets import OffsetFetchResponseTopics as FetchedTopic
from millbeck.wire.messages.groups import FindCoordinatorRequest
from millbeck.wire.messages.metadata import MetadataRequest
from tests.unit.client.fake_cluster import CLOSE, FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


async def open_cluster(fake: FakeCluster) -> Cluster:
    cluster = Cluster(fake.environment, AdminConfig.parse({"bootstrap.servers": fake.bootstrap}))
    cluster.add_topics(["a"])
    await cluster.refresh(Deadline(30))
    return cluster


def refusal(fake: FakeCluster, error: Any) -> OffsetCommitResponse:
    entry = OffsetCommitResponsePartition(partition_index=0, error_code=error.code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(topic_id=fake.topics["a"][0], partitions=[entry])])


@pytest.mark.parametrize("highest", [2, 5, 6, 7, 9, 10])
def test_a_commit_is_read_back_in_every_version(highest: int) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 2)
        fake.limit(OffsetCommitRequest, 2, highest)
        cluster = await open_cluster(fake)
        offsets = {A0: CommittedOffset(5, 3, "note"), A1: CommittedOffset(9)}
        await commit(cluster, "g", lambda: Committer("m", 4), offsets, timeout_s=30)
        found = await committed(cluster, "g", [A0, A1], timeout_s=30)
        assert {partition: entry.offset for partition, entry in found.items()} == {A0: 5, A1: 9}
        assert found[A0].metadata == "note"
        (call,) = fake.asked(OffsetCommitRequest)
        assert (call.version, call.message.member_id, call.message.generation_id_or_member_epoch) == (highest, "m", 4)
        await cluster.close()

    simulate(scenario)


def test_topics_without_a_known_id_are_named() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        fake.limit(MetadataRequest, 0, 9)
        cluster = await open_cluster(fake)
        await commit(cluster, "g", Committer, {A0: CommittedOffset(5)}, timeout_s=30)
        assert fake.committed["g", "a", 0][0] == 5
        assert fake.asked(OffsetCommitRequest)[0].version == 9
        await cluster.close()

    simulate(scenario)


def test_partitions_without_a_commit_are_missing() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 2)
        cluster = await open_cluster(fake)
        assert await committed(cluster, "g", [A0], timeout_s=30) == {}
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize("error", [NotCoordinator, CoordinatorLoadInProgress])
def test_a_coordinator_that_moved_or_loads_is_looked_for_again(error: Any) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        cluster = await open_cluster(fake)
        fake.next(OffsetCommitRequest, refusal(fake, error), CLOSE)
        await commit(cluster, "g", Committer, {A0: CommittedOffset(5)}, timeout_s=30)
        assert fake.committed["g", "a", 0][0] == 5
        assert len(fake.asked(FindCoordinatorRequest)) == 3
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize("error", [OffsetMetadataTooLarge, FencedInstanceId])
def test_a_final_error_is_raised(error: Any) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        cluster = await open_cluster(fake)
        fake.on(OffsetCommitRequest, lambda call: refusal(fake, error))
        with pytest.raises(error):
            await commit(cluster, "g", Committer, {A0: CommittedOffset(5)}, timeout_s=30)
        assert len(fake.asked(OffsetCommitRequest)) == 1
        await cluster.close()

    simulate(scenario)


def test_offsets_of_an_open_transaction_are_waited_for() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        fake.committed["g", "a", 0] = (5, -1, "")
        cluster = await open_cluster(fake)
        entry = FetchedEntry(partition_index=0, committed_offset=-1, metadata="", error_code=UnstableOffsetCommit.code)
        topic = FetchedTopic(topic_id=fake.topics["a"][0], partitions=[entry])
        fake.next(
            OffsetFetchRequest, OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])
        )
        found = await committed(cluster, "g", [A0], timeout_s=30, require_stable=True)
        assert found[A0].offset == 5
        assert all(call.message.require_stable for call in fake.asked(OffsetFetchRequest))
        await cluster.close()

    simulate(scenario)


def test_each_attempt_asks_who_commits() -> None:
    """A member that joined again in between commits under its new generation."""

    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        cluster = await open_cluster(fake)
        fake.next(OffsetCommitRequest, CLOSE)
        generations = iter([1, 2])
        await commit(cluster, "g", lambda: Committer("m", next(generations)), {A0: CommittedOffset(5)}, timeout_s=30)
        calls = fake.asked(OffsetCommitRequest)
        assert [call.message.generation_id_or_member_epoch for call in calls] == [1, 2]
        await cluster.close()

    simulate(scenario)
