"""OAUTHBEARER in a whole node: tokens, the identity provider's keys as they come, change and fail, and sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from millbeck.kernel.environment import Environment, OpenMode
from millbeck.kernel.errors import SaslAuthenticationFailed
from millbeck.security.oauth.jwt import unsecured_token
from millbeck.security.principal import Principal
from millbeck.security.sasl.oauthbearer import OauthClient
from millbeck.server.node import Node
from millbeck.wire.messages.authentication import SaslAuthenticateRequest, SaslHandshakeRequest
from millbeck.wire.messages.metadata import MetadataRequest
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, Provider, key_set, token
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.scraping import samples

URL = "http://idp:8080/jwks"
SETTINGS = {
    "listeners": "PLAINTEXT://:9094,SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": f"{AUDIENCE},other",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"{URL},file:///keys.json",
    "sasl.login.connect.timeout.ms": "2000",
    "sasl.login.read.timeout.ms": "3000",
}
REFUSED = b'{"status":"invalid_token"}'

Scenario = Callable[[BrokerHarness, Provider, Environment], Coroutine[Any, Any, Any]]


def in_node(
    scenario: Scenario,
    settings: Mapping[str, str] | None = None,
    *,
    behaviour: str = "well",
    keys: tuple[str, ...] = ("rsa", "ec"),
) -> Any:
    """The provider is a machine of its own."""
    harness = BrokerHarness()
    harness.settings |= {**SETTINGS, **(settings or {})}
    providers: list[Provider] = []

    async def provide(environment: Environment) -> None:
        provider = Provider(environment, keys=keys, behaviour=behaviour)
        await provider.serve()
        providers.append(provider)
        await asyncio.Event().wait()

    async def whole(environment: Environment) -> Any:
        harness.world.node("idp").start(provide)
        while not providers:
            await asyncio.sleep(0.01)
        await harness.start()
        result = await scenario(harness, providers[0], environment)
        assert harness.node is not None
        assert harness.node.broker.unexpected_errors == 0
        assert not harness.syncs_on_loop, harness.syncs_on_loop[0]
        return result

    with harness.world:
        return harness.world.run(whole, limit_s=20_000)


async def send(client: Client, text: str) -> Any:
    assert (await client.ask(SaslHandshakeRequest("OAUTHBEARER"), 1)).error_code == 0
    return await client.ask(SaslAuthenticateRequest(OauthClient(text, {"trace": "1"}).begin()), 2)


async def log_in(harness: BrokerHarness, environment: Environment, subject: str = "alice", **changed: Any) -> Any:
    client = await harness.connect(environment)
    return await send(client, token(subject, environment.clock.wall_ms(), **changed))


async def is_accepted(harness: BrokerHarness, environment: Environment, **changed: Any) -> bool:
    answer = await log_in(harness, environment, **changed)
    assert answer.error_code == 0
    assert answer.auth_bytes in (b"", REFUSED)
    return bool(answer.auth_bytes == b"")


def principals(node: Node | None) -> list[Principal]:
    assert node is not None
    (listener,) = [each for each in node.listeners if each.address.has_sasl]
    return [connection.principal for connection in listener.connections.values()]


@pytest.mark.parametrize("key", ["rsa", "ec"])
def test_the_client_is_who_the_token_is_about(key: str) -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        client = await harness.connect(environment)
        answer = await send(client, token("alice", environment.clock.wall_ms(), key=key))
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 295_000 < answer.session_lifetime_ms <= 300_000
        assert principals(harness.node) == [Principal("User", "alice")]
        assert (await client.ask(MetadataRequest(None), 12)).brokers
        assert provider.asked == ["/jwks"]

    in_node(scenario)


def test_a_refused_token_is_answered_with_an_object_and_then_fails() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        client = await harness.connect(environment)
        told = await send(client, token("alice", environment.clock.wall_ms(), key="other", header={"kid": "ec"}))
        assert (told.error_code, told.auth_bytes, told.session_lifetime_ms) == (0, REFUSED, 0)
        assert principals(harness.node) == [Principal("User", "ANONYMOUS")]
        failed = await client.ask(SaslAuthenticateRequest(b"\x01"), 2)
        assert failed.error_code == SaslAuthenticationFailed.code
        assert failed.error_message == REFUSED.decode()
        await asyncio.sleep(1)
        assert client.is_lost

    in_node(scenario)


FORGED: dict[str, dict[str, Any]] = {
    "other issuer": {"iss": "https://evil"},
    "no issuer": {"iss": None},
    "other audience": {"aud": "others"},
    "no audience": {"aud": None},
    "expired": {"lifetime_s": -31},
    "no end": {"exp": None},
    "not yet valid": {"nbf": 1 << 33, "exp": 1 << 34},
    "no time of issue": {"iat": None},
    "no subject": {"sub": None},
    "subject no text": {"sub": ["admin"]},
    "key of somebody else": {"key": "other"},
    "key of somebody else under a known id": {"key": "other", "header": {"kid": "ec"}},
    "algorithm of another key": {"header": {"kid": "rsa"}},
    "type of another token": {"header": {"typ": "secevent+jwt"}},
    "extension to be understood": {"header": {"crit": ["exp"]}},
}


def test_a_token_forged_in_any_field_is_refused() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        accepted = [name for name, changed in FORGED.items() if await is_accepted(harness, environment, **changed)]
        assert not accepted
        assert await is_accepted(harness, environment)
        unsigned = unsecured_token({"sub": "admin", "exp": 1 << 33, "iat": 0, "iss": ISSUER, "aud": AUDIENCE})
        assert (await send(await harness.connect(environment), unsigned)).auth_bytes == REFUSED

    in_node(scenario)


def test_pipelined_requests_wait_for_the_keys() -> None:
    """The connection is held while the keys are fetched; nothing behind the token is handled before."""

    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        provider.keys = ("ec",)
        client = await harness.connect(environment)
        text = token("alice", environment.clock.wall_ms())
        client.send(SaslHandshakeRequest("OAUTHBEARER"), 1)
        answered = client.send(SaslAuthenticateRequest(OauthClient(text, {}).begin()), 2)
        behind = client.send(MetadataRequest(None), 12)
        assert (await answered).auth_bytes == b""
        assert (await behind).brokers

    in_node(scenario, keys=("rsa",))


def test_new_keys_are_fetched_when_a_token_needs_them() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        assert await is_accepted(harness, environment, key="rsa")
        await asyncio.sleep(60)
        provider.keys = ("ec",)
        assert await is_accepted(harness, environment, key="ec")
        assert len(provider.asked) == 2
        assert not await is_accepted(harness, environment, key="rsa"), "a key that was taken back"
        assert len(provider.asked) == 2

    in_node(scenario, keys=("rsa",))


def test_many_unknown_keys_do_not_lead_to_a_fetch_each() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        await asyncio.sleep(60)
        tries = [is_accepted(harness, environment, key="other", header={"kid": f"k{index}"}) for index in range(100)]
        assert not any(await asyncio.gather(*tries))
        assert len(provider.asked) == 2

    in_node(scenario)


def test_keys_are_refreshed_regularly() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        await asyncio.sleep(350)
        assert len(provider.asked) == 4

    in_node(scenario, {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "100000"})


OUTAGES = ["gone", "silent", "trickle", "huge", "endless", "redirect", "error", "nonsense", "cut"]


@pytest.mark.parametrize("outage", OUTAGES)
def test_keys_stay_while_the_provider_has_an_outage(outage: str) -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        assert await is_accepted(harness, environment)
        if outage == "gone":
            harness.world.node("idp").crash()
        else:
            provider.behaviour = outage
        await asyncio.sleep(200)
        started = environment.clock.monotonic()
        assert await is_accepted(harness, environment)
        assert environment.clock.monotonic() - started < 1
        found = samples(harness.node)
        assert found[f'millbeck_jwks_refresh_failures_total{{url="{URL}"}}'] > 10
        assert found[f'millbeck_jwks_age_seconds{{url="{URL}"}}'] > 190
        if outage != "gone":
            provider.behaviour = "well"
            provider.keys = ("ed",)
            await asyncio.sleep(15)
            assert await is_accepted(harness, environment, key="ed"), "after the outage the keys are fetched again"

    in_node(scenario, {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "60000"})


@pytest.mark.parametrize("outage", ["silent", "redirect", "huge"])
def test_a_node_starts_without_its_provider_and_lets_nobody_in(outage: str) -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        started = environment.clock.monotonic()
        assert not await is_accepted(harness, environment)
        assert environment.clock.monotonic() - started < 6
        provider.behaviour = "well"
        await asyncio.sleep(15)
        assert await is_accepted(harness, environment)

    in_node(scenario, behaviour=outage)


def test_keys_in_a_file_are_followed() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        assert harness.node is not None
        files = harness.node.environment.files
        assert not await is_accepted(harness, environment), "there is no file yet"

        def put(*names: str) -> None:
            file = files.open("/keys.json", OpenMode.WRITE)
            file.truncate(0)
            file.write([key_set(*names)], 0)
            file.close()

        harness.syncs_on_loop.clear()
        put("rsa", "ec")
        harness.node.reload()
        await asyncio.sleep(1)
        assert await is_accepted(harness, environment), "on SIGHUP"
        put("ed")
        await asyncio.sleep(12)
        assert not await is_accepted(harness, environment)
        assert await is_accepted(harness, environment, key="ed"), "by itself"
        put()
        await asyncio.sleep(12)
        assert await is_accepted(harness, environment, key="ed"), "a file without keys is no reason to lose those"
        harness.syncs_on_loop.clear()
        assert not provider.asked

    in_node(scenario, {"sasl.oauthbearer.jwks.endpoint.url": "file:///keys.json"})


# sessions


def test_a_session_ends_with_its_token() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        client = await harness.connect(environment)
        answer = await send(client, token("alice", environment.clock.wall_ms(), lifetime_s=10))
        assert 8_000 < answer.session_lifetime_ms <= 10_000
        await asyncio.sleep(5)
        assert (await client.ask(MetadataRequest(None), 12)).brokers
        await asyncio.sleep(6)
        with pytest.raises(ConnectionError):
            await client.ask(MetadataRequest(None), 12)

    in_node(scenario)


def test_a_session_is_renewed_with_a_new_token_of_the_same_owner() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        client = await harness.connect(environment)
        for _ in range(4):
            text = token("alice", environment.clock.wall_ms(), lifetime_s=10)
            assert (await send(client, text)).session_lifetime_ms > 0
            await asyncio.sleep(6)
            assert (await client.ask(MetadataRequest(None), 12)).brokers
        answer = await send(client, token("bob", environment.clock.wall_ms(), lifetime_s=10))
        assert answer.error_code == SaslAuthenticationFailed.code
        assert "Cannot change principals during re-authentication" in answer.error_message

    in_node(scenario)


def test_the_shorter_of_token_and_setting_limits_a_session() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        assert (await log_in(harness, environment)).session_lifetime_ms == 60_000
        assert (await log_in(harness, environment, lifetime_s=20)).session_lifetime_ms < 20_001

    in_node(scenario, {"connections.max.reauth.ms": "60000"})


def test_a_token_that_expires_while_its_keys_are_fetched_is_refused() -> None:
    async def scenario(harness: BrokerHarness, provider: Provider, environment: Environment) -> None:
        await asyncio.sleep(60)
        provider.keys, provider.behaviour = ("ec",), "silent"
        text = token("alice", environment.clock.wall_ms(), lifetime_s=-28)
        assert (await send(await harness.connect(environment), text)).auth_bytes == REFUSED

    in_node(scenario, keys=("rsa",))
