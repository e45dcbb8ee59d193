"""Settings described, changed and listed, resource by resource."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidConfig,
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from millbeck.kernel.options import ConfigSource
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers import configs
from millbeck.storage.config import TOPIC_OPTIONS
from millbeck.wire.messages import configs as configs_messages
from millbeck.wire.messages.configs import DescribeConfigsRequest, DescribeConfigsResource, ListConfigResourcesRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, partition_of, run_scenario

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def describing(*resources: tuple[int, str], keys: list[str] | None = None, **options: bool) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[DescribeConfigsResource(kind, name, keys) for kind, name in resources], **options
    )


async def described(client: Client, kind: int, name: str, version: int = 4, **options: Any) -> dict[str, Any]:
    (result,) = (await client.ask(describing((kind, name), **options), version)).results
    assert (result.error_code, result.resource_type, result.resource_name) == (0, kind, name)
    return {entry.name: entry for entry in result.configs}


async def change(client: Client, kind: int, name: str, *changes: tuple[str, int, str | None], **options: Any) -> Any:
    resource = configs_messages.IncrementalAlterConfigsResource(
        kind, name, [configs_messages.IncrementalAlterableConfig(*each) for each in changes]
    )
    request = configs_messages.IncrementalAlterConfigsRequest(resources=[resource], **options)
    (answer,) = (await client.ask(request, 1)).responses
    return answer


# Describing.


@pytest.mark.parametrize("version", range(1, 5))
def test_every_version_lists_every_option_of_a_topic(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, retention_ms="1000")
        entries = await described(client, TOPIC, "t", version)
        assert set(entries) == {option.name for option in TOPIC_OPTIONS if not option.internal}
        entry = entries["retention.ms"]
        assert (entry.value, entry.config_source, entry.read_only) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG, False)
        assert entry.config_type == (5 if version >= 3 else 0)
        assert (entry.synonyms, entry.documentation) == ([], None if version >= 3 else "")

    run_scenario(scenario)


def test_only_the_asked_keys_are_shown_and_none_for_none() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert list(await described(client, TOPIC, "t", keys=["retention.ms", "nothing"])) == ["retention.ms"]
        assert await described(client, TOPIC, "t", keys=[]) == {}

    run_scenario(scenario)


def test_so_many_groups_are_described_and_no_more() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        count = configs.GROUPS_DESCRIBED_MAX + 5
        asked = [(GROUP, f"g{number}") for number in range(count)]
        answer = await client.ask(describing(*asked, (BROKER, "1")), 4)
        assert [each.error_code for each in answer.results[-7:]] == [0] + [InvalidRequest.code] * 5 + [0]
        assert not answer.results[-2].configs

    run_scenario(scenario)


def test_a_resource_named_many_times_is_described_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        answer = await client.ask(describing(*[(BROKER, "1"), (BROKER, "")] * 1000), 4)
        assert [(result.resource_type, result.resource_name) for result in answer.results] == [
            (BROKER, "1"),
            (BROKER, ""),
        ]

    run_scenario(scenario)


def test_synonyms_and_documentation_come_on_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, retention_ms="1000")
        entries = await described(client, TOPIC, "t", include_synonyms=True, include_documentation=True)
        entry = entries["retention.ms"]
        assert next((each.name, each.value) for each in entry.synonyms) == ("retention.ms", "1000")
        assert entry.documentation
        entry = entries["max.message.bytes"]
        assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
            ("message.max.bytes", "2000000", ConfigSource.STATIC_BROKER_CONFIG),
            ("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
        ]
        entries = await described(client, GROUP, "g", include_synonyms=True)
        assert [(each.name, each.value) for each in entries["share.auto.offset.reset"].synonyms] == [
            ("share.auto.offset.reset", "latest")
        ]

    run_scenario(scenario, message_max_bytes="2000000")


@pytest.mark.parametrize("retention_ms", [None, "5000"])
def test_values_in_other_units_are_shown_only_behind_the_one_in_milliseconds(retention_ms: str | None) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        entry = (await described(client, TOPIC, "t", include_synonyms=True))["retention.ms"]
        shown = [(each.name, each.source) for each in entry.synonyms]
        if retention_ms is None:
            assert (entry.value, entry.config_source) == ("86400000", ConfigSource.DEFAULT_CONFIG)
            assert shown == []
        else:
            assert (entry.value, entry.config_source) == ("5000", ConfigSource.STATIC_BROKER_CONFIG)
            assert [name for name, _ in shown] == ["log.retention.ms", "log.retention.hours", "log.retention.hours"]

    settings = {"log_retention_hours": "24"} | ({"log_retention_ms": retention_ms} if retention_ms else {})
    run_scenario(scenario, **settings)


def test_a_broker_speaks_for_itself_and_for_the_default_of_all() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        entries = await described(client, BROKER, "1")
        assert (entries["num.partitions"].value, entries["num.partitions"].config_source) == (
            "7",
            ConfigSource.STATIC_BROKER_CONFIG,
        )
        assert entries["node.id"].read_only
        assert not entries["log.retention.ms"].read_only
        # Set by the controller itself: brokers must agree on it while eligible leaders are tracked.
        assert list(await described(client, BROKER, "")) == ["min.insync.replicas"]
        assert (await change(client, BROKER, "", ("log.retention.ms", SET, "5000"))).error_code == 0
        entry = (await described(client, BROKER, ""))["log.retention.ms"]
        assert (entry.value, entry.config_source) == ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        (other,) = (await client.ask(describing((BROKER, "2")), 4)).results
        assert other.error_code == InvalidRequest.code
        assert "2" in other.error_message

    run_scenario(scenario, num_partitions="7")


def test_secrets_are_not_shown() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        entry = (await described(client, BROKER, "1", include_synonyms=True))["ssl.key.password"]
        assert (entry.value, entry.is_sensitive) == (None, True)
        assert all(each.value is None for each in entry.synonyms)

    run_scenario(scenario, ssl_key_password="hush")


def test_groups_loggers_and_metrics_may_be_asked_about() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert "consumer.session.timeout.ms" in await described(client, GROUP, "g")
        assert await described(client, LOGGER, "1") == {}
        assert await described(client, METRICS, "m") == {}

    run_scenario(scenario)


def test_each_resource_has_its_own_error() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        request = describing((TOPIC, "t"), (TOPIC, "nowhere"), (TOPIC, "../x"), (77, "t"), (0, "t"))
        response = await client.ask(request, 4)
        assert [each.error_code for each in response.results] == [
            0,
            UnknownTopicOrPartition.code,
            InvalidTopic.code,
            InvalidRequest.code,
            InvalidRequest.code,
        ]

    run_scenario(scenario)


# Changing.


@pytest.mark.parametrize("version", range(2))
def test_every_version_changes_single_settings_and_the_log_obeys(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, retention_ms="1000")
        resource = configs_messages.IncrementalAlterConfigsResource(
            TOPIC,
            "t",
            [
                configs_messages.IncrementalAlterableConfig("max.message.bytes", SET, "555"),
                configs_messages.IncrementalAlterableConfig("retention.ms", DELETE, None),
            ],
        )
        request = configs_messages.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
        assert [each.error_code for each in (await client.ask(request, version)).responses] == [0]
        assert partition_of(harness).log.config.retention_ms == 1000
        request.validate_only = False
        assert [each.error_code for each in (await client.ask(request, version)).responses] == [0]
        config = partition_of(harness).log.config
        assert (config.retention_ms, config.max_message_bytes) == (604_800_000, 555)
        assert harness.node is not None
        assert harness.node.broker.topics.by_name["t"].rules.max_message_bytes == 555

    run_scenario(scenario)


@pytest.mark.parametrize("version", range(3))
def test_every_version_replaces_all_settings(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, retention_ms="1000")
        resource = configs_messages.AlterConfigsResource(
            TOPIC, "t", [configs_messages.AlterableConfig("max.message.bytes", "555")]
        )
        request = configs_messages.AlterConfigsRequest(resources=[resource], validate_only=True)
        assert [each.error_code for each in (await client.ask(request, version)).responses] == [0]
        assert partition_of(harness).log.config.max_message_bytes != 555
        request.validate_only = False
        assert [each.error_code for each in (await client.ask(request, version)).responses] == [0]
        config = partition_of(harness).log.config
        assert (config.retention_ms, config.max_message_bytes) == (604_800_000, 555)

    run_scenario(scenario)


def test_changes_that_cannot_be_are_refused_and_change_nothing() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for changes, error in (
            ([("no.such", SET, "1")], InvalidConfig),
            ([("retention.ms", SET, "soon")], InvalidConfig),
            ([("retention.ms", SET, None)], InvalidRequest),
            ([("retention.ms", APPEND, "1")], InvalidConfig),
            ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], InvalidRequest),
            ([("retention.ms", SET, "5"), ("cleanup.policy", SET, "shrink")], InvalidConfig),
        ):
            answer = await change(client, TOPIC, "t", *changes)
            assert (answer.error_code, bool(answer.error_message)) == (error.code, True), changes
        assert partition_of(harness).log.config.retention_ms == 604_800_000
        assert (await change(client, TOPIC, "nowhere", ("retention.ms", SET, "5"))).error_code == (
            UnknownTopicOrPartition.code
        )

    run_scenario(scenario)


@pytest.mark.parametrize("name", ["log.message.format.version", "zookeeper.connect", "remote.log.copy.disable"])
def test_what_a_file_may_not_have_is_not_stored_for_a_broker(name: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for broker in ("1", ""):
            refused = await change(client, BROKER, broker, (name, SET, "true"))
            assert (refused.error_code, name in refused.error_message) == (InvalidRequest.code, True)
            assert name not in await described(client, BROKER, broker)
            assert (await change(client, BROKER, broker, (name, DELETE, None))).error_code == 0

    BrokerHarness().run(scenario)


def test_a_brokers_default_reaches_topics_that_have_no_setting_of_their_own() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "plain")
        await create(client, "own", retention_ms="1000")
        await change(client, BROKER, "", ("log.retention.ms", SET, "7000"))
        assert partition_of(harness, "plain").log.config.retention_ms == 7000
        assert partition_of(harness, "own").log.config.retention_ms == 1000
        await change(client, BROKER, "1", ("log.retention.ms", SET, "8000"))
        assert partition_of(harness, "plain").log.config.retention_ms == 8000
        await change(client, BROKER, "1", ("log.retention.ms", DELETE, None))
        assert partition_of(harness, "plain").log.config.retention_ms == 7000

    run_scenario(scenario)


def test_settings_are_there_after_a_restart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await change(client, TOPIC, "t", ("retention.ms", SET, "4321"))
        await change(client, BROKER, "", ("log.segment.bytes", SET, "2000000"))
        harness.machine.power_loss()
        await harness.start()
        config = partition_of(harness).log.config
        assert (config.retention_ms, config.segment_size_bytes) == (4321, 2_000_000)

    run_scenario(scenario)


# Listing.


def test_resources_are_listed_by_type() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "b")
        await create(client, "a")

        async def listed(*kinds: int, version: int = 1) -> list[tuple[int, str]]:
            response = await client.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
            assert response.error_code == 0
            return [(each.resource_type, each.resource_name) for each in response.config_resources]

        assert await listed(TOPIC) == [(TOPIC, "a"), (TOPIC, "b")]
        assert await listed(BROKER, TOPIC) == [(TOPIC, "a"), (TOPIC, "b"), (BROKER, "1")]
        assert (BROKER, "1") in await listed()
        assert await listed(version=0) == []
        response = await client.ask(ListConfigResourcesRequest(resource_types=[99]), 1)
        assert response.error_code == UnsupportedVersion.code

    run_scenario(scenario)


# Who may.


def test_each_kind_of_resource_has_its_own_refusal() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        deny(harness)
        kinds = {
            TOPIC: TopicAuthorizationFailed,
            BROKER: ClusterAuthorizationFailed,
            LOGGER: ClusterAuthorizationFailed,
            GROUP: GroupAuthorizationFailed,
        }
        response = await client.ask(describing(*((kind, "t") for kind in kinds)), 4)
        assert [each.error_code for each in response.results] == [each.code for each in kinds.values()]
        assert all(not each.configs for each in response.results)
        for kind, error in kinds.items():
            assert (await change(client, kind, "t", ("retention.ms", SET, "1"))).error_code == error.code
            resource = configs_messages.AlterConfigsResource(kind, "t", [])
            request = configs_messages.AlterConfigsRequest(resources=[resource])
            assert [each.error_code for each in (await client.ask(request, 2)).responses] == [error.code]
        listing = await client.ask(ListConfigResourcesRequest(resource_types=[]), 1)
        assert (listing.error_code, listing.config_resources) == (ClusterAuthorizationFailed.code, [])

    run_scenario(scenario)


def test_what_is_allowed_goes_on_beside_what_is_not() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, "a")
        await create(client, "b")
        deny(harness, Operation.ALTER_CONFIGS, names=("a",))
        change_of = configs_messages.IncrementalAlterableConfig("retention.ms", SET, "77")
        request = configs_messages.IncrementalAlterConfigsRequest(
            resources=[
                configs_messages.IncrementalAlterConfigsResource(TOPIC, name, [change_of]) for name in ("a", "b")
            ]
        )
        answers = {each.resource_name: each.error_code for each in (await client.ask(request, 1)).responses}
        assert answers == {"a": TopicAuthorizationFailed.code, "b": 0}
        assert partition_of(harness, "b").log.config.retention_ms == 77
        assert partition_of(harness, "a").log.config.retention_ms != 77

    run_scenario(scenario)


def test_an_error_for_the_whole_is_said_for_every_resource() -> None:
    error = UnknownServerError()
    assert configs.describe_error(None, 4, error) is None
    assert configs.alter_error(None, 2, error) is None
    assert configs.incremental_error(None, 1, error) is None
    shown = configs.describe_error(describing((TOPIC, "a")), 4, error)
    assert shown is not None
    assert [(each.resource_name, each.error_code) for each in shown.results] == [("a", -1)]
    replaced = configs.alter_error(
        configs_messages.AlterConfigsRequest(resources=[configs_messages.AlterConfigsResource(TOPIC, "a", [])]),
        2,
        error,
    )
    assert replaced is not None
    assert [(each.resource_name, each.error_code) for each in replaced.responses] == [("a", -1)]
    changed = configs.incremental_error(
        configs_messages.IncrementalAlterConfigsRequest(
            resources=[configs_messages.IncrementalAlterConfigsResource(TOPIC, "a", [])]
        ),
        1,
        error,
    )
    assert changed is not None
    assert [(each.resource_name, each.error_code) for each in changed.responses] == [("a", -1)]
