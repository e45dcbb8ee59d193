"""Code of a deployment decides about topics, configs, permissions and replicas; where it fails, the answer is no."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.controller.policies import TopicRequest
from millbeck.controller.topic_bounds import TopicBounds
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig, PolicyViolation, SecurityDisabled, TopicAuthorizationFailed
from millbeck.server.seams import load_seam
from millbeck.simulation.environment.loop import SimulationStuck
from millbeck.wire.messages.acls import DescribeAclsRequest
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.scraping import samples

SAMPLE = Path(__file__).parents[2] / "fixtures" / "sample_seams"
TOPIC, SET, DELETE = 2, 0, 1
BOUNDS = TopicBounds(name_pattern=r"[a-z]+\.[a-z-]+", replication_factor_min=3, partitions_min=2, partitions_max=12)


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample package, installed."""
    monkeypatch.syspath_prepend(str(SAMPLE))
    yield
    sys.modules.pop("sample_seams", None)


def in_node(scenario: Any, **settings: str) -> None:
    house = BrokerHarness()
    house.settings |= {name.replace("_", "."): value for name, value in settings.items()}
    house.run(scenario)


async def create(client: Client, name: str, partitions: int = 1, **configs: str) -> tuple[int, str | None]:
    listed = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=listed)
    (result,) = (await client.ask(CreateTopicsRequest(topics=[topic]), 7)).topics
    return result.error_code, result.error_message


async def alter(client: Client, name: str, value: str | None) -> tuple[int, str | None]:
    change = IncrementalAlterableConfig(name, DELETE if value is None else SET, value)
    request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(TOPIC, "t", [change])])
    (result,) = (await client.ask(request, 1)).responses
    return result.error_code, result.error_message


def request(name: str = "team.orders", partitions: int = 6, replicas: int = 3) -> TopicRequest:
    return TopicRequest(
        name=name, partition_count=partitions, replication_factor=replicas, assignments=None, configs={}
    )


REFUSED = {
    "name": (request(name="orders"), "does not match the pattern"),
    "a line break after the name": (request(name="team.orders\n"), "does not match the pattern"),
    "replicas": (request(replicas=2), "would have 2 replicas, and needs 3"),
    "too few partitions": (request(partitions=1), "may have 2 to 12"),
    "too many partitions": (request(partitions=13), "may have 2 to 12"),
    "assigned replicas": (
        TopicRequest(
            name="a.b", partition_count=None, replication_factor=None, assignments={0: (1, 2, 3), 1: (1, 2)}, configs={}
        ),
        "would have 2 replicas",
    ),
}


@pytest.mark.parametrize(("topic", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_the_ready_policy_refuses(topic: TopicRequest, message: str) -> None:
    with pytest.raises(PolicyViolation, match=message):
        BOUNDS.validate(topic)


def is_refused(policy: TopicBounds, topic: TopicRequest) -> bool:
    try:
        policy.validate(topic)
    except PolicyViolation:
        return True
    return False


def test_the_ready_policy_lets_the_rest_through() -> None:
    assert not is_refused(BOUNDS, request())
    assert not is_refused(BOUNDS, request(name="__consumer_offsets", partitions=50, replicas=1))
    assert not is_refused(TopicBounds(), request(name="x", partitions=10_000, replicas=1))


def test_the_ready_policy_in_a_node() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await create(client, "app-orders", 3) == (0, None)
        code, message = await create(client, "orders", 3)
        assert code == PolicyViolation.code
        assert "does not match" in (message or "")
        assert (await create(client, "app-large", 9))[0] == PolicyViolation.code

    bounds = {"millbeck_topic_policy_name_pattern": "app-.*", "millbeck_topic_policy_partitions_max": "8"}
    in_node(scenario, create_topic_policy_class_name="TopicBounds", **bounds)


@pytest.mark.usefixtures("sample")
def test_a_package_of_the_deployment_decides() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await create(client, "t") == (0, None)
        assert await create(client, "forbidden") == (PolicyViolation.code, "not this name")
        assert await create(client, "t-2", retention_ms="5") == (PolicyViolation.code, "retention is 5")
        assert await alter(client, "retention.ms", "100") == (0, None)
        assert await alter(client, "retention.ms", "5") == (PolicyViolation.code, "TOPIC t: retention.ms=5")
        assert await alter(client, "retention.ms", None) == (PolicyViolation.code, "TOPIC t: retention.ms is deleted")
        whole = AlterConfigsRequest([AlterConfigsResource(TOPIC, "t", [AlterableConfig("max.message.bytes", "9")])])
        (result,) = (await client.ask(whole, 1)).responses
        assert result.error_code == 0, "what is left out is not shown to the policy"

    in_node(scenario, create_topic_policy_class_name="SampleTopics", alter_config_policy_class_name="SampleConfigs")


@pytest.mark.usefixtures("sample")
def test_a_policy_that_fails_refuses_is_counted_and_stops_nothing() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        for number in (1, 2):
            code, message = await create(client, "broken")
            assert code == PolicyViolation.code
            assert "secret" not in (message or "")
            assert house.node is not None
            key = 'millbeck_seam_failures_total{setting="create.topic.policy.class.name"}'
            assert samples(house.node)[key] == number
        assert await create(client, "t") == (0, None)

    in_node(scenario, create_topic_policy_class_name="SampleTopics")


@pytest.mark.usefixtures("sample")
def test_an_authorizer_of_the_deployment_decides_and_denies_where_it_fails() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await create(client, "ANONYMOUS-1"))[0] == 0
        assert (await create(client, "other"))[0] == TopicAuthorizationFailed.code
        assert (await create(client, "broken"))[0] == TopicAuthorizationFailed.code
        assert house.node is not None
        key = 'millbeck_seam_failures_total{setting="authorizer.class.name"}'
        assert samples(house.node)[key] >= 1
        described = await client.ask(DescribeAclsRequest(), 3)
        assert described.error_code == SecurityDisabled.code

    in_node(scenario, authorizer_class_name="SampleGuard")


@pytest.mark.usefixtures("sample")
def test_a_selector_of_the_deployment_is_found() -> None:
    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        assert house.node is not None
        assert house.node.broker.replication.context.wakes_followers

    in_node(scenario, replica_selector_class="SampleNearest")


@pytest.mark.parametrize("name", ["authorizer.class.name", "replica.selector.class", "create.topic.policy.class.name"])
def test_a_node_does_not_start_without_what_its_file_names(name: str) -> None:
    house = BrokerHarness()
    house.settings[name] = "com.example.Missing"

    async def scenario(house: BrokerHarness, client: Client, environment: Environment) -> None:
        raise AssertionError("it started")

    with pytest.raises(SimulationStuck, match=f"InvalidConfig.*{name}: no installed package"):
        house.run(scenario)


@pytest.mark.usefixtures("sample")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Unknown", "no installed package has an entry point Unknown .*SampleTopics"),
        ("SampleBroken", "SampleBroken cannot be loaded: RuntimeError"),
        ("SampleEmpty", "has no method validate"),
    ],
)
def test_a_name_that_cannot_be_used_is_told_at_start(name: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=f"create.topic.policy.class.name: .*{message}"):
        load_seam("millbeck.create_topic_policy", "create.topic.policy.class.name", name, {}, method="validate")
