from __future__ import annotations

import pytest

from millbeck.client.admin import Admin
from millbeck.kernel.errors import GroupIdNotFound, UnsupportedVersion
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.classic_groups import DescribedClassicGroup as ClassicGroup
from millbeck.wire.messages.classic_groups import DescribeGroupsRequest, DescribeGroupsResponse
from millbeck.wire.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeTopicPartitions,
    ConsumerGroupMember,
    DescribedConsumerAssignment,
    DescribedConsumerGroup,
)
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate


def no_classic_group(call: Call) -> DescribeGroupsResponse:
    (name,) = call.message.groups
    return DescribeGroupsResponse(groups=[ClassicGroup(group_id=name, group_state="Dead", error_code=69)])


def test_a_group_in_which_the_broker_assigns_is_described() -> None:
    def describe(call: Call) -> ConsumerGroupDescribeResponse:
        topics = [ConsumerGroupDescribeTopicPartitions(b"t" * 16, "t", [1, 0])]
        member = ConsumerGroupMember(
            member_id="m",
            member_epoch=4,
            client_id="c",
            client_host="/h",
            assignment=DescribedConsumerAssignment(topics),
            member_type=1,
        )
        group = DescribedConsumerGroup(
            group_id="g", group_state="Stable", group_epoch=5, assignment_epoch=4, assignor_name="uniform"
        )
        group.members = [member]
        return ConsumerGroupDescribeResponse(groups=[group])

    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(DescribeGroupsRequest, no_classic_group)
        cluster.on(ConsumerGroupDescribeRequest, describe)
        async with Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as admin:
            found = (await admin.describe_groups(["g"]))["g"]
        assert (found.type, found.state, found.protocol, found.epoch, found.target_epoch) == (
            "consumer",
            "Stable",
            "uniform",
            5,
            4,
        )
        (member,) = found.members
        assert (member.epoch, member.uses_classic_protocol, member.target_assignment) == (4, False, ())
        assert member.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))

    simulate(scenario)


@pytest.mark.parametrize("code", [GroupIdNotFound.code, UnsupportedVersion.code])
def test_a_group_of_no_kind_is_not_found(code: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(DescribeGroupsRequest, no_classic_group)
        cluster.on(
            ConsumerGroupDescribeRequest,
            lambda call: ConsumerGroupDescribeResponse(groups=[DescribedConsumerGroup(group_id="g", error_code=code)]),
        )
        async with Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as admin:
            found = await admin.describe_groups(["g"])
        with pytest.raises(GroupIdNotFound):
            found["g"]

    simulate(scenario)
