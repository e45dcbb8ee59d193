"""The APIs of streams groups on a whole node, from bytes to bytes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.coordinator.group.streams.internal_topics import StatusCode
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.server.requests.handlers import groups_streams
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.streams_groups import (
    KeyValue,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TopicInfo,
    Topology,
)
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator

SETTINGS = {"group_streams_initial_rebalance_delay_ms": "0", "group_streams_assignment_interval_ms": "0"}
CHANGELOG = "g-counts-changelog"


def harness_of(**settings: str) -> BrokerHarness:
    return BrokerHarness(1, **(SETTINGS | settings))


async def prepare(client: Client, *topics: str) -> None:
    await find_coordinator(client, "g")
    wanted = [CreatableTopic(name, num_partitions=2, replication_factor=1) for name in topics or ("t",)]
    await client.ask(CreateTopicsRequest(topics=wanted), 7)


def counting(source: str = "t", info: TopicInfo | None = None) -> Topology:
    changelog = info or TopicInfo(CHANGELOG, 0, 0, [KeyValue("cleanup.policy", "compact")])
    return Topology(0, [Subtopology("0", [source], state_changelog_topics=[changelog])])


def beat(member_id: str = "m", epoch: int = 0, **fields: Any) -> StreamsGroupHeartbeatRequest:
    if epoch == 0:
        joining: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "topology": counting(), "process_id": "p"}
        fields = {**joining, "active_tasks": [], "standby_tasks": [], "warmup_tasks": [], **fields}
    return StreamsGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)


def told(response: Any) -> list[tuple[int, str]]:
    return [(each.status_code, each.status_detail) for each in response.status]


def test_a_member_joins_its_topics_are_created_and_it_is_described() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        joined = await client.ask(beat(), 0)
        assert (joined.error_code, joined.member_epoch, joined.active_tasks) == (0, 2, [])
        assert told(joined) == [(StatusCode.MISSING_INTERNAL_TOPICS, f"Internal topics are missing: {CHANGELOG}")]
        await asyncio.sleep(1)
        assert harness.node is not None
        made = harness.node.broker.image.topics.named(CHANGELOG)
        assert made is not None
        assert len(made.partitions) == 2
        grown = await client.ask(beat(epoch=2), 0)
        assert (grown.member_epoch, grown.active_tasks, grown.status) == (3, [TaskIds("0", [0, 1])], [])
        request = StreamsGroupDescribeRequest(["g", "other"], include_authorized_operations=True)
        found, missing = (await client.ask(request, 0)).groups
        assert (found.group_state, found.group_epoch, found.assignment_epoch) == ("Stable", 3, 3)
        assert found.members[0].client_host.startswith("/")
        assert found.topology.subtopologies[0].state_changelog_topics[0].partitions == 2
        assert found.authorized_operations > 0
        assert missing.error_code == errors.GroupIdNotFound.code
        left = await client.ask(StreamsGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=-1), 0)
        assert (left.error_code, left.member_epoch) == (0, -1)

    harness_of().run(scenario)


def test_settings_of_one_group_take_effect_at_once_and_keep_the_brokers_limits() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client, "t", CHANGELOG)
        assert (await client.ask(beat(), 0)).heartbeat_interval_ms == 5000
        changes = [
            IncrementalAlterableConfig("streams.heartbeat.interval.ms", 0, "6000"),
            IncrementalAlterableConfig("streams.num.standby.replicas", 0, "2"),
            IncrementalAlterableConfig("streams.initial.rebalance.delay.ms", 0, "77"),
        ]
        answer = await client.ask(
            IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(32, "g", changes)]), 1
        )
        assert answer.responses[0].error_code == 0
        assert (await client.ask(beat(epoch=2), 0)).heartbeat_interval_ms == 6000
        assert harness.node is not None
        settings = harness.node.broker.groups.cluster.streams_settings_of("g")
        assert settings == (45_000, 6000, 0, 77, 2)
        assert harness.node.broker.groups.cluster.streams_settings_of("h") == (45_000, 5000, 0, 0, 0)

    harness_of().run(scenario)


def test_level_0_knows_no_streams_groups() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        update = FeatureUpdateKey("streams.version", 0, False, 2)
        answer = await client.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
        assert answer.error_code == 0
        assert (await client.ask(beat(), 0)).error_code == errors.UnsupportedVersion.code
        described = await client.ask(StreamsGroupDescribeRequest(["g"]), 0)
        assert described.groups[0].error_code == errors.UnsupportedVersion.code

    harness_of().run(scenario)


def test_a_broker_may_be_told_to_have_no_streams_groups() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert (await client.ask(beat(), 0)).error_code == errors.UnsupportedVersion.code

    harness_of(group_coordinator_rebalance_protocols="classic,consumer").run(scenario)


WRONG_TOPICS = {
    "a topic of kafka's own": counting("__consumer_offsets"),
    "an invalid name": counting("a b"),
    "an invalid changelog": counting(info=TopicInfo("..")),
}


@pytest.mark.parametrize("topology", WRONG_TOPICS.values(), ids=WRONG_TOPICS)
def test_topics_that_cannot_be_in_a_topology_are_refused(topology: Topology) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        answer = await client.ask(beat(topology=topology), 0)
        assert answer.error_code == errors.StreamsInvalidTopology.code
        assert answer.error_message

    harness_of().run(scenario)


def test_a_failed_creation_is_told_and_not_repeated_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        wrong = counting(info=TopicInfo(CHANGELOG, 0, 0, [KeyValue("cleanup.policy", "none")]))
        first = await client.ask(beat(topology=wrong), 0)
        assert "failed" not in told(first)[0][1]
        await asyncio.sleep(1)
        text = told(await client.ask(beat(epoch=2), 0))[0][1]
        assert f"Creation failed: {CHANGELOG} (INVALID_CONFIG" in text

    harness_of().run(scenario)


class Without(AllowAll):
    """Allows everything but some operations."""

    def __init__(self, *denied: tuple[Operation, ResourceType]) -> None:
        self._denied = denied

    def authorize(
        self, principal: Any, host: str, operation: Operation, resource_type: ResourceType, resource_name: str
    ) -> bool:
        return (operation, resource_type) not in self._denied


DENIED = {
    "reading the group": (Operation.READ, ResourceType.GROUP, beat(), errors.GroupAuthorizationFailed),
    "seeing a topic": (Operation.DESCRIBE, ResourceType.TOPIC, beat(), errors.TopicAuthorizationFailed),
    "seeing the group": (
        Operation.DESCRIBE,
        ResourceType.GROUP,
        StreamsGroupDescribeRequest(["g"]),
        errors.GroupAuthorizationFailed,
    ),
    "seeing a topic of the group": (
        Operation.DESCRIBE,
        ResourceType.TOPIC,
        StreamsGroupDescribeRequest(["g"]),
        errors.TopicAuthorizationFailed,
    ),
}


@pytest.mark.parametrize(("operation", "resource", "request_made", "error"), DENIED.values(), ids=DENIED)
def test_not_without_permission(operation: Any, resource: Any, request_made: Any, error: Any) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        await client.ask(beat("n"), 0)
        assert harness.node is not None
        harness.node.broker.authorizer = Without((operation, resource))
        answer = await client.ask(request_made, 0)
        found = answer.groups[0] if hasattr(answer, "groups") else answer
        assert found.error_code == error.code
        assert not getattr(found, "members", [])

    harness_of().run(scenario)


@pytest.mark.parametrize("denied", [(ResourceType.CLUSTER, ResourceType.TOPIC), (ResourceType.CLUSTER,)])
def test_internal_topics_are_created_for_those_who_may(denied: tuple[ResourceType, ...]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert harness.node is not None
        harness.node.broker.authorizer = Without(*((Operation.CREATE, each) for each in denied))
        text = told(await client.ask(beat(), 0))[0][1]
        is_refused = ResourceType.TOPIC in denied
        assert text.endswith(f"; Unauthorized to CREATE on topics {CHANGELOG}.") == is_refused
        await asyncio.sleep(1)
        assert (harness.node.broker.image.topics.named(CHANGELOG) is None) == is_refused

    harness_of().run(scenario)


def test_long_lists_are_cut() -> None:
    assert groups_streams._listed(["a", "b"], 2) == "a, b"
    assert groups_streams._listed(["a", "b", "c"], 2) == "a, b and 1 more"
