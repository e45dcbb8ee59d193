"""Logging in by SASL: against a whole node in the simulator, and what the settings must say."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.admin import Admin, AdminConfig
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.errors import ConnectFailed, Disconnected
from millbeck.client.sasl import RENEWED_AFTER, client_credentials, password_credentials
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    IllegalSaslState,
    InvalidConfig,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from millbeck.security.sasl.scram import ScramServer
from millbeck.security.sasl.scram_messages import BY_NAME, salted_password
from millbeck.server.requests.authentication import SaslListener
from millbeck.wire.messages.authentication import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from millbeck.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client

PLAIN_USERS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
)
SETTINGS = {
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094,ONLY_PLAIN://:9095",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,ONLY_PLAIN:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "listener.name.only_plain.plain.sasl.jaas.config": PLAIN_USERS,
    "listener.name.only_plain.sasl.enabled.mechanisms": "PLAIN",
}
SASL_PORT, ONLY_PLAIN_PORT, PLAINTEXT_PORT = 9094, 9095, 9092
SETTING = "sasl.username and sasl.password"

Scenario = Callable[[BrokerHarness, Client, Environment], Coroutine[Any, Any, Any]]


def in_node(scenario: Scenario, **settings: str) -> Any:
    harness = BrokerHarness()
    harness.settings |= SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
    return harness.run(scenario)


async def add_user(client: Client, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
    scram = BY_NAME[mechanism]
    salted = salted_password(scram, password, b"salt", 4096)
    change = ScramCredentialUpsertion(user, scram.number, 4096, b"salt", salted)
    answer = await client.ask(AlterUserScramCredentialsRequest(upsertions=[change]), 0)
    assert answer.results[0].error_code == 0
    await asyncio.sleep(0.1)


async def connect(
    environment: Environment,
    mechanism: str | None = "PLAIN",
    user: str = "alice",
    password: str = "alice-secret",
    *,
    port: int = SASL_PORT,
    **options: Any,
) -> Connection:
    sasl = None if mechanism is None else password_credentials(environment, mechanism, user, password, settings=SETTING)
    return await Connection.open(environment.network, Address("n1", port), ConnectionSettings(sasl=sasl, **options))


async def ask(connection: Connection) -> MetadataResponse:
    return await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=10)


def principals(harness: BrokerHarness) -> list[str]:
    assert harness.node is not None
    return [
        connection.principal.text
        for listener in harness.node.listeners
        if listener.address.has_sasl
        for connection in listener.connections.values()
    ]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_requests_are_made_as_the_user(mechanism: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        if mechanism != "PLAIN":
            await add_user(client, "alice", "alice-secret", mechanism)
        connection = await connect(environment, mechanism)
        assert (await ask(connection)).brokers
        assert principals(harness) == ["User:alice"]

    in_node(scenario)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
def test_a_refusal_names_the_user_and_the_settings(mechanism: str, user: str, password: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await add_user(client, "alice", "alice-secret")
        with pytest.raises(SaslAuthenticationFailed) as caught:
            await connect(environment, mechanism, user, password)
        assert f"n1:9094 refused user {user}: Authentication failed" in str(caught.value)
        assert f"(see {SETTING})" in str(caught.value)
        assert password not in str(caught.value)
        assert not caught.value.retriable

    in_node(scenario)


def test_a_mechanism_that_is_not_enabled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        with pytest.raises(
            UnsupportedSaslMechanism, match=r"does not offer SCRAM-SHA-256: set sasl.mechanism to one of PL"
        ):
            await connect(environment, "SCRAM-SHA-256", port=ONLY_PLAIN_PORT)

    in_node(scenario)


def test_the_wrong_kind_of_port_either_way() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        with pytest.raises(
            IllegalSaslState, match=r"does not use SASL on this port: set security.protocol to PLAINTEXT"
        ):
            await connect(environment, port=PLAINTEXT_PORT)
        connection = await connect(environment, None)
        with pytest.raises(Disconnected, match=r"if the broker requires SASL, set security.protocol to SASL_PLAINTEXT"):
            await ask(connection)

    in_node(scenario)


def test_a_server_that_does_not_know_the_credential_is_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = ScramServer._client_final
    monkeypatch.setattr(
        ScramServer,
        "_client_final",
        lambda server, token: replace(genuine(server, token), token=b"v=" + b2a_base64(bytes(32), newline=False)),
    )

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await add_user(client, "alice", "alice-secret")
        with pytest.raises(SaslAuthenticationFailed, match="is not trusted: the server does not know this user"):
            await connect(environment, "SCRAM-SHA-256")

    in_node(scenario)


def test_passwords_are_hashed_once_for_many_connections() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await add_user(client, "alice", "alice-secret")
        hashed: list[str] = []
        credentials = password_credentials(environment, "SCRAM-SHA-256", "alice", "alice-secret", settings=SETTING)

        async def in_thread(job: Any, *arguments: Any) -> Any:
            hashed.append(job.__name__)
            return await environment.threads.run(job, *arguments)

        counted = replace(credentials, in_thread=in_thread)
        for _ in range(3):
            settings = ConnectionSettings(sasl=counted)
            await ask(await Connection.open(environment.network, Address("n1", SASL_PORT), settings))
        assert hashed == ["salted_password"]

    in_node(scenario)


# sessions


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_session_is_renewed_before_it_ends_while_requests_go_on(mechanism: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await add_user(client, "alice", "alice-secret")
        connection = await connect(environment, mechanism, in_flight_max=5)
        answered = 0
        acknowledged = 0

        async def load() -> None:
            nonlocal answered
            while asyncio.get_running_loop().time() < ends_at:
                await ask(connection)
                answered += 1

        def replied(outcome: Any) -> None:
            nonlocal acknowledged
            assert isinstance(outcome, ProduceResponse), outcome
            acknowledged += 1

        ends_at = asyncio.get_running_loop().time() + 20
        tasks = [asyncio.create_task(load()) for _ in range(3)]
        submitted = 0
        while asyncio.get_running_loop().time() < ends_at:
            if connection.has_room:
                # Fire and forget, and without waiting for anything.
                connection.send_no_response(ProduceRequest(acks=0, timeout_ms=1))
                connection.submit(ProduceRequest(acks=1, timeout_ms=1), ProduceResponse, replied, timeout_s=5)
                submitted += 1
            await asyncio.sleep(0.003)
        await asyncio.gather(*tasks)
        await asyncio.sleep(1)
        assert connection.is_open
        assert answered > 1000
        assert acknowledged == submitted > 1000
        (statistics,) = [
            listener.authentication.statistics
            for listener in harness.node.listeners  # type: ignore[union-attr]
            if isinstance(listener.authentication, SaslListener) and listener.address.port == SASL_PORT
        ]
        assert statistics.reauthentication_succeeded >= 8
        assert (statistics.expired, statistics.reauthentication_failed) == (0, 0)

    in_node(scenario, connections_max_reauth_ms="2000")


def test_an_idle_connection_is_renewed_too() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        connection = await connect(environment)
        await asyncio.sleep(30)
        assert (await ask(connection)).brokers

    in_node(scenario, connections_max_reauth_ms="2000")


def test_a_password_that_changed_ends_the_connection_at_its_renewal() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await add_user(client, "alice", "alice-secret")
        connection = await connect(environment, "SCRAM-SHA-256")
        await add_user(client, "alice", "another")
        await ask(connection)
        reasons: list[ApiError] = []
        connection.on_closed(reasons.append)
        await asyncio.sleep(3)
        assert isinstance(reasons[0], Disconnected)
        assert "re-authentication failed: n1:9094 refused user alice" in str(reasons[0])

    in_node(scenario, connections_max_reauth_ms="2000")


def test_requests_held_back_by_a_renewal_fail_with_it() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        connection = await connect(environment)
        outcomes: list[Any] = []
        connection._held = []
        for _ in range(5):
            assert connection.has_room
            connection.submit(MetadataRequest(topics=[]), MetadataResponse, outcomes.append, timeout_s=5)
        assert not connection.has_room
        connection.send_no_response(ProduceRequest(acks=0, timeout_ms=1))
        connection.close()
        assert [type(each) for each in outcomes] == [type(connection.closed)] * 5

    in_node(scenario)


def test_renewals_lie_between_kafkas_bounds() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        credentials = password_credentials(environment, "PLAIN", "alice", "x", settings=SETTING)
        times = [credentials.renewal_s(100_000) for _ in range(100)]
        assert 100 * RENEWED_AFTER[0] <= min(times) < max(times) <= 100 * RENEWED_AFTER[1]
        assert credentials.renewal_s(1000) > 1.0

    in_node(scenario)


def test_a_broker_that_says_nothing_is_given_up() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        credentials = password_credentials(environment, "PLAIN", "alice", "alice-secret", settings=SETTING)

        async def begin(host: str) -> Any:
            await asyncio.sleep(3600)

        slow = replace(credentials, begin=begin)
        settings = ConnectionSettings(sasl=slow, connect_timeout_s=2)
        with pytest.raises(ConnectFailed, match="no connection to n1:9094 within 2000 ms"):
            await Connection.open(environment.network, Address("n1", SASL_PORT), settings)

    in_node(scenario)


# settings


PLAIN_JAAS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="alice-secret";'
)
ACCEPTED = {
    "user and password": {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": "alice-secret"},
    "librdkafka's name": {"sasl.mechanisms": "plain", "sasl.username": "alice", "sasl.password": "alice-secret"},
    "jaas": {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS},
}


@pytest.mark.parametrize("settings", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_client_logs_in_with_its_settings(settings: dict[str, str]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        common = {"bootstrap.servers": "n1:9094", "security.protocol": "SASL_PLAINTEXT"}
        async with Admin(common | settings, environment=environment) as admin:
            assert (await admin.describe_cluster()).nodes
            assert set(principals(harness)) == {"User:alice"}

    in_node(scenario)


REFUSED = {
    "no mechanism": ({}, "sasl.mechanism is not set: security.protocol=SASL_SSL needs one of PLAIN, SCRAM-SHA-256"),
    "another mechanism": (
        {"sasl.mechanism": "DIGEST-MD5"},
        "sasl.mechanism: DIGEST-MD5 is not known: use PLAIN, SCRAM-SHA-256, SCRAM-SHA-512",
    ),
    "a keytab without a principal": (
        {"sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k";'},
        'sasl.jaas.config: a keytab needs useKeyTab=true, keyTab="…" and principal="…"',
    ),
    "GSSAPI, by Java's default": ({"sasl.kerberos.service.name": "kafka"}, "sasl.mechanism: there is no GSSAPI here"),
    "no user": ({"sasl.mechanism": "PLAIN"}, "sasl.username is not set"),
    "no password": ({"sasl.mechanism": "PLAIN", "sasl.username": "alice"}, "sasl.password is not set"),
    "both": (
        {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.jaas.config": PLAIN_JAAS},
        "sasl.jaas.config: set either it, or sasl.username and sasl.password",
    ),
    "module of another mechanism": (
        {"sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": PLAIN_JAAS},
        "PlainLoginModule cannot be used with sasl.mechanism=SCRAM-SHA-256: use org.apache.kafka.common.security.scram",
    ),
    "unknown module": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "com.sun.security.auth.module.JndiLoginModule required;"},
        "com.sun.security.auth.module.JndiLoginModule is not allowed as login module",
    ),
    "no password in jaas": (
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": PLAIN_JAAS.replace("password", "passwort")},
        'sasl.jaas.config: password="…" of org.apache.kafka.common.security.plain.PlainLoginModule is missing',
    ),
}


@pytest.mark.parametrize(("settings", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_setting_is_named_and_no_secret_shown(settings: dict[str, str], text: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        given = {"bootstrap.servers": "n1:9094", "security.protocol": "SASL_SSL"}
        with pytest.raises(InvalidConfig) as caught:
            client_credentials(AdminConfig.parse(given | settings), environment)
        assert text in str(caught.value)
        assert "alice-secret" not in str(caught.value)

    in_node(scenario)


def test_credentials_without_a_protocol_that_sends_them_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        settings = {"bootstrap.servers": "n1:9092", "sasl.username": "alice", "sasl.password": "alice-secret"}
        async with Admin(settings, environment=environment) as admin:
            assert (await admin.describe_cluster()).nodes

    in_node(scenario)
    assert "this client does not log in: security.protocol is PLAINTEXT" in caplog.text
