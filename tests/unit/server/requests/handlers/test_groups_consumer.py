"""The APIs of consumer groups on a whole node, from bytes to bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.consumer_groups import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


async def prepare(client: Client, *topics: str) -> None:
    await find_coordinator(client, "g")
    wanted = [CreatableTopic(name, num_partitions=2, replication_factor=1) for name in topics or ("t",)]
    await client.ask(CreateTopicsRequest(topics=wanted), 7)


def beat(member_id: str = "m", epoch: int = 0, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], **fields}
        if "subscribed_topic_regex" not in fields:
            fields.setdefault("subscribed_topic_names", ["t"])
    return ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)


def partitions(response: Any) -> list[int]:
    return [each for topic in response.assignment.topic_partitions for each in topic.partitions]


def test_a_member_joins_grows_with_its_topic_and_is_described() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        joined = await client.ask(beat(), 1)
        assert (joined.error_code, joined.member_epoch, partitions(joined)) == (0, 1, [0, 1])
        await client.ask(CreatePartitionsRequest([CreatePartitionsTopic("t", 3, None)], 5000), 3)
        await asyncio.sleep(1.5)
        grown = await client.ask(beat(epoch=1), 1)
        assert (grown.member_epoch, partitions(grown)) == (2, [0, 1, 2])
        request = ConsumerGroupDescribeRequest(["g", "other"], include_authorized_operations=True)
        found, missing = (await client.ask(request, 1)).groups
        assert (found.group_state, found.group_epoch, found.assignor_name) == ("Stable", 2, "uniform")
        assert found.members[0].client_host.startswith("/")
        assert found.authorized_operations > 0
        assert missing.error_code == errors.GroupIdNotFound.code

    BrokerHarness().run(scenario)


def test_version_0_describes_a_group_with_members() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await client.ask(beat(), 1)
        (newest,) = (await client.ask(ConsumerGroupDescribeRequest(["g"]), 1)).groups
        (oldest,) = (await client.ask(ConsumerGroupDescribeRequest(["g"]), 0)).groups
        assert (oldest.error_code, newest.members[0].member_type) == (0, 1)
        newest.members[0].member_type = -1
        assert oldest == newest

    BrokerHarness().run(scenario)


def test_an_expression_is_resolved_off_the_loop_and_follows_new_topics() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client, "one-1", "two-1")
        joined = await client.ask(beat(subscribed_topic_regex="one-.*"), 1)
        assert (joined.error_code, partitions(joined)) == (0, [])
        await asyncio.sleep(1.5)
        found = await client.ask(beat(epoch=1), 1)
        assert partitions(found) == [0, 1]
        await prepare(client, "one-2")
        await asyncio.sleep(12)
        await client.ask(beat(epoch=found.member_epoch), 1)
        await asyncio.sleep(1.5)
        assert len(partitions(await client.ask(beat(epoch=found.member_epoch), 1))) == 4
        refused = await client.ask(beat("n", subscribed_topic_regex="("), 1)
        assert refused.error_code == errors.InvalidRegularExpression.code
        assert "missing )" in refused.error_message

    BrokerHarness().run(scenario)


def test_settings_of_one_group_take_effect_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert (await client.ask(beat(), 1)).heartbeat_interval_ms == 5000
        change = IncrementalAlterableConfig("consumer.heartbeat.interval.ms", 0, "6000")
        await client.ask(IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(32, "g", [change])]), 1)
        assert (await client.ask(beat(epoch=1), 1)).heartbeat_interval_ms == 6000

    BrokerHarness().run(scenario)


def test_level_0_knows_no_consumer_groups() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        update = FeatureUpdateKey("group.version", 0, False, 2)
        answer = await client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert answer.error_code == 0
        assert (await client.ask(beat(), 1)).error_code == errors.UnsupportedVersion.code
        described = await client.ask(ConsumerGroupDescribeRequest(["g"]), 1)
        assert described.groups[0].error_code == errors.UnsupportedVersion.code

    BrokerHarness().run(scenario)


class Without(AllowAll):
    """Allows everything but one operation."""

    def __init__(self, operation: Operation, resource_type: ResourceType) -> None:
        self._denied = (operation, resource_type)

    def authorize(
        self, principal: Any, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return (operation, resource_type) != self._denied


DENIED = {
    "reading the group": (Operation.READ, ResourceType.GROUP, beat(), errors.GroupAuthorizationFailed),
    "seeing a topic": (Operation.DESCRIBE, ResourceType.TOPIC, beat(), errors.TopicAuthorizationFailed),
    "seeing the group": (
        Operation.DESCRIBE,
        ResourceType.GROUP,
        ConsumerGroupDescribeRequest(["g"]),
        errors.GroupAuthorizationFailed,
    ),
}


@pytest.mark.parametrize(("operation", "resource", "request_made", "error"), DENIED.values(), ids=DENIED.keys())
def test_not_without_permission(operation: Any, resource: Any, request_made: Any, error: Any) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert harness.node is not None
        harness.node.broker.authorizer = Without(operation, resource)
        answer = await client.ask(request_made, 1)
        found = answer.groups[0] if hasattr(answer, "groups") else answer
        assert found.error_code == error.code

    BrokerHarness().run(scenario)
