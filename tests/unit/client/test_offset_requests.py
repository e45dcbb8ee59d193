"""Offsets by time and committed offsets, asked for in every version a broker may have."""

from __future__ import annotations

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.cluster import Cluster
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.offset_requests import by_topic, fetch_committed, list_offsets
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import GroupAuthorizationFailed, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.group_offsets import OffsetFetchRequest, OffsetFetchResponse, OffsetFetchResponseGroup
from millbeck.wire.messages.log_offsets import ListOffsetsRequest
from tests.unit.client.fake_cluster import FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


async def open_cluster(fake: FakeCluster) -> Cluster:
    cluster = Cluster(fake.environment, AdminConfig.parse({"bootstrap.servers": fake.bootstrap}))
    cluster.add_topics(["a"])
    await cluster.refresh(Deadline(30))
    return cluster


def test_partitions_by_topic_keep_their_order() -> None:
    assert by_topic([A1, TopicPartition("b", 3), A0]) == {"a": [1, 0], "b": [3]}


@pytest.mark.parametrize(("highest", "by_id"), [(1, False), (7, False), (8, False), (9, False), (10, True)])
def test_committed_offsets_in_every_form(highest: int, by_id: bool) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 2)
        fake.limit(OffsetFetchRequest, 1, highest)
        fake.committed["g", "a", 1] = (42, 3, "note")
        cluster = await open_cluster(fake)
        found = await fetch_committed(cluster, 1, "g", [A0, A1], deadline=Deadline(30))
        assert found[A0].committed_offset == -1
        assert (found[A1].committed_offset, found[A1].metadata) == (42, "note")
        (call,) = fake.asked(OffsetFetchRequest)
        assert call.version == highest
        if by_id:
            assert call.message.groups[0].topics[0].topic_id == fake.topics["a"][0]
        await cluster.close()

    simulate(scenario)


def test_a_topic_without_a_known_id_is_asked_for_by_name() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        fake.add_topic("b")
        cluster = await open_cluster(fake)
        await fetch_committed(cluster, 1, "g", [A0, TopicPartition("b", 0)], deadline=Deadline(30))
        assert fake.asked(OffsetFetchRequest)[0].version == 9
        await cluster.close()

    simulate(scenario)


def test_all_partitions_are_asked_for_by_name() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 2)
        fake.committed["g", "a", 1] = (42, 3, "")
        cluster = await open_cluster(fake)
        found = await fetch_committed(cluster, 1, "g", None, deadline=Deadline(30), require_stable=True)
        assert {partition: entry.committed_offset for partition, entry in found.items()} == {A1: 42}
        (call,) = fake.asked(OffsetFetchRequest)
        assert call.version == 9
        assert call.message.require_stable
        await cluster.close()

    simulate(scenario)


def test_an_error_of_the_group_is_raised() -> None:
    async def scenario(fake: FakeCluster) -> None:
        cluster = await open_cluster(fake)
        fake.next(
            OffsetFetchRequest,
            OffsetFetchResponse(
                groups=[OffsetFetchResponseGroup(group_id="g", error_code=GroupAuthorizationFailed.code)]
            ),
        )
        with pytest.raises(GroupAuthorizationFailed):
            await fetch_committed(cluster, 1, "g", None, deadline=Deadline(30))
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize(("checks_epochs", "epoch"), [(True, 6), (False, -1)])
def test_offsets_by_time_carry_epochs_when_asked_to(checks_epochs: bool, epoch: int) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a", 1)[0].leader_epoch = 6
        cluster = await open_cluster(fake)
        found = await list_offsets(
            cluster, 1, {A0: -1}, isolation_level=1, deadline=Deadline(30), checks_epochs=checks_epochs
        )
        assert getattr(found[A0], "offset", None) == 0
        (call,) = fake.asked(ListOffsetsRequest)
        assert call.message.isolation_level == 1
        assert call.message.topics[0].partitions[0].current_leader_epoch == epoch
        await cluster.close()

    simulate(scenario)


def test_each_partition_has_its_own_error() -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        cluster = await open_cluster(fake)
        found = await list_offsets(cluster, 1, {A0: -1, A1: -1}, isolation_level=0, deadline=Deadline(30))
        assert isinstance(found[A1], UnknownTopicOrPartition)
        assert not isinstance(found[A0], UnknownTopicOrPartition)
        await cluster.close()

    simulate(scenario)


@pytest.mark.parametrize(("timestamp", "needed"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11)])
def test_special_timestamps_need_their_version(timestamp: int, needed: int) -> None:
    async def scenario(fake: FakeCluster) -> None:
        fake.add_topic("a")
        fake.limit(ListOffsetsRequest, 1, needed - 1)
        cluster = await open_cluster(fake)
        with pytest.raises(UnsupportedByBroker):
            await list_offsets(cluster, 1, {A0: timestamp}, isolation_level=0, deadline=Deadline(30))
        await cluster.close()

    simulate(scenario)
