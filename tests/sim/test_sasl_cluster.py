"""Three nodes that log in to each other everywhere, with ACLs in force: what they do for each other still works."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, TopicAuthorizationFailed
from millbeck.security.acls import AccessControlEntry
from millbeck.security.authorizer import Operation, PatternType, Permission, ResourceType
from millbeck.server.requests.authentication import SaslListener
from millbeck.simulation.cluster import PORT, SimCluster
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, Provider

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret" user_admin="admin-secret" user_app="app-secret";'
)
SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": JAAS,
    "listener.name.controller.plain.sasl.jaas.config": JAAS,
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:admin",
    "connections.max.reauth.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
}
TOPIC_COUNT = 60

Scenario = Callable[[SimCluster, Environment], Coroutine[Any, Any, None]]


def in_cluster(scenario: Scenario, *, is_combined: bool = True, **settings: str) -> SimCluster:
    changes = {name.replace("_", "."): text for name, text in settings.items()}
    cluster = SimCluster(3, is_combined=is_combined, settings=SETTINGS | changes)

    async def whole(environment: Environment) -> None:
        cluster.start_all()
        await scenario(cluster, environment)
        assert cluster.unexpected_errors() == {}

    with cluster.world as world:
        world.run(whole, limit_s=400)
    return cluster


def client(cluster: SimCluster, user: str, **others: str) -> dict[str, str]:
    return {
        "bootstrap.servers": ",".join(f"{each.name}:{PORT}" for each in cluster.brokers),
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
        **{name.replace("_", "."): text for name, text in others.items()},
    }


def allowed(operation: Operation, resource_type: ResourceType, name: str) -> AccessControlEntry:
    return AccessControlEntry(
        resource_type=resource_type,
        resource_name=name,
        pattern_type=PatternType.LITERAL,
        principal="User:app",
        host="*",
        operation=operation,
        permission_type=Permission.ALLOW,
    )


APP_ACLS = [
    allowed(Operation.ALL, ResourceType.TOPIC, "t"),
    allowed(Operation.READ, ResourceType.GROUP, "g"),
    allowed(Operation.ALL, ResourceType.TRANSACTIONAL_ID, "x"),
]


def principals(cluster: SimCluster, *, of_controllers: bool) -> set[str]:
    return {
        connection.principal.text
        for node in cluster.running()
        for listener in node.listeners
        if listener.is_controllers == of_controllers
        for connection in listener.connections.values()
    }


async def use(cluster: SimCluster, environment: Environment, client: Callable[..., dict[str, str]] = client) -> None:
    """A transaction's records are read by a group, while a node after the other is killed: followers, coordinators,
    the active controller and forwarding brokers find each other again."""
    async with Admin(client(cluster, "admin"), environment=environment) as admin:
        topic = NewTopic(name="t", partition_count=3, replication_factor=3, configs={"min.insync.replicas": "2"})
        (await admin.create_topics([topic], timeout_s=120)).all()
        (await admin.create_acls(APP_ACLS, timeout_s=60)).all()
    settings = client(cluster, "app", transactional_id="x", delivery_timeout_ms="200000")
    async with Producer(settings, environment=environment) as producer:
        await producer.init_transactions(timeout_s=120)
        for number, member in enumerate(cluster.members[:3]):
            producer.begin_transaction()
            sent = [await producer.enqueue("t", b"%d" % (TOPIC_COUNT * number + each)) for each in range(TOPIC_COUNT)]
            cluster.machine(member).crash()
            await asyncio.sleep(4)
            cluster.start(member)
            await asyncio.gather(*sent)
            await producer.commit_transaction(timeout_s=120)
    settings = client(cluster, "app", group_id="g", auto_offset_reset="earliest", isolation_level="read_committed")
    async with Consumer(settings, environment=environment) as consumer:
        consumer.subscribe(["t"])
        values: list[bytes | None] = []
        async with asyncio.timeout(120):
            while len(values) < 3 * TOPIC_COUNT:
                for records in (await consumer.poll(timeout_s=1)).values():
                    values += [record.value for record in records]
        await consumer.commit()
        assert sorted(int(value or b"-1") for value in values) == list(range(3 * TOPIC_COUNT))


@pytest.mark.parametrize("is_combined", [True, False])
def test_a_cluster_works_through_logins_of_all_its_nodes(is_combined: bool) -> None:
    async def scenario(cluster: SimCluster, environment: Environment) -> None:
        await use(cluster, environment)
        await asyncio.sleep(8)
        assert principals(cluster, of_controllers=True) == {"User:node"}
        assert "User:node" in principals(cluster, of_controllers=False) <= {"User:node", "User:app", "User:admin"}
        sessions = [
            listener.authentication.statistics
            for node in cluster.running()
            for listener in node.listeners
            if listener.is_controllers and isinstance(listener.authentication, SaslListener)
        ]
        # Sessions between nodes end after 3 s, and are renewed before.
        assert sum(each.reauthentication_succeeded for each in sessions) > 20
        assert sum(each.expired + each.reauthentication_failed for each in sessions) == 0

    in_cluster(scenario, is_combined=is_combined)


TOKENS = {
    "sasl.oauthbearer.token.endpoint.url": "http://idp:8080/token",
    "sasl.oauthbearer.client.credentials.client.secret": "secret",
}
"""Where nodes and clients get tokens; whoever asks is who the token is about."""
OAUTH = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "http://idp:8080/jwks",
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.client.credentials.client.id": "node",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "http://idp:8080/jwks,http://idp:8080/token",
    **TOKENS,
}


def client_with_token(cluster: SimCluster, user: str, **others: str) -> dict[str, str]:
    settings = client(cluster, user, **others)
    del settings["sasl.username"], settings["sasl.password"]
    own = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.client.credentials.client.id": user}
    return settings | TOKENS | own


def test_a_cluster_works_through_logins_with_tokens() -> None:
    """The identity provider starts after the nodes, and is away for longer than a session."""
    cluster = SimCluster(3, settings=SETTINGS | OAUTH)
    providers: list[Provider] = []

    async def provide(environment: Environment) -> None:
        providers.append(Provider(environment, lifetime_s=20))
        await providers[0].serve()
        await asyncio.Event().wait()

    async def whole(environment: Environment) -> None:
        cluster.start_all()
        await asyncio.sleep(2)
        cluster.world.node("idp").start(provide)
        await use(cluster, environment, client_with_token)
        assert principals(cluster, of_controllers=True) == {"User:node"}
        providers[0].behaviour = "silent"
        await asyncio.sleep(30)
        providers[0].behaviour = "well"
        async with Admin(client_with_token(cluster, "admin"), environment=environment) as admin:
            (await admin.create_topics([NewTopic(name="u", replication_factor=3)], timeout_s=120)).all()
            await asyncio.sleep(10)
            assert len((await admin.describe_topics(["u"]))["u"].partitions[0].in_sync) == 3
        assert cluster.unexpected_errors() == {}

    with cluster.world as world:
        world.run(whole, limit_s=400)


def test_what_a_broker_forwards_is_decided_for_its_client() -> None:
    async def scenario(cluster: SimCluster, environment: Environment) -> None:
        async with (
            Admin(client(cluster, "app"), environment=environment) as app,
            Admin(client(cluster, "admin"), environment=environment) as admin,
        ):
            refused = await app.create_topics([NewTopic(name="t")], timeout_s=100)
            assert isinstance(refused.failed["t"], TopicAuthorizationFailed)
            (await admin.create_topics([NewTopic(name="t")], timeout_s=60)).all()

    in_cluster(scenario)


def test_a_node_with_a_wrong_password_stays_outside(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: SimCluster, environment: Environment) -> None:
        async with Admin(client(cluster, "admin"), environment=environment) as admin:
            (await admin.create_topics([NewTopic(name="t", replication_factor=3)], timeout_s=120)).all()
            member = cluster.members[0]
            await cluster.stop(member)
            for name in ("plaintext", "controller"):
                key = f"listener.name.{name}.plain.sasl.jaas.config"
                cluster._settings[key] = JAAS.replace('password="node-secret"', 'password="guessed"')
            cluster.start(member)
            await asyncio.sleep(30)
            described = await admin.describe_topics(["t"])
            assert member.number not in described["t"].partitions[0].in_sync
            for each in admin.cluster.metadata.brokers:
                assert each != member.number

    in_cluster(scenario)
    assert "refused user node: Authentication failed: Invalid username or password (see listener.name." in caplog.text
    assert "guessed" not in caplog.text


def test_a_client_without_credentials_gets_nowhere() -> None:
    async def scenario(cluster: SimCluster, environment: Environment) -> None:
        settings = {"bootstrap.servers": client(cluster, "x")["bootstrap.servers"]}
        async with Admin(settings, environment=environment) as stranger:
            with pytest.raises(ApiError, match=r"if the broker requires SASL, set security.protocol"):
                await stranger.list_topics(timeout_s=20)

    in_cluster(scenario)
