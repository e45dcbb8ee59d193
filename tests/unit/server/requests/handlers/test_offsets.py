"""OffsetCommit, OffsetFetch and OffsetDelete on a whole node, from bytes to bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, ResourceType
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator

UNKNOWN = errors.UnknownTopicOrPartition.code


async def prepare(client: Client, name: str = "t") -> bytes:
    """A topic of two partitions, and a coordinator."""
    await find_coordinator(client, "g")
    request = CreateTopicsRequest(topics=[CreatableTopic(name, num_partitions=2, replication_factor=1)])
    topic_id: bytes = (await client.ask(request, 7)).topics[0].topic_id
    return topic_id


async def commit(
    client: Client,
    offsets: dict[int, int],
    *,
    version: int = 9,
    topic: str = "t",
    topic_id: bytes = bytes(16),
    **details: Any,
) -> dict[int, int]:
    partitions = [OffsetCommitRequestPartition(index, offset, -1, "note") for index, offset in offsets.items()]
    request = OffsetCommitRequest(
        topics=[OffsetCommitRequestTopic(topic, topic_id, partitions)], **{"group_id": "g"} | details
    )
    response = await client.ask(request, version)
    return {one.partition_index: one.error_code for each in response.topics for one in each.partitions}


async def fetch(
    client: Client,
    indexes: list[int] | None,
    *,
    version: int = 9,
    topic: str = "t",
    topic_id: bytes = bytes(16),
    group: str = "g",
    stable: bool = False,
) -> list[tuple[int, int, str, int]]:
    if version >= 8:
        asked = None if indexes is None else [OffsetFetchRequestTopics(topic, topic_id, indexes)]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)], require_stable=stable
        )
    else:
        old = None if indexes is None else [OffsetFetchRequestTopic(topic, indexes)]
        request = OffsetFetchRequest(group_id=group, topics=old, require_stable=stable)
    response = await client.ask(request, version)
    holder = response.groups[0] if version >= 8 else response
    assert holder.error_code == 0
    return [
        (one.partition_index, one.committed_offset, one.metadata, one.error_code)
        for each in holder.topics
        for one in each.partitions
    ]


@pytest.mark.parametrize("version", range(2, 11))
def test_every_version_of_commit(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await prepare(client)
        assert await commit(client, {0: 5, 1: 6}, version=version, topic_id=topic_id) == {0: 0, 1: 0}
        assert await fetch(client, [0, 1]) == [(0, 5, "note", 0), (1, 6, "note", 0)]

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("version", range(1, 11))
def test_every_version_of_fetch(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await prepare(client)
        await commit(client, {0: 5})
        both = [(0, 5, "note", 0), (1, -1, "", 0)]
        assert await fetch(client, [0, 1], version=version, topic_id=topic_id) == both
        nothing = [(0, -1, "", 0)]
        assert await fetch(client, [0], version=version, topic_id=topic_id, group="unknown") == nothing
        if version >= 2:
            assert await fetch(client, None, version=version) == [(0, 5, "note", 0)]
        if version >= 7:
            assert await fetch(client, [0, 1], version=version, topic_id=topic_id, stable=True) == both

    BrokerHarness().run(scenario)


def test_several_groups_are_answered_in_one_reply_each_with_its_error() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await commit(client, {0: 5})
        await commit(client, {1: 7}, group_id="h")
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("h", "g", "none")]
        response = await client.ask(OffsetFetchRequest(groups=groups), 9)
        found = {
            group.group_id: [
                (one.partition_index, one.committed_offset) for each in group.topics for one in each.partitions
            ]
            for group in response.groups
        }
        assert list(found.items()) == [("h", [(1, 7)]), ("g", [(0, 5)]), ("none", [])]

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("version", [7, 9])
def test_what_is_asked_for_often_is_answered_once(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await commit(client, {0: 5})
        assert await fetch(client, [0] * 1000, version=version) == [(0, 5, "note", 0)]
        if version < 8:
            return
        topics = [OffsetFetchRequestTopics("t", bytes(16), [index, 0]) for index in (0, 1, 0)]
        asked = [OffsetFetchRequestGroup(group_id="g", topics=[topic]) for topic in topics]
        (group,) = (await client.ask(OffsetFetchRequest(groups=asked), version)).groups
        (topic,) = group.topics
        assert [one.partition_index for one in topic.partitions] == [0, 1]
        asked = [OffsetFetchRequestGroup(group_id="g", topics=None)] * 1000
        (group,) = (await client.ask(OffsetFetchRequest(groups=asked), version)).groups
        assert len(group.topics) == 1

    BrokerHarness().run(scenario)


def test_what_does_not_exist_is_refused_and_the_rest_is_stored() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await prepare(client)
        assert await commit(client, {0: 5, 9: 1}) == {0: 0, 9: UNKNOWN}
        assert await commit(client, {0: 6, 9: 1}, version=10, topic_id=topic_id) == {0: 0, 9: UNKNOWN}
        assert await commit(client, {0: 1}, topic="other") == {0: UNKNOWN}
        assert await commit(client, {0: 1}, version=10, topic_id=b"x" * 16) == {0: errors.UnknownTopicId.code}
        assert await fetch(client, None) == [(0, 6, "note", 0)]
        unknown = await fetch(client, [0], version=10, topic_id=b"x" * 16)
        assert unknown == [(0, -1, "", errors.UnknownTopicId.code)]

    BrokerHarness().run(scenario)


def test_a_refused_commit_names_every_partition() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        codes = await commit(client, {0: 5, 9: 1}, member_id="m", generation_id_or_member_epoch=3)
        assert codes == dict.fromkeys((0, 9), errors.GroupIdNotFound.code)
        codes = await commit(client, {0: 5}, version=8, member_id="m", generation_id_or_member_epoch=3)
        assert codes == {0: errors.IllegalGeneration.code}

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("loses_power", [False, True])
def test_committed_offsets_survive_a_crash(loses_power: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        for offset in range(50):
            await commit(client, {0: offset, 1: offset * 2})
        if loses_power:
            # What is only in the page cache may go; a flushed log stays.
            assert harness.node is not None
            for partition in harness.node.broker.topics.by_name["__consumer_offsets"].partitions.values():
                await harness.node.broker.logs.flush(partition)
            harness.machine.power_loss(0.0)
        else:
            harness.machine.crash()
        await harness.start()
        again = await harness.connect(environment)
        assert await fetch(again, [0, 1]) == [(0, 49, "note", 0), (1, 98, "note", 0)]
        assert await commit(again, {0: 50}) == {0: 0}

    BrokerHarness().run(scenario)


def test_offsets_go_with_their_topic() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await prepare(client, "u")
        await commit(client, {0: 5})
        await commit(client, {0: 6}, topic="u")
        await client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5000), 5)
        await prepare(client)
        assert await fetch(client, [0]) == [(0, -1, "", 0)]
        assert await fetch(client, None) == [(0, 6, "note", 0)]

    BrokerHarness().run(scenario)


def test_a_full_disk_refuses_commits_and_keeps_what_was_committed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert await commit(client, {0: 5}) == {0: 0}
        disk = harness.machine.disk
        disk.faults.capacity_bytes = disk.used_bytes + 10
        assert await commit(client, {0: 6, 1: 7}) == dict.fromkeys((0, 1), errors.NotCoordinator.code)
        assert await fetch(client, None) == [(0, 5, "note", 0)]
        disk.faults.capacity_bytes = disk.used_bytes + 10_000_000
        await asyncio.sleep(0.1)
        assert await commit(client, {0: 8}) == {0: 0}
        assert await fetch(client, None) == [(0, 8, "note", 0)]

    BrokerHarness().run(scenario)


def test_offsets_are_deleted_on_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await commit(client, {0: 5, 1: 6})
        topics = [
            OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(index) for index in (0, 9)]),
            OffsetDeleteRequestTopic("other", [OffsetDeleteRequestPartition(0)]),
        ]
        response = await client.ask(OffsetDeleteRequest("g", topics), 0)
        assert response.error_code == 0
        assert [
            (each.name, [(one.partition_index, one.error_code) for one in each.partitions]) for each in response.topics
        ] == [("t", [(0, 0), (9, UNKNOWN)]), ("other", [(0, UNKNOWN)])]
        assert await fetch(client, None) == [(1, 6, "note", 0)]
        missing = await client.ask(OffsetDeleteRequest("missing", topics), 0)
        assert missing.error_code == errors.GroupIdNotFound.code

    BrokerHarness().run(scenario)


class Denying(AllowAll):
    def __init__(self, denied: ResourceType, name: str) -> None:
        self.denied, self.name = denied, name

    def authorize(self, principal: Any, host: str, operation: Any, resource_type: Any, resource_name: str) -> bool:
        return not (resource_type is self.denied and resource_name == self.name)


def test_a_group_one_may_not_use() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await commit(client, {0: 5})
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(ResourceType.GROUP, "g")
        code = errors.GroupAuthorizationFailed.code
        assert await commit(client, {0: 5}) == {0: code}
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("g", "h")]
        response = await client.ask(OffsetFetchRequest(groups=groups), 9)
        assert [group.error_code for group in response.groups] == [code, 0]
        oldest = await client.ask(OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic("t", [0])]), 1)
        assert oldest.topics[0].partitions[0].error_code == code
        assert (await client.ask(OffsetDeleteRequest("g", []), 0)).error_code == code

    BrokerHarness().run(scenario)


def test_a_topic_one_may_not_read() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await commit(client, {0: 5})
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(ResourceType.TOPIC, "t")
        code = errors.TopicAuthorizationFailed.code
        assert await commit(client, {0: 6}) == {0: code}
        assert await fetch(client, [0]) == [(0, -1, "", code)]
        assert await fetch(client, None) == []
        request = OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])])
        assert (await client.ask(request, 0)).topics[0].partitions[0].error_code == code

    BrokerHarness().run(scenario)


def test_an_unavailable_coordinator_is_told_as_one_to_look_for_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        groups = [OffsetFetchRequestGroup(group_id="g", topics=None)]
        response = await client.ask(OffsetFetchRequest(groups=groups), 9)
        assert response.groups[0].error_code == errors.NotCoordinator.code

    BrokerHarness().run(scenario)
