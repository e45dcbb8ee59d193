"""Clients that log in with tokens: against a whole node and an identity provider, in the simulator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.admin import Admin, AdminConfig
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.errors import ConnectFailed
from millbeck.client.sasl import client_credentials
from millbeck.kernel.environment import Environment, OpenMode
from millbeck.kernel.errors import SaslAuthenticationFailed
from millbeck.security.oauth.jwt import parse_token
from millbeck.security.oauth.keys import parse_key_set, verify_signature
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, RSA, Provider, key_set, token
from tests.unit.server.harness.broker_harness import BrokerHarness

NODE = {
    "listeners": "PLAINTEXT://:9094,SASL_PLAINTEXT://:9092",
    "advertised.listeners": "PLAINTEXT://n1:9094,SASL_PLAINTEXT://n1:9092",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "http://idp:8080/jwks",
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "http://idp:8080/jwks",
}
P = "sasl.oauthbearer."
CLIENT = {
    "bootstrap.servers": "n1:9092",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    f"{P}token.endpoint.url": "http://idp:8080/token",
    f"{P}client.credentials.client.id": "service",
    f"{P}client.credentials.client.secret": "the secret",
}

Scenario = Callable[[BrokerHarness, Provider, Environment], Coroutine[Any, Any, Any]]


def in_node(scenario: Scenario, **provider_options: Any) -> Any:
    harness = BrokerHarness()
    harness.settings |= NODE
    providers: list[Provider] = []

    async def provide(environment: Environment) -> None:
        provider = Provider(environment, **provider_options)
        await provider.serve()
        providers.append(provider)
        await asyncio.Event().wait()

    async def whole(environment: Environment) -> Any:
        harness.world.node("idp").start(provide)
        while not providers:
            await asyncio.sleep(0.01)
        await harness.start()
        return await scenario(harness, providers[0], environment)

    with harness.world:
        return harness.world.run(whole, limit_s=20_000)


def credentials(environment: Environment, **changed: str) -> Any:
    given = CLIENT | {name.replace("__", "."): value for name, value in changed.items()}
    return client_credentials(AdminConfig.parse(given), environment)


async def connect(environment: Environment, sasl: Any) -> Connection:
    return await Connection.open(environment.network, Address("n1", 9092), ConnectionSettings(sasl=sasl))


async def ask(connection: Connection) -> MetadataResponse:
    return await connection.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=10)


def write(environment: Environment, path: str, content: bytes) -> None:
    file = environment.files.open(path, OpenMode.WRITE)
    file.truncate(0)
    file.write([content], 0)
    file.close()


def principals(harness: BrokerHarness) -> list[str]:
    assert harness.node is not None
    return [
        connection.principal.text
        for listener in harness.node.listeners
        if listener.address.has_sasl
        for connection in listener.connections.values()
    ]


def requests(provider: Provider) -> int:
    return provider.asked.count("/token")


def test_a_client_gets_a_token_and_logs_in_with_it() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        sasl = credentials(environment)
        connections = await asyncio.gather(*(connect(environment, sasl) for _ in range(5)))
        for connection in connections:
            assert (await ask(connection)).brokers
        assert principals(harness) == ["User:service"] * 5
        assert requests(provider) == 1, "its connections share a token"
        assert provider.forms[0] == {"grant_type": "client_credentials"}
        assert sasl.subject() == "service"

    in_node(scenario)


def test_an_admin_client_with_a_properties_file_of_kafkas() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        async with Admin(CLIENT, environment=environment) as admin:
            assert (await admin.describe_cluster()).nodes

    in_node(scenario)


def test_sessions_are_renewed_with_new_tokens() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        connection = await connect(environment, credentials(environment))
        for _ in range(40):
            await asyncio.sleep(5)
            assert (await ask(connection)).brokers
        assert 6 <= requests(provider) <= 12
        assert principals(harness) == ["User:service"]

    in_node(scenario, lifetime_s=30)


def test_the_token_serves_on_while_the_provider_is_down_and_then_no_longer() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        sasl = credentials(environment)
        first = await connect(environment, sasl)
        provider.behaviour = "silent"
        await asyncio.sleep(88)
        second = await connect(environment, sasl)
        assert (await ask(first)).brokers
        assert (await ask(second)).brokers
        await asyncio.sleep(20)
        with pytest.raises(
            ConnectFailed, match="no token from http://idp:8080/token: idp:8080 sent no complete response"
        ):
            await connect(environment, sasl)
        provider.behaviour = "well"
        await asyncio.sleep(11)
        assert (await ask(await connect(environment, sasl))).brokers

    in_node(scenario, lifetime_s=100)


def test_a_provider_that_is_down_is_asked_less_and_less() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        sasl = credentials(environment)
        provider.behaviour = "error"
        started = environment.clock.monotonic()
        while environment.clock.monotonic() - started < 60:
            with pytest.raises(ConnectFailed, match="status 503"):
                await connect(environment, sasl)
            await asyncio.sleep(0.05)
        assert 8 <= requests(provider) <= 16

    in_node(scenario)


def test_a_refusal_is_final_and_says_what_the_provider_said() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        provider.behaviour = "refused"
        with pytest.raises(SaslAuthenticationFailed) as caught:
            await connect(environment, credentials(environment))
        assert "refused a token to client service: status 401, invalid_client: the secret is wrong" in str(caught.value)
        assert not caught.value.retriable

    in_node(scenario)


def test_a_token_that_the_broker_refuses() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        write(environment, "/token", token("alice", environment.clock.wall_ms(), aud="others").encode())
        sasl = credentials(environment, **{f"{P}token.endpoint.url": "file:///token"})
        with pytest.raises(SaslAuthenticationFailed, match=r'n1:9092 refused the token in /token: \{"status":"inv'):
            await connect(environment, sasl)

    in_node(scenario)


def test_a_token_in_a_file_is_read_again_for_the_next_connection() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        sasl = credentials(environment, **{f"{P}token.endpoint.url": "file:///token"})
        with pytest.raises(SaslAuthenticationFailed, match="/token cannot be read"):
            await connect(environment, sasl)
        for subject in ("alice", "bob"):
            await asyncio.sleep(1)
            write(environment, "/token", token(subject, environment.clock.wall_ms(), lifetime_s=60).encode() + b"\n")
            connection = await connect(environment, sasl)
            assert principals(harness) == [f"User:{subject}"]
            connection.close()
            await asyncio.sleep(54)

    in_node(scenario)


@pytest.mark.parametrize("grant", ["jwt-bearer", "client credentials"])
def test_assertions_are_signed_anew_for_each_request(grant: str) -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        write(environment, "/key.pem", RSA.as_pem(private=True, password="s3cret"))
        write(environment, "/template.json", b'{"header":{"kid":"rsa"},"payload":{"role":"x"}}')
        given = {
            f"{P}assertion.private.key.file": "/key.pem",
            f"{P}assertion.private.key.passphrase": "s3cret",
            f"{P}assertion.template.file": "/template.json",
            f"{P}assertion.claim.iss": "service",
            f"{P}assertion.claim.jti.include": "true",
        }
        if grant == "jwt-bearer":
            given[f"{P}grant.type"] = "urn:ietf:params:oauth:grant-type:jwt-bearer"
        sasl = credentials(environment, **given)
        for _ in range(2):
            assert (await ask(await connect(environment, sasl))).brokers
            await asyncio.sleep(250)
        (key,) = parse_key_set(key_set("rsa")).keys
        name = "assertion" if grant == "jwt-bearer" else "client_assertion"
        claims = [verify_signature(parse_token(form[name]), key) for form in provider.forms]
        assert [each["iss"] for each in claims] == ["service", "service"]
        assert claims[0]["role"] == "x"
        assert claims[0]["jti"] != claims[1]["jti"]

    in_node(scenario)


def test_the_end_of_one_connection_does_not_end_the_fetch_of_others() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        sasl = credentials(environment)
        first = asyncio.ensure_future(connect(environment, sasl))
        second = asyncio.ensure_future(connect(environment, sasl))
        while not requests(provider):
            await asyncio.sleep(0.0001)
        first.cancel()
        assert (await ask(await second)).brokers
        assert requests(provider) == 1

    in_node(scenario)


def test_an_unsecured_token_is_made_by_the_client() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
        given = {
            "sasl.jaas.config": f'{module} unsecuredLoginStringClaim_sub="alice";',
            f"{P}token.endpoint.url": "",
        }
        config = AdminConfig.parse(CLIENT | given)
        sasl = client_credentials(config, environment)
        exchange = await sasl.begin("broker")
        first = exchange.begin()
        assert isinstance(first, bytes)
        assert b"auth=Bearer" in first
        assert sasl.subject() == "alice"

    in_node(scenario)


def test_nothing_of_a_secret_is_shown() -> None:
    config = AdminConfig.parse(CLIENT)
    assert "the secret" not in repr(config)
