"""Code of a deployment decides about topics, configs, permissions and replicas; where it fails, the answer is no."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.controller.policies import TopicRequest
from millbeck.controller.topic_bounds import TopicBounds
from millbeck.coordinator.group.assignors.guarded import GuardedShareAssignor
from millbeck.coordinator.group.share.assignor import assign
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    InvalidConfig,
    InvalidRequest,
    PolicyViolation,
    SaslAuthenticationFailed,
    SecurityDisabled,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnsupportedAssignor,
)
from millbeck.security.principal import NoPrincipal, Principal
from millbeck.security.principal_builder import ClientIdentity, GuardedPrincipalBuilder
from millbeck.security.sasl.plain import PlainClient
from millbeck.server.config import NodeConfig
from millbeck.server.coordinators.group_coordinator import share_assignor
from millbeck.server.seams import load_seam
from millbeck.simulation.environment.loop import SimulationStuck
from millbeck.wire.messages.acls import DescribeAclsRequest
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.metadata import MetadataRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.scraping import samples
from tests.unit.server.requests.handlers.test_groups_consumer import beat, partitions, prepare

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
    harness = BrokerHarness()
    harness.settings |= {name if "." in name else name.replace("_", "."): value for name, value in settings.items()}
    harness.run(scenario)


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
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert await create(client, "app-orders", 3) == (0, None)
        code, message = await create(client, "orders", 3)
        assert code == PolicyViolation.code
        assert "does not match" in (message or "")
        assert (await create(client, "app-large", 9))[0] == PolicyViolation.code

    bounds = {"millbeck_topic_policy_name_pattern": "app-.*", "millbeck_topic_policy_partitions_max": "8"}
    in_node(scenario, create_topic_policy_class_name="TopicBounds", **bounds)


@pytest.mark.usefixtures("sample")
def test_a_package_of_the_deployment_decides() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
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
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for number in (1, 2):
            code, message = await create(client, "broken")
            assert code == PolicyViolation.code
            assert "secret" not in (message or "")
            assert harness.node is not None
            key = 'millbeck_seam_failures_total{setting="create.topic.policy.class.name"}'
            assert samples(harness.node)[key] == number
        assert await create(client, "t") == (0, None)

    in_node(scenario, create_topic_policy_class_name="SampleTopics")


@pytest.mark.usefixtures("sample")
def test_an_authorizer_of_the_deployment_decides_and_denies_where_it_fails() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await create(client, "ANONYMOUS-1"))[0] == 0
        assert (await create(client, "other"))[0] == TopicAuthorizationFailed.code
        assert (await create(client, "broken"))[0] == TopicAuthorizationFailed.code
        assert harness.node is not None
        key = 'millbeck_seam_failures_total{setting="authorizer.class.name"}'
        assert samples(harness.node)[key] >= 1
        described = await client.ask(DescribeAclsRequest(), 3)
        assert described.error_code == SecurityDisabled.code

    in_node(scenario, authorizer_class_name="SampleGuard")


@pytest.mark.usefixtures("sample")
def test_a_selector_of_the_deployment_is_found() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        assert harness.node.broker.replication.context.wakes_followers

    in_node(scenario, replica_selector_class="SampleNearest")


# principals

LOGINS = {
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="secret"' for name in ("alice", "swap", "broken", "stranger"))
        + ";"
    ),
    "connections.max.reauth.ms": "5000",
    "principal.builder.class": "SamplePrincipals",
}


async def by_plain(environment: Environment, user: str) -> tuple[Client, int]:
    _, client = await environment.network.connect(Client, host="n1", port=9094)
    assert isinstance(client, Client)
    return client, await log_in(client, user)


async def log_in(client: Client, user: str) -> int:
    assert (await client.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == 0
    answer = await client.ask(SaslAuthenticateRequest(PlainClient(user, "secret").begin()), 2)
    if answer.error_code:
        assert answer.error_message.endswith("due to invalid credentials with SASL mechanism PLAIN")
    code: int = answer.error_code
    return code


def principals_of(harness: BrokerHarness, listener: str) -> list[str]:
    assert harness.node is not None
    return [
        connection.principal.text
        for each in harness.node.listeners
        if each.address.name == listener
        for connection in each.connections.values()
    ]


@pytest.mark.usefixtures("sample")
def test_a_builder_names_clients() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await client.ask(MetadataRequest(None), 12)).brokers
        assert principals_of(harness, "PLAINTEXT") == ["Team:PLAINTEXT/ANONYMOUS"]
        alice, code = await by_plain(environment, "alice")
        assert (code, principals_of(harness, "SASL_PLAINTEXT")) == (0, ["Team:SASL_PLAINTEXT/PLAIN/alice"])
        assert await log_in(alice, "alice") == 0, "the same principal again"
        assert (await alice.ask(MetadataRequest(None), 12)).brokers

    in_node(scenario, **LOGINS)


@pytest.mark.usefixtures("sample")
def test_where_a_builder_gives_nobody_the_client_is_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for user in ("broken", "stranger"):
            refused, code = await by_plain(environment, user)
            assert code == SaslAuthenticationFailed.code
            with pytest.raises(ConnectionError):
                await refused.ask(MetadataRequest(None), 12)
        assert harness.node is not None
        failures = samples(harness.node)['millbeck_seam_failures_total{setting="principal.builder.class"}']
        assert failures == 1, "a refusal is no failure"
        swapped, code = await by_plain(environment, "swap")
        assert code == 0
        assert await log_in(swapped, "swap") == SaslAuthenticationFailed.code

    in_node(scenario, **LOGINS)


@pytest.mark.usefixtures("sample")
def test_one_listener_may_have_a_builder() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await by_plain(environment, "alice")
        assert principals_of(harness, "PLAINTEXT") == ["User:ANONYMOUS"]
        assert principals_of(harness, "SASL_PLAINTEXT") == ["Team:SASL_PLAINTEXT/PLAIN/alice"]

    in_node(
        scenario,
        **{name: text for name, text in LOGINS.items() if name != "principal.builder.class"},
        **{"listener.name.sasl_plaintext.principal.builder.class": "SamplePrincipals"},
    )


@pytest.mark.usefixtures("sample")
def test_a_client_of_a_token_stays_one() -> None:
    builder = load_seam("millbeck.principal_builder", "principal.builder.class", "SamplePrincipals", {}, method="build")
    failures: list[Exception] = []
    guarded = GuardedPrincipalBuilder(builder, failures.append)
    identity = ClientIdentity(principal=Principal("User", "a", is_token=True), listener="L", host="h", login="id")
    assert guarded.build(identity) == Principal("Team", "L/a", is_token=True)
    assert failures == []


@pytest.mark.parametrize("built", [None, "User:alice", Principal("User", ""), Principal("", "alice")])
def test_what_is_no_principal_is_a_failure(built: Any) -> None:
    class Builder:
        def build(self, identity: ClientIdentity) -> Any:
            return built

    failures: list[Exception] = []
    with pytest.raises(NoPrincipal):
        GuardedPrincipalBuilder(Builder(), failures.append).build(
            ClientIdentity(principal=Principal("User", "a"), listener="L", host="h")
        )
    assert len(failures) == 1


# passwords

CHECKER = "listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class"
CHECKED = {
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
    "sasl.enabled.mechanisms": "PLAIN",
    "millbeck.disconnect.on.revoke": "true",
    CHECKER: "SampleDirectory",
}


async def with_password(environment: Environment, user: str, password: str) -> tuple[Client, Any]:
    _, client = await environment.network.connect(Client, host="n1", port=9094)
    assert isinstance(client, Client)
    assert (await client.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == 0
    return client, await client.ask(SaslAuthenticateRequest(PlainClient(user, password).begin()), 2)


@pytest.mark.usefixtures("sample")
def test_passwords_are_checked_by_code_of_the_deployment(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice, answer = await with_password(environment, "alice", "ecila")
        assert answer.error_code == 0
        assert (await alice.ask(MetadataRequest(None), 12)).brokers
        for user, password in (("alice", "alice"), ("broken", "a-secret-password"), ("unsure", "erusnu")):
            _, answer = await with_password(environment, user, password)
            assert answer.error_code == SaslAuthenticationFailed.code
            assert answer.error_message == "Authentication failed: Invalid username or password"
        assert harness.node is not None
        assert samples(harness.node)[f'millbeck_seam_failures_total{{setting="{CHECKER}"}}'] == 1
        assert await alter_broker(client, "max.connections", "100") == 0
        assert (await alice.ask(MetadataRequest(None), 12)).brokers, "it is not a user that was deleted"

    in_node(scenario, **CHECKED)


async def alter_broker(client: Client, name: str, value: str) -> int:
    request = IncrementalAlterConfigsRequest(
        [IncrementalAlterConfigsResource(4, "1", [IncrementalAlterableConfig(name, SET, value)])]
    )
    (result,) = (await client.ask(request, 1)).responses
    code: int = result.error_code
    return code


@pytest.mark.usefixtures("sample")
def test_a_dynamic_config_names_no_code() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for name in (CHECKER, "principal.builder.class", "client.quota.callback.class"):
            assert await alter_broker(client, name, "SampleDirectory") == InvalidRequest.code

    in_node(scenario, **CHECKED)


# quotas


@pytest.mark.usefixtures("sample")
def test_limits_of_clients_are_decided_by_code_of_the_deployment() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        quotas = harness.node.broker.all_quotas
        assert quotas.is_set
        data = PartitionProduceData(0, one_batch(bytes(5000)))
        topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        await client.ask(CreateTopicsRequest(topics=[topic]), 7)

        async def throttle_ms(client_id: str) -> int:
            _, other = await environment.network.connect(Client, host="n1", port=9092)
            assert isinstance(other, Client)
            request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=[data])])
            answer = await other.ask(request, 9, client_id=client_id)
            assert answer.responses[0].partition_responses[0].error_code == 0
            found: int = answer.throttle_time_ms
            return found

        await asyncio.sleep(20)
        # 5 KB each, and the windows hold 10 KB; both are of one team.
        assert [await throttle_ms(name) > 0 for name in ("red-1", "red-2", "red-1")] == [False, True, True]
        assert [await throttle_ms(name) for name in ("blue-1", "free", "free", "free")] == [0, 0, 0, 0]
        # Where it fails, the cluster's quotas hold, and there are none.
        for name in ("broken", "absurd"):
            assert [await throttle_ms(name) for _ in range(3)] == [0, 0, 0]
        assert samples(harness.node)['millbeck_seam_failures_total{setting="client.quota.callback.class"}'] >= 2
        limit = quotas.produce.of("ANONYMOUS", "green-1", 0)
        assert limit is not None
        assert quotas.produce.of("ANONYMOUS", "green-2", 0).bucket is limit.bucket  # type: ignore[union-attr]

    in_node(scenario, **{"client.quota.callback.class": "SampleQuotas"})


@pytest.mark.usefixtures("sample")
def test_consumer_groups_use_the_assignors_of_a_package() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert partitions(await client.ask(beat("a"), 1)) == [0, 1]
        joined = await client.ask(beat("b"), 1)
        assert (joined.error_code, partitions(joined)) == (0, [])
        refused = await client.ask(beat("c", server_assignor="range"), 1)
        assert refused.error_code == UnsupportedAssignor.code
        failed = await client.ask(beat("d", server_assignor="SampleGreedy"), 1)
        assert failed.error_code == 0, "the first assignor has more votes"

    in_node(scenario, **{"group.consumer.assignors": "SampleFirst,SampleGreedy"})


@pytest.mark.usefixtures("sample")
def test_an_assignment_that_cannot_be_fails_the_heartbeat_and_not_the_group() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await prepare(client)
        assert partitions(await client.ask(beat("a"), 1)) == [0, 1]
        await asyncio.sleep(2)
        assert (await client.ask(beat("b"), 1)).error_code == UnknownServerError.code
        assert (await client.ask(beat("a", epoch=1), 1)).error_code == 0

    in_node(scenario, **{"group.consumer.assignors": "SampleGreedy"})


@pytest.mark.usefixtures("sample")
def test_share_groups_use_the_assignor_of_a_package() -> None:
    settings = {"group.share.assignors": "SampleEveryone"}
    assert isinstance(share_assignor(NodeConfig({"log.dirs": "/data", **settings})), GuardedShareAssignor)
    assert share_assignor(NodeConfig({"log.dirs": "/data"})) is assign


@pytest.mark.parametrize(
    "name",
    [
        "authorizer.class.name",
        "replica.selector.class",
        "create.topic.policy.class.name",
        "group.consumer.assignors",
        "group.share.assignors",
        "listener.name.plaintext.principal.builder.class",
        "listener.name.plaintext.plain.sasl.server.callback.handler.class",
        "client.quota.callback.class",
    ],
)
def test_a_node_does_not_start_without_what_its_file_names(name: str) -> None:
    harness = BrokerHarness()
    harness.settings[name] = "com.example.Missing"
    if "sasl" in name:
        harness.settings |= {
            "listeners": "PLAINTEXT://:9092,NODES://:9094",
            "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,NODES:PLAINTEXT",
            "inter.broker.listener.name": "NODES",
            "sasl.enabled.mechanisms": "PLAIN",
        }

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        raise AssertionError("it started")

    with pytest.raises(SimulationStuck, match=f"InvalidConfig.*{name}: no installed package"):
        harness.run(scenario)


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
