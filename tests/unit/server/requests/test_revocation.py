"""Sessions end with the credentials they began with, where that is asked for, and no others do."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from typing import Any

import pytest

from millbeck.client.connection import Connection
from millbeck.kernel.environment import Environment
from millbeck.security.sasl.exchange import ClientWork
from millbeck.security.sasl.plain import PlainClient
from millbeck.security.sasl.scram import ScramClient
from millbeck.security.sasl.scram_messages import ScramMechanism
from millbeck.wire.messages.authentication import (
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramCredentialDeletion,
)
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.scraping import samples
from tests.unit.server.requests.handlers import test_delegation_tokens as tokens
from tests.unit.server.requests.handlers.test_scram_credentials import alter, log_in, upsertion
from tests.unit.server.requests.test_authentication import PLAIN_USERS

JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"


def in_node(scenario: Any, **settings: str) -> None:
    harness = BrokerHarness()
    harness.settings |= {
        "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN",
        "millbeck.disconnect.on.revoke": "true",
        JAAS: PLAIN_USERS,
        **settings,
    }
    harness.run(scenario)


async def connected(environment: Environment) -> Client:
    _, client = await environment.network.connect(Client, host="n1", port=9094)
    assert isinstance(client, Client)
    return client


async def logged_in(environment: Environment, user: str, mechanism: str = "SCRAM-SHA-256") -> Client:
    client = await connected(environment)
    assert await log_in(client, user, "secret", mechanism) == 0
    return client


async def by_plain(environment: Environment, user: str, password: str) -> Client:
    client = await connected(environment)
    assert (await client.ask(SaslHandshakeRequest("PLAIN"), 1)).error_code == 0
    token = PlainClient(user, password).begin()
    assert (await client.ask(SaslAuthenticateRequest(token), 2)).error_code == 0
    return client


async def goes_on(client: Client) -> bool:
    await asyncio.sleep(0.5)
    return not client.is_lost and bool((await client.ask(MetadataRequest(None), 12)).brokers)


def test_a_deleted_user_is_disconnected_and_the_others_stay() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        await alter(admin, upsertion("alice", "secret"), upsertion("bob", "secret"))
        await alter(admin, upsertion("alice", "secret", ScramMechanism.SHA_512))
        alice, bob = await logged_in(environment, "alice"), await logged_in(environment, "bob")
        by_other_mechanism = await logged_in(environment, "alice", "SCRAM-SHA-512")
        plain = await by_plain(environment, "alice", "alice-secret")
        await alter(admin, upsertion("alice", "changed"))
        assert await goes_on(alice), "a changed password ends no session"
        await alter(admin, ScramCredentialDeletion("alice", 1))
        assert not await goes_on(alice)
        assert [await goes_on(each) for each in (bob, by_other_mechanism, plain, admin)] == [True] * 4
        assert harness.node is not None
        assert samples(harness.node)["millbeck_sessions_revoked_total"] == 1

    in_node(scenario)


def test_without_the_setting_sessions_go_on_as_in_kafka() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        await alter(admin, upsertion("alice", "secret"))
        alice = await logged_in(environment, "alice")
        await alter(admin, ScramCredentialDeletion("alice", 1))
        assert await goes_on(alice)

    in_node(scenario, **{"millbeck.disconnect.on.revoke": "false"})


def test_a_user_that_is_deleted_during_the_login_is_not_let_in() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        await alter(admin, upsertion("alice", "secret"))
        client = await connected(environment)
        assert (await client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)).error_code == 0
        exchange = ScramClient(ScramMechanism.SHA_256, "alice", "secret", "nonce")
        first = await client.ask(SaslAuthenticateRequest(exchange.begin()), 2)
        await alter(admin, ScramCredentialDeletion("alice", 1))
        step = exchange.step(first.auth_bytes)
        assert isinstance(step, ClientWork)
        client.send(SaslAuthenticateRequest(step.then(step.job(*step.arguments))), 2)
        await asyncio.sleep(0.5)
        assert client.is_lost

    in_node(scenario)


def test_plain_that_verifies_with_scram_ends_with_the_last_credential() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        await alter(admin, upsertion("alice", "secret"))
        await alter(admin, upsertion("alice", "secret", ScramMechanism.SHA_512))
        alice = await by_plain(environment, "alice", "secret")
        await alter(admin, ScramCredentialDeletion("alice", 1))
        assert await goes_on(alice)
        await alter(admin, ScramCredentialDeletion("alice", 2))
        assert not await goes_on(alice)

    in_node(scenario, **{"millbeck.plain.verify": "scram"})


@pytest.mark.parametrize("is_removed", [True, False], ids=["without bob", "with bob"])
def test_a_user_that_is_taken_out_of_the_jaas_entry(is_removed: bool) -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        alice = await by_plain(environment, "alice", "alice-secret")
        bob = await by_plain(environment, "bob", "bob-secret")
        left = PLAIN_USERS.replace(' user_bob="bob-secret"', "" if is_removed else ' user_bob="other-secret"')
        change = IncrementalAlterableConfig(JAAS, 0, left)
        request = IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(4, "1", [change])])
        answer = await admin.ask(request, 1)
        assert [each.error_code for each in answer.responses] == [0]
        assert await goes_on(alice)
        assert await goes_on(bob) != is_removed

    in_node(scenario)


SHORTENED_MS = 10_000


async def answers(connection: Connection) -> bool:
    await asyncio.sleep(0.5)
    return connection.is_open and bool(
        (await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)).brokers
    )


def test_the_sessions_of_a_deleted_token_end_and_those_of_its_owner_and_of_other_tokens_go_on() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        alice = await tokens.log_in(environment, "alice")
        deleted, kept = await tokens.create(alice), await tokens.create(alice)
        ending = [
            await tokens.log_in_by(environment, deleted, mechanism)
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256")
        ]
        other = await tokens.log_in_by(environment, kept)
        assert (await tokens.expire(alice, deleted.hmac, SHORTENED_MS)).error_code == 0
        assert [await answers(each) for each in ending] == [True] * 3, "a token that expires sooner ends no session yet"
        assert (await tokens.expire(alice, deleted.hmac)).error_code == 0
        assert [await answers(each) for each in ending] == [False] * 3
        assert [await answers(each) for each in (alice, other)] == [True] * 2
        assert await goes_on(admin)
        assert harness.node is not None
        assert samples(harness.node)["millbeck_sessions_revoked_total"] == 3

    tokens.in_node(scenario, millbeck_disconnect_on_revoke="true")


def test_without_the_setting_the_sessions_of_a_deleted_token_go_on() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        alice = await tokens.log_in(environment, "alice")
        token = await tokens.create(alice)
        holder = await tokens.log_in_by(environment, token)
        assert (await tokens.expire(alice, token.hmac)).error_code == 0
        assert await answers(holder)

    tokens.in_node(scenario)


def test_a_token_that_is_deleted_during_the_login_is_not_let_in() -> None:
    async def scenario(harness: BrokerHarness, admin: Client, environment: Environment) -> None:
        alice = await tokens.log_in(environment, "alice")
        token = await tokens.create(alice)
        client = await connected(environment)
        assert (await client.ask(SaslHandshakeRequest("SCRAM-SHA-256"), 1)).error_code == 0
        password = b2a_base64(token.hmac, newline=False).decode()
        exchange = ScramClient(ScramMechanism.SHA_256, token.token_id, password, "nonce", is_token=True)
        first = await client.ask(SaslAuthenticateRequest(exchange.begin()), 2)
        assert first.error_code == 0
        assert (await tokens.expire(alice, token.hmac)).error_code == 0
        step = exchange.step(first.auth_bytes)
        assert isinstance(step, ClientWork)
        client.send(SaslAuthenticateRequest(step.then(step.job(*step.arguments))), 2)
        await asyncio.sleep(0.5)
        assert client.is_lost

    tokens.in_node(scenario, millbeck_disconnect_on_revoke="true")
