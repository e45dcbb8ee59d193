"""The classic group APIs on a whole node, from bytes to bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.wire.messages.classic_groups import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from millbeck.wire.messages.groups import DeleteGroupsRequest, ListGroupsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


async def find(client: Client) -> None:
    await find_coordinator(client, "g")


def join_request(member_id: str = "", instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff")],
    )


async def join(client: Client, version: int = 9) -> Any:
    """As a client does: again with the id, when it is given one."""
    response = await client.ask(join_request(), version)
    if response.error_code == errors.MemberIdRequired.code:
        response = await client.ask(join_request(response.member_id), version)
    assert response.error_code == 0
    return response


@pytest.mark.parametrize(("version", "name"), [(6, ""), (7, None)])
def test_no_protocol_is_null_only_from_version_7(version: int, name: str | None) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        early = await client.ask(join_request(), version)
        assert (early.error_code, early.protocol_name) == (errors.NotCoordinator.code, name), "there is no shard yet"
        await find(client)
        unnamed = await client.ask(join_request(), version)
        assert (unnamed.error_code, unnamed.protocol_name) == (errors.MemberIdRequired.code, name)

    BrokerHarness().run(scenario)


def sync_request(joined: Any, version: int = 5, **work: bytes) -> SyncGroupRequest:
    named = version >= 5
    return SyncGroupRequest(
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer" if named else None,
        protocol_name="range" if named else None,
        assignments=[SyncGroupRequestAssignment(member.member_id, b"work") for member in joined.members],
    )


async def stable(client: Client) -> Any:
    await find(client)
    joined = await join(client)
    assert (await client.ask(sync_request(joined), 5)).error_code == 0
    return joined


@pytest.mark.parametrize("version", range(10))
def test_every_version_of_join_and_sync(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find(client)
        joined = await join(client, version)
        assert joined.generation_id == 1
        assert joined.member_id.startswith("test-")
        assert len(joined.member_id) == len("test-") + 36
        assert (joined.leader, joined.protocol_name) == (joined.member_id, "range")
        sync_version = min(version, 5)
        synced = await client.ask(sync_request(joined, sync_version), sync_version)
        assert (synced.error_code, synced.assignment) == (0, b"work")
        for heartbeat_version in range(5):
            beat = await client.ask(HeartbeatRequest("g", 1, joined.member_id), heartbeat_version)
            assert beat.error_code == 0

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_leave(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        request = LeaveGroupRequest(group_id="g")
        if version >= 3:
            request.members = [MemberIdentity(joined.member_id), MemberIdentity("stranger")]
        else:
            request.member_id = joined.member_id
        unknown = errors.UnknownMemberId.code
        left = await client.ask(request, version)
        assert left.error_code == 0
        assert [one.error_code for one in left.members] == ([0, unknown] if version >= 3 else [])
        request.group_id = "other"
        left = await client.ask(request, version)
        assert left.error_code == (0 if version >= 3 else unknown)
        assert [(one.member_id, one.error_code) for one in left.members] == [
            (one.member_id, unknown) for one in request.members
        ]

    BrokerHarness().run(scenario)


def test_a_rebalance_holds_its_members_and_nobody_else() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await stable(client)
        other = await harness.connect(environment)
        given = await other.ask(join_request(), 9)
        waiting = other.send(join_request(given.member_id), 9)
        behind = other.send(ListGroupsRequest(), 5)
        await asyncio.sleep(1)
        assert not waiting.done()
        assert not behind.done(), "requests of a held connection wait"
        beat = await client.ask(HeartbeatRequest("g", 1, first.member_id), 4)
        assert beat.error_code == errors.RebalanceInProgress.code
        rejoined = await client.ask(join_request(first.member_id), 9)
        assert rejoined.generation_id == 2
        assert len(rejoined.members) == 2
        joined = await waiting
        assert (joined.generation_id, joined.members, joined.leader) == (2, [], rejoined.leader)
        assert (await behind).error_code == 0

    BrokerHarness().run(scenario)


def test_sessions_end_on_the_loop_s_own_timers() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await stable(client)
        await asyncio.sleep(9.5)
        assert (await described(client)).group_state == "Stable"
        await asyncio.sleep(1)
        assert (await described(client)).group_state == "Empty"

    BrokerHarness().run(scenario)


async def described(client: Client, group: str = "g", version: int = 6, **details: Any) -> Any:
    return (await client.ask(DescribeGroupsRequest([group], **details), version)).groups[0]


@pytest.mark.parametrize("version", range(7))
def test_every_version_of_describe(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        group = await described(client, version=version)
        assert (group.error_code, group.group_state, group.protocol_type) == (0, "Stable", "consumer")
        member = group.members[0]
        assert (member.member_id, member.client_id) == (joined.member_id, "test")
        assert member.client_host.startswith("/")
        assert group.authorized_operations == -(2**31)
        missing = await described(client, "missing", version)
        code = errors.GroupIdNotFound.code if version >= 6 else 0
        assert (missing.group_state, missing.error_code) == ("Dead", code)
        if version >= 3:
            asked = await described(client, version=version, include_authorized_operations=True)
            assert asked.authorized_operations > 0

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("version", range(6))
def test_every_version_of_list(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await client.ask(ListGroupsRequest(), version)).groups == []
        await stable(client)
        listed = (await client.ask(ListGroupsRequest(), version)).groups
        assert [(group.group_id, group.protocol_type) for group in listed] == [("g", "consumer")]
        if version >= 4:
            assert listed[0].group_state == "Stable"
            assert (await client.ask(ListGroupsRequest(states_filter=["Empty"]), version)).groups == []
        if version >= 5:
            assert (await client.ask(ListGroupsRequest(types_filter=["share"]), version)).groups == []

    BrokerHarness().run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_every_version_of_delete(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        request = DeleteGroupsRequest(["g", "missing", "also missing", "g"])
        results = (await client.ask(request, version)).results
        assert {one.group_id: one.error_code for one in results} == {
            "g": errors.NonEmptyGroup.code,
            "missing": errors.GroupIdNotFound.code,
            "also missing": errors.GroupIdNotFound.code,
        }
        await client.ask(LeaveGroupRequest("g", joined.member_id), 2)
        results = (await client.ask(DeleteGroupsRequest(["g"]), version)).results
        assert [one.error_code for one in results] == [0]
        assert (await client.ask(ListGroupsRequest(), 5)).groups == []

    BrokerHarness().run(scenario)


def test_a_group_survives_a_crash() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        harness.machine.crash()
        await harness.start()
        again = await harness.connect(environment)
        assert (await again.ask(HeartbeatRequest("g", 1, joined.member_id), 4)).error_code == 0
        synced = await again.ask(sync_request(joined), 5)
        assert (synced.error_code, synced.assignment) == (0, b"work")

    BrokerHarness().run(scenario)


def test_before_the_topic_is_there_nobody_coordinates() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for request, version in ((join_request(), 9), (HeartbeatRequest("g"), 4), (LeaveGroupRequest("g"), 2)):
            assert (await client.ask(request, version)).error_code == errors.NotCoordinator.code
        assert (await described(client)).error_code == errors.NotCoordinator.code
        deleted = (await client.ask(DeleteGroupsRequest(["g"]), 2)).results
        assert deleted[0].error_code == errors.NotCoordinator.code

    BrokerHarness().run(scenario)


def test_a_sync_must_name_its_protocol_from_version_5_on() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=joined.member_id)
        assert (await client.ask(request, 5)).error_code == errors.InconsistentGroupProtocol.code
        assert (await client.ask(request, 4)).error_code == 0

    BrokerHarness().run(scenario)


class Denying(AllowAll):
    """Allows everything but these operations on groups, and describing the cluster."""

    def __init__(self, *denied: Operation) -> None:
        self.denied = denied

    def authorize(self, principal: Any, host: str, operation: Any, resource_type: Any, resource_name: str) -> bool:
        if resource_type is ResourceType.CLUSTER:
            return bool(operation is not Operation.DESCRIBE)
        return not (resource_type is ResourceType.GROUP and operation in self.denied)


def test_who_may_not_read_a_group_may_not_be_in_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        joined = await stable(client)
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(Operation.READ)
        for request, version in (
            (join_request(), 9),
            (sync_request(joined), 5),
            (HeartbeatRequest("g", 1, joined.member_id), 4),
            (LeaveGroupRequest("g", members=[MemberIdentity(joined.member_id)]), 5),
        ):
            assert (await client.ask(request, version)).error_code == errors.GroupAuthorizationFailed.code

    BrokerHarness().run(scenario)


def test_who_may_not_describe_or_delete_a_group_does_not_see_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await stable(client)
        assert harness.node is not None
        harness.node.broker.authorizer = Denying(Operation.DESCRIBE, Operation.DELETE)
        assert (await described(client)).error_code == errors.GroupAuthorizationFailed.code
        assert (await client.ask(ListGroupsRequest(), 5)).groups == []
        deleted = (await client.ask(DeleteGroupsRequest(["g", "h"]), 2)).results
        assert [one.error_code for one in deleted] == [errors.GroupAuthorizationFailed.code] * 2

    BrokerHarness().run(scenario)


def test_a_group_that_is_named_often_is_described_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find(client)
        answer = await client.ask(DescribeGroupsRequest(["a", "b"] * 500), 5)
        assert [group.group_id for group in answer.groups] == ["a", "b"]

    BrokerHarness().run(scenario)


def test_a_members_id_begins_with_no_more_than_a_part_of_a_long_client_id() -> None:
    """Otherwise the id may become longer than a string may be, and the answer cannot be encoded."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await stable(client)
        other, last = await harness.connect(environment), await harness.connect(environment)
        long_named = asyncio.ensure_future(other.ask(join_request(), 3, client_id="c" * (2**15 - 1)))
        await asyncio.sleep(0.1)
        joined_last = asyncio.ensure_future(join(last))
        await asyncio.sleep(0.1)
        assert (await client.ask(join_request(first.member_id), 9)).generation_id == 2
        assert len((await long_named).member_id) < 300
        assert (await joined_last).generation_id == 2

    BrokerHarness().run(scenario)
