"""Administration of groups and of what they have committed."""

from __future__ import annotations

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import GroupOffset
from millbeck.client.group_protocol import encode_assignment
from millbeck.kernel.errors import (
    CoordinatorLoadInProgress,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    NotCoordinator,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.classic_groups import (
    DescribedClassicGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from millbeck.wire.messages.consumer_groups import DescribedConsumerGroup as ConsumerGroup
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from millbeck.wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def test_groups_of_all_brokers_are_listed() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def listing(call: Call) -> ListGroupsResponse:
            group = ListedGroup(
                group_id=f"g{3 - call.node_id}", protocol_type="consumer", group_state="Stable", group_type="classic"
            )
            return ListGroupsResponse(groups=[group])

        cluster.on(ListGroupsRequest, listing)
        async with open_admin(cluster) as admin:
            found = await admin.list_groups(states=["Stable"], types=["classic"])
        assert list(found) == ["g1", "g2"]
        assert (found["g1"].state, found["g1"].type, found["g1"].protocol_type) == ("Stable", "classic", "consumer")
        request = cluster.asked(ListGroupsRequest)[0].message
        assert (request.states_filter, request.types_filter) == (["Stable"], ["classic"])

    simulate(scenario, brokers=2)


def test_a_broker_whose_groups_load_is_asked_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.next(ListGroupsRequest, ListGroupsResponse(error_code=CoordinatorLoadInProgress.code))
        cluster.on(ListGroupsRequest, lambda call: ListGroupsResponse())
        async with open_admin(cluster) as admin:
            assert await admin.list_groups() == {}

    simulate(scenario)


def no_consumer_group(call: Call) -> ConsumerGroupDescribeResponse:
    (name,) = call.message.group_ids
    return ConsumerGroupDescribeResponse(groups=[ConsumerGroup(group_id=name, error_code=GroupIdNotFound.code)])


def test_describing_groups() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def describe(call: Call) -> DescribeGroupsResponse:
            (name,) = call.message.groups
            if name == "ghost":
                group = DescribedClassicGroup(group_id=name, error_code=GroupIdNotFound.code, error_message="no ghost")
                return DescribeGroupsResponse(groups=[group])
            members = [
                DescribedGroupMember(
                    member_id="m1",
                    group_instance_id="i",
                    client_id="c",
                    client_host="/1.2.3.4",
                    member_assignment=encode_assignment([A1, A0]),
                ),
                DescribedGroupMember(member_id="m2", member_assignment=b"\xff", member_metadata=b"x"),
            ]
            kind = "consumer" if name == "g" else "connect"
            group = DescribedClassicGroup(
                group_id=name, group_state="Stable", protocol_type=kind, protocol_data="range", members=members
            )
            return DescribeGroupsResponse(groups=[group])

        cluster.on(DescribeGroupsRequest, describe)
        cluster.on(ConsumerGroupDescribeRequest, no_consumer_group)
        cluster.coordinator_id = 2
        async with open_admin(cluster) as admin:
            found = await admin.describe_groups(["g", "ghost", "workers"])
        group = found["g"]
        assert (group.state, group.protocol, group.coordinator_id) == ("Stable", "range", 2)
        first, second = group.members
        assert (first.member_id, first.instance_id, first.host) == ("m1", "i", "/1.2.3.4")
        assert first.assignment == (A0, A1)
        assert (second.assignment, second.assignment_bytes, second.metadata) == ((), b"\xff", b"x")
        assert found["workers"].members[0].assignment == ()
        with pytest.raises(GroupIdNotFound, match="no ghost"):
            found["ghost"]

    simulate(scenario, brokers=2)


def test_a_coordinator_that_moved_is_looked_for_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def describe(call: Call) -> DescribeGroupsResponse:
            code = NotCoordinator.code if call.node_id == 1 else 0
            cluster.coordinator_id = 2
            return DescribeGroupsResponse(
                groups=[DescribedClassicGroup(group_id="g", error_code=code, group_state="Empty")]
            )

        cluster.coordinator_id = 1
        cluster.on(DescribeGroupsRequest, describe)
        async with open_admin(cluster) as admin:
            assert (await admin.describe_groups(["g"]))["g"].coordinator_id == 2

    simulate(scenario, brokers=2)


def test_deleting_groups() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        def delete(call: Call) -> DeleteGroupsResponse:
            (name,) = call.message.groups_names
            code = NonEmptyGroup.code if name == "busy" else 0
            return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name, error_code=code)])

        cluster.on(DeleteGroupsRequest, delete)
        async with open_admin(cluster) as admin:
            found = await admin.delete_groups(["idle", "busy"])
        assert list(found.succeeded) == ["idle"]
        assert isinstance(found.failed["busy"], NonEmptyGroup)

    simulate(scenario)


def test_committed_offsets() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.committed["g", "a", 0] = (5, 2, "note")
        async with open_admin(cluster) as admin:
            found = await admin.list_group_offsets({"g": [A0, A1], "nobody": None})
            assert found["g"] == {A0: GroupOffset(offset=5, leader_epoch=2, metadata="note")}
            assert found["nobody"] == {}
            assert (await admin.list_group_offsets(["g"]))["g"][A0].offset == 5

    simulate(scenario)


def test_altering_offsets() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_admin(cluster) as admin:
            wanted = {A0: GroupOffset(offset=7, metadata="by hand"), A1: GroupOffset(offset=0)}
            assert (await admin.alter_group_offsets("g", wanted)).all() == wanted
            assert cluster.committed["g", "a", 0] == (7, -1, "by hand")
            (call,) = cluster.asked(OffsetCommitRequest)
            assert (call.message.member_id, call.message.generation_id_or_member_epoch) == ("", -1)

            refused = [
                OffsetCommitResponsePartition(partition_index=0, error_code=UnknownMemberId.code),
                OffsetCommitResponsePartition(partition_index=1),
            ]
            cluster.next(
                OffsetCommitRequest,
                OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="a", partitions=refused)]),
            )
            found = await admin.alter_group_offsets("g", wanted)
            assert isinstance(found.failed[A0], UnknownMemberId)
            assert list(found.succeeded) == [A1]

    simulate(scenario)


def test_deleting_offsets() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        results = [
            OffsetDeleteResponsePartition(partition_index=0),
            OffsetDeleteResponsePartition(partition_index=1, error_code=GroupSubscribedToTopic.code),
        ]
        cluster.next(OffsetDeleteRequest, OffsetDeleteResponse(error_code=CoordinatorLoadInProgress.code))
        cluster.on(
            OffsetDeleteRequest,
            lambda call: (
                OffsetDeleteResponse(topics=[OffsetDeleteResponseTopic(name="a", partitions=results)])
                if call.message.group_id == "g"
                else OffsetDeleteResponse(error_code=GroupIdNotFound.code)
            ),
        )
        async with open_admin(cluster) as admin:
            found = await admin.delete_group_offsets("g", [A0, A1])
            assert list(found.succeeded) == [A0]
            assert isinstance(found.failed[A1], GroupSubscribedToTopic)
            with pytest.raises(GroupIdNotFound):
                await admin.delete_group_offsets("ghost", [A0])

    simulate(scenario)


def test_an_error_of_one_partition_names_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        original = cluster._committed
        cluster._committed = lambda group_id, name, number: (  # type: ignore[method-assign]
            original(group_id, name, number) | {"error_code": UnknownTopicOrPartition.code}
        )
        async with open_admin(cluster) as admin:
            found = await admin.list_group_offsets({"g": [A0]})
            with pytest.raises(UnknownTopicOrPartition, match="a-0"):
                found["g"]

    simulate(scenario)
