"""Administration of settings: what is asked, of whom, and what comes back."""

from __future__ import annotations

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.results import ConfigChange, ConfigOperation, ConfigResource, ResourceType
from millbeck.client.errors import UnsupportedByBroker
from millbeck.kernel.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from millbeck.wire.messages import configs as configs_messages
from millbeck.wire.messages.configs import ConfigResource as ListedResource
from millbeck.wire.messages.configs import ListConfigResourcesRequest, ListConfigResourcesResponse
from tests.unit.client.fake_cluster import Call, FakeCluster, simulate

TOPIC = ConfigResource(ResourceType.TOPIC, "a")
GHOST = ConfigResource(ResourceType.TOPIC, "ghost")
BROKER_2 = ConfigResource(ResourceType.BROKER, "2")
ALL_BROKERS = ConfigResource(ResourceType.BROKER, "")


def open_admin(cluster: FakeCluster) -> Admin:
    return Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment)


def described(call: Call) -> configs_messages.DescribeConfigsResponse:
    results = []
    for resource in call.message.resources:
        synonym = configs_messages.DescribeConfigsSynonym(name="log.x", value="0", source=5)
        entry = configs_messages.DescribeConfigsResourceResult(
            name="x",
            value=f"at {call.node_id}",
            config_source=1,
            is_sensitive=True,
            synonyms=[synonym] if call.message.include_synonyms else [],
            config_type=3,
            documentation="doc" if call.message.include_documentation else None,
        )
        is_ghost = resource.resource_name == "ghost"
        results.append(
            configs_messages.DescribeConfigsResult(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=UnknownTopicOrPartition.code if is_ghost else 0,
                error_message="no ghost" if is_ghost else None,
                configs=[] if is_ghost else [entry],
            )
        )
    return configs_messages.DescribeConfigsResponse(results=results)


def test_describing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(configs_messages.DescribeConfigsRequest, described)
        async with open_admin(cluster) as admin:
            outcomes = await admin.describe_configs(
                {TOPIC: ["x"], GHOST: None, BROKER_2: None}, include_synonyms=True, include_documentation=True
            )
        entry = outcomes[TOPIC]["x"]
        assert (entry.source, entry.is_sensitive, entry.type, entry.documentation) == (1, True, 3, "doc")
        assert (entry.synonyms[0].name, entry.synonyms[0].source) == ("log.x", 5)
        assert outcomes[BROKER_2]["x"].value == "at 2"
        with pytest.raises(UnknownTopicOrPartition, match="no ghost"):
            outcomes[GHOST]
        keys = {
            resource.resource_name: resource.configuration_keys
            for call in cluster.asked(configs_messages.DescribeConfigsRequest)
            for resource in call.message.resources
        }
        assert keys == {"a": ["x"], "ghost": None, "2": None}

    simulate(scenario, brokers=2)


def test_describing_a_list_of_resources_asks_for_everything() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(configs_messages.DescribeConfigsRequest, described)
        async with open_admin(cluster) as admin:
            outcomes = await admin.describe_configs([TOPIC, ALL_BROKERS])
        assert outcomes[TOPIC]["x"].synonyms == ()
        assert len(outcomes) == 2

    simulate(scenario)


def test_a_broker_is_named_by_its_number() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with open_admin(cluster) as admin:
            with pytest.raises(InvalidRequest, match="'two'"):
                await admin.describe_configs([ConfigResource(ResourceType.BROKER, "two")])

    simulate(scenario)


def test_changing_single_settings() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        wire = configs_messages

        def alter(call: Call) -> wire.IncrementalAlterConfigsResponse:
            return wire.IncrementalAlterConfigsResponse(
                responses=[
                    wire.AlterConfigsResourceResponse(
                        resource_type=resource.resource_type,
                        resource_name=resource.resource_name,
                        error_code=InvalidConfig.code if resource.resource_name == "ghost" else 0,
                        error_message="bad" if resource.resource_name == "ghost" else None,
                    )
                    for resource in call.message.resources
                ]
            )

        cluster.on(wire.IncrementalAlterConfigsRequest, alter)
        changes = [
            ConfigChange(name="x", value="1"),
            ConfigChange(name="y", operation=ConfigOperation.DELETE),
        ]
        async with open_admin(cluster) as admin:
            outcomes = await admin.incremental_alter_configs(
                {TOPIC: changes, GHOST: changes[:1], BROKER_2: changes[:1]}, validate_only=True
            )
        assert list(outcomes.succeeded) == [TOPIC, BROKER_2]
        with pytest.raises(InvalidConfig, match="bad"):
            outcomes[GHOST]
        calls = cluster.asked(wire.IncrementalAlterConfigsRequest)
        assert all(call.message.validate_only for call in calls)
        assert {call.node_id for call in calls if call.message.resources[0].resource_type == 4} == {2}
        sent = calls[0].message.resources[0].configs
        assert [(entry.name, entry.value, entry.config_operation) for entry in sent] == [("x", "1", 0), ("y", None, 1)]

    simulate(scenario, brokers=2)


def test_settings_of_a_broker_that_is_down_are_changed_by_another() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        wire = configs_messages

        def alter(call: Call) -> wire.IncrementalAlterConfigsResponse:
            named = [(each.resource_type, each.resource_name) for each in call.message.resources]
            return wire.IncrementalAlterConfigsResponse(
                responses=[wire.AlterConfigsResourceResponse(resource_type=t, resource_name=name) for t, name in named]
            )

        cluster.on(wire.IncrementalAlterConfigsRequest, alter)
        down = ConfigResource(ResourceType.BROKER, "7")
        async with open_admin(cluster) as admin:
            outcomes = await admin.incremental_alter_configs({down: [ConfigChange(name="x", value="1")]}, timeout_s=20)
        assert list(outcomes.succeeded) == [down]
        (call,) = cluster.asked(wire.IncrementalAlterConfigsRequest)
        assert call.node_id in (1, 2)

    simulate(scenario, brokers=2)


def test_replacing_all_settings() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        wire = configs_messages
        cluster.on(
            wire.AlterConfigsRequest,
            lambda call: wire.AlterConfigsResponse(
                responses=[wire.AlterConfigsResourceResponse(resource_type=2, resource_name="a")]
            ),
        )
        async with open_admin(cluster) as admin:
            assert (await admin.alter_configs({TOPIC: {"x": "1"}})).all() == {TOPIC: TOPIC}
        (call,) = cluster.asked(wire.AlterConfigsRequest)
        assert [(entry.name, entry.value) for entry in call.message.resources[0].configs] == [("x", "1")]

    simulate(scenario)


def test_listing_what_has_settings() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        listed = [
            ListedResource(resource_name="a", resource_type=2),
            ListedResource(resource_name="of the future", resource_type=99),
        ]
        cluster.on(ListConfigResourcesRequest, lambda call: ListConfigResourcesResponse(config_resources=listed))
        async with open_admin(cluster) as admin:
            assert await admin.list_config_resources([ResourceType.TOPIC]) == [TOPIC]
        assert cluster.asked(ListConfigResourcesRequest)[0].message.resource_types == [2]
        cluster.limit(ListConfigResourcesRequest, 0, 0)
        async with open_admin(cluster) as admin:
            with pytest.raises(UnsupportedByBroker):
                await admin.list_config_resources([ResourceType.TOPIC])

    simulate(scenario)
