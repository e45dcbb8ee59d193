"""Describing, setting and deleting where share groups stand, on a whole node."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.wire.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import (
    ACCEPT,
    ShareMember,
    abort_a_transaction,
    acquired,
    begin,
    create,
    settled,
    share_harness,
)


async def described(client: Client, topics: list[tuple[str, list[int]]] | None = None, group: str = "g") -> Any:
    named = None if topics is None else [DescribeShareGroupOffsetsRequestTopic(*each) for each in topics]
    request = DescribeShareGroupOffsetsRequest([DescribeShareGroupOffsetsRequestGroup(group, named)])
    return (await client.ask(request, 1)).groups[0]


def places(group: Any) -> list[tuple[str, int, int, int, int]]:
    return [
        (topic.topic_name, each.partition_index, each.start_offset, each.lag, each.error_code)
        for topic in group.topics
        for each in topic.partitions
    ]


def altering(offset: int, name: str = "t", partition: int = 0, group: str = "g") -> AlterShareGroupOffsetsRequest:
    partitions = [AlterShareGroupOffsetsRequestPartition(partition, offset)]
    return AlterShareGroupOffsetsRequest(group, [AlterShareGroupOffsetsRequestTopic(name, partitions)])


async def leave(member: ShareMember, topic_id: bytes) -> None:
    await member.fetch(topic_id, epoch=-1)
    member.epoch = -1
    await member.heartbeat()


def test_the_lag_is_what_is_not_settled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 1, [ACCEPT]), (5, 7, [ACCEPT]))
        assert places(await described(client)) == [("t", 0, 2, 5, 0)]
        assert places(await described(client, [("none", [0]), ("t", [0])])) == [
            ("none", 0, -1, -1, 0),
            ("t", 0, 2, 5, 0),
        ]
        nothing = await described(client, group="none")
        assert (nothing.error_code, nothing.topics) == (0, [])
        assert places(await described(client, [("t", [0])], group="none")) == [("t", 0, -1, -1, 0)]

    share_harness().run(scenario)


def test_partitions_without_a_coordinator_are_waited_for_together() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=20)
        member = ShareMember(client)
        await member.join("t", is_assigned=False)
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        answer = await described(client, [("t", list(range(20)))])
        assert loop.time() - began_s < 12
        assert places(answer) == [("t", index, -1, -1, errors.CoordinatorNotAvailable.code) for index in range(20)]

    share_harness(**{"share.coordinator.state.topic.replication.factor": "3"}).run(scenario)


def test_a_group_begins_where_it_was_set() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 9, [ACCEPT]))
        assert (await client.ask(altering(3), 0)).error_code == errors.NonEmptyGroup.code
        await leave(member, topic_id)
        answer = await client.ask(altering(3), 0)
        assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
        refused = await client.ask(altering(3, name="none"), 0)
        assert refused.responses[0].partitions[0].error_code == errors.UnknownTopicOrPartition.code
        assert places(await described(client)) == [("t", 0, 3, 7, 0)]
        again = ShareMember(client, "m2")
        await again.join("t")
        assert acquired(await settled(again, topic_id)) == [(3, 9, 1)]

    share_harness().run(scenario)


def test_a_start_may_be_set_before_the_group_is_there() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await begin(harness, client, environment)
        answer = await client.ask(altering(4, group="new"), 0)
        assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
        assert places(await described(client, group="new")) == [("t", 0, 4, 6, 0)]

    share_harness().run(scenario)


def test_what_is_deleted_begins_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        deleting = DeleteShareGroupOffsetsRequest("g", [DeleteShareGroupOffsetsRequestTopic("t")])
        assert (await client.ask(deleting, 0)).error_code == errors.NonEmptyGroup.code
        await leave(member, topic_id)
        answer = await client.ask(deleting, 0)
        assert (answer.error_code, answer.responses[0].error_code) == (0, 0)
        assert places(await described(client)) == []
        again = ShareMember(client, "m2")
        await again.join("t")
        assert acquired(await settled(again, topic_id)) == [(0, 9, 1)]

    share_harness().run(scenario)


def test_markers_at_the_end_are_no_lag() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=1)
        await settled(member, topic_id)
        await member.acknowledge(topic_id, (0, 0, [ACCEPT]))
        assert harness.node is not None
        abort_a_transaction(harness, harness.node.broker.topics.led_partition("t", 0))
        await asyncio.sleep(0.2)
        for first, last, _ in acquired(await member.fetch(topic_id)):
            await member.acknowledge(topic_id, (first, last, [ACCEPT]))
        await member.fetch(topic_id)
        await asyncio.sleep(0.1)
        assert places(await described(client)) == [("t", 0, 3, 0, 0)]

    share_harness().run(scenario)
