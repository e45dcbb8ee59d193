"""ShareGroupHeartbeat and ShareGroupDescribe on a whole node."""

from __future__ import annotations

import asyncio

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.wire.messages.classic_groups import JoinGroupRequest, JoinGroupRequestProtocol
from millbeck.wire.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from millbeck.wire.messages.share_groups import ShareGroupDescribeRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator
from tests.unit.server.harness.share_member import ShareMember, begin, configure, create, share_harness


def test_members_get_the_partitions_of_their_topics() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client, partitions=3)
        member = ShareMember(client)
        joined = await member.join("t")
        assert member.assigned == {topic_id: [0, 1, 2]}
        assert joined.heartbeat_interval_ms == 5000
        other = ShareMember(client, "m2")
        await other.join("t")
        for _ in range(30):
            await asyncio.sleep(0.1)
            await member.heartbeat()
            await other.heartbeat()
        assert sorted(member.assigned[topic_id] + other.assigned[topic_id]) == [0, 1, 2]
        described = (await client.ask(ShareGroupDescribeRequest(["g", "none"], True), 1)).groups
        assert [(each.group_id, each.group_state, each.error_code) for each in described] == [
            ("g", "Stable", 0),
            ("none", "", errors.GroupIdNotFound.code),
        ]
        assert described[0].assignor_name == "simple"
        assert described[0].authorized_operations > 0
        assert [each.member_id for each in described[0].members] == ["m1", "m2"]
        assert described[0].members[0].assignment.topic_partitions[0].topic_name == "t"
        assert (await client.ask(ListGroupsRequest(types_filter=["share"]), 5)).groups[0].group_state == "Stable"

    share_harness().run(scenario)


def test_a_member_that_is_not_heard_of_is_removed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, _ = await begin(harness, client, environment)
        await asyncio.sleep(46)
        assert (await member.heartbeat()).error_code == errors.UnknownMemberId.code

    share_harness().run(scenario)


def test_a_group_lives_on_when_the_node_is_started_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        harness.machine.crash()
        await harness.start()
        member.client = await harness.connect(environment)
        await asyncio.sleep(1)
        assert (await member.heartbeat()).error_code == 0
        assert member.assigned == {topic_id: [0]}

    share_harness().run(scenario)


def test_an_id_is_one_kind_of_group() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await begin(harness, client, environment)
        joining = JoinGroupRequest(
            "g", 10_000, 10_000, "", None, "consumer", [JoinGroupRequestProtocol("range", b"\0\0\0\0\0\0")]
        )
        assert (await client.ask(joining, 9)).error_code == errors.InconsistentGroupProtocol.code

    share_harness().run(scenario)


def test_a_group_is_deleted_with_its_state_and_may_begin_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        deleting = DeleteGroupsRequest(["g"])
        assert (await client.ask(deleting, 2)).results[0].error_code == errors.NonEmptyGroup.code
        member.epoch = -1
        assert (await member.heartbeat()).member_epoch == -1
        assert (await client.ask(deleting, 2)).results[0].error_code == 0
        assert harness.node is not None
        assert sum(len(each.host.shard) for each in harness.node.broker.share_state._active()) == 0
        assert (await client.ask(ListGroupsRequest(), 5)).groups == []
        again = ShareMember(client, "m2")
        await again.join("t")
        assert again.assigned == {topic_id: [0]}

    share_harness().run(scenario)


def test_a_deleted_topic_is_taken_from_its_readers() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        from millbeck.wire.messages.topics import DeleteTopicsRequest

        member, _ = await begin(harness, client, environment)
        assert (await client.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)).responses[
            0
        ].error_code == 0
        for _ in range(30):
            await asyncio.sleep(0.2)
            await member.heartbeat()
        assert member.assigned == {}
        assert harness.node is not None
        assert sum(len(each.host.shard) for each in harness.node.broker.share_state._active()) == 0

    share_harness().run(scenario)


def test_settings_of_a_group_count() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert await configure(client, "g", share_heartbeat_interval_ms="7000") == 0
        member = ShareMember(client)
        assert (await member.join("t")).heartbeat_interval_ms == 7000

    share_harness().run(scenario)


def test_share_groups_have_a_coordinator_for_their_state() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        key = "g:AAAAAAAAAAAAAAAAAAAAAQ:0"
        assert (await find_coordinator(client, key, key_type=2)).error_code == 0

    share_harness().run(scenario)
