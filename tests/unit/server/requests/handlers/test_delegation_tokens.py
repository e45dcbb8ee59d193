"""Delegation tokens over the wire of a whole node: created, used to log in, renewed, expired, described."""

from __future__ import annotations

import asyncio
from binascii import b2a_base64
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.sasl import password_credentials
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    DelegationTokenAuthDisabled,
    DelegationTokenAuthorizationFailed,
    DelegationTokenNotFound,
    DelegationTokenOwnerMismatch,
    DelegationTokenRequestNotAllowed,
    SaslAuthenticationFailed,
)
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.wire.messages.authentication import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from millbeck.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.secured import SECURED, allow
from tests.unit.server.requests.handlers.test_scram_credentials import alter, upsertion
from tests.unit.server.requests.handlers.test_scram_credentials import log_in as log_in_again

USERS = ("alice", "bob", "carol", "mallory", "root")
SETTINGS = {
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        + " ".join(f'user_{name}="{name}-secret"' for name in USERS)
        + ";"
    ),
    "delegation.token.secret.key": "the key of all nodes",
    "delegation.token.max.lifetime.ms": "60000",
    "delegation.token.expiry.time.ms": "20000",
    "delegation.token.expiry.check.interval.ms": "5000",
    **{name.replace("_", "."): text for name, text in SECURED.items()},
    "super.users": "User:ANONYMOUS;User:root",
}


def in_node(scenario: Any, **settings: str) -> Any:
    harness = BrokerHarness()
    harness.settings |= SETTINGS
    harness.settings |= {name.replace("_", "."): text for name, text in settings.items()}
    return harness.run(scenario)


async def log_in(
    environment: Environment, user: str, password: str = "", mechanism: str = "PLAIN", *, is_token: bool = False
) -> Connection:
    sasl = password_credentials(
        environment, mechanism, user, password or f"{user}-secret", is_token=is_token, settings="the test"
    )
    return await Connection.open(environment.network, Address("n1", 9094), ConnectionSettings(sasl=sasl))


async def log_in_by(environment: Environment, token: Any, mechanism: str = "SCRAM-SHA-256") -> Connection:
    password = b2a_base64(token.hmac, newline=False).decode()
    return await log_in(environment, token.token_id, password, mechanism, is_token=True)


async def create(connection: Connection, *, renewers: tuple[str, ...] = (), owner: str = "", **given: Any) -> Any:
    request = CreateDelegationTokenRequest(
        owner_principal_type="User" if owner else None,
        owner_principal_name=owner or None,
        renewers=[CreatableRenewers("User", name) for name in renewers],
        max_lifetime_ms=given.get("max_lifetime_ms", -1),
    )
    answer = await connection.request(request, CreateDelegationTokenResponse, timeout_s=10)
    await asyncio.sleep(0.1)
    return answer


async def renew(connection: Connection, secret: bytes, period: int = -1) -> RenewDelegationTokenResponse:
    request = RenewDelegationTokenRequest(hmac=secret, renew_period_ms=period)
    return await connection.request(request, RenewDelegationTokenResponse, timeout_s=10)


async def expire(connection: Connection, secret: bytes, period: int = -1) -> ExpireDelegationTokenResponse:
    request = ExpireDelegationTokenRequest(hmac=secret, expiry_time_period_ms=period)
    answer = await connection.request(request, ExpireDelegationTokenResponse, timeout_s=10)
    await asyncio.sleep(0.1)
    return answer


async def describe(connection: Connection, owners: tuple[str, ...] | None = None) -> DescribeDelegationTokenResponse:
    named = None if owners is None else [DescribeDelegationTokenOwner("User", name) for name in owners]
    request = DescribeDelegationTokenRequest(owners=named)
    return await connection.request(request, DescribeDelegationTokenResponse, timeout_s=10)


def principals(harness: BrokerHarness) -> list[Principal]:
    assert harness.node is not None
    return [
        connection.principal
        for listener in harness.node.listeners
        if listener.address.has_sasl
        for connection in listener.connections.values()
    ]


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_who_logs_in_with_a_token_is_its_owner_until_it_expires(mechanism: str) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        token = await create(alice)
        assert token.error_code == 0
        holder = await log_in_by(environment, token, mechanism)
        assert (await holder.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)).brokers
        assert Principal("User", "alice", is_token=True) in principals(harness)
        # Its session ends with the token: it is renewed as long as that is possible.
        await asyncio.sleep(12)
        assert (await renew(alice, token.hmac)).error_code == 0
        await asyncio.sleep(12)
        assert (await holder.request(MetadataRequest(topics=[]), MetadataResponse, timeout_s=5)).brokers
        assert holder.is_open
        await asyncio.sleep(22)
        assert not holder.is_open
        with pytest.raises(SaslAuthenticationFailed):
            await log_in_by(environment, token, mechanism)

    in_node(scenario)


def test_a_wrong_password_or_an_unknown_token() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        token = await create(await log_in(environment, "alice"))
        for user, password in ((token.token_id, "guessed"), ("AAAAAAAAAAAAAAAAAAAAAA", "guessed")):
            with pytest.raises(SaslAuthenticationFailed):
                await log_in(environment, user, password, "SCRAM-SHA-256", is_token=True)
        # Not as a user's name either.
        password = b2a_base64(token.hmac, newline=False).decode()
        with pytest.raises(SaslAuthenticationFailed):
            await log_in(environment, token.token_id, password, "SCRAM-SHA-256")

    in_node(scenario)


def test_requests_that_are_not_allowed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        denied = DelegationTokenRequestNotAllowed.code
        holder = await log_in_by(environment, await create(await log_in(environment, "alice")))
        plaintext = await Connection.open(environment.network, Address("n1", 9092), ConnectionSettings())
        for connection in (holder, plaintext):
            created = await create(connection)
            assert (created.error_code, created.expiry_timestamp_ms, created.token_id) == (denied, -1, "")
            assert (await renew(connection, b"x")).error_code == denied
            assert (await expire(connection, b"x")).error_code == denied
            assert (await describe(connection)).error_code == denied

    in_node(scenario)


def test_a_token_for_another_owner_needs_permission() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        assert (await create(alice, owner="carol")).error_code == DelegationTokenAuthorizationFailed.code
        await allow(client, Operation.CREATE_TOKENS, ResourceType.USER, "User:carol")
        token = await create(alice, owner="carol")
        assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "carol", "alice")
        await log_in_by(environment, token)
        assert Principal("User", "carol", is_token=True) in principals(harness)

    in_node(scenario)


def test_renewing_and_expiring_are_for_owner_and_renewers() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice, bob, root = [await log_in(environment, name) for name in ("alice", "bob", "root")]
        token = await create(alice, renewers=("bob",))
        assert (await renew(bob, token.hmac)).error_code == 0
        assert (await renew(root, token.hmac)).error_code == DelegationTokenOwnerMismatch.code
        assert (await expire(root, token.hmac)).error_code == DelegationTokenOwnerMismatch.code
        assert (await renew(alice, b"x" * 64)).error_code == DelegationTokenNotFound.code
        gone = await expire(bob, token.hmac)
        assert (gone.error_code, gone.expiry_timestamp_ms) == (0, -1)
        assert (await renew(alice, token.hmac)).error_code == DelegationTokenNotFound.code

    in_node(scenario)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        requester = "alice" if version >= 3 else ""

        async def ask(message: Any, response: Any, highest: int) -> Any:
            answer = await alice.request(message, response, timeout_s=10, version_max=min(version, highest))
            assert answer.error_code == 0
            await asyncio.sleep(0.1)
            return answer

        token = await ask(CreateDelegationTokenRequest(max_lifetime_ms=-1), CreateDelegationTokenResponse, 3)
        assert (token.principal_name, token.token_requester_principal_name) == ("alice", requester)
        (shown,) = (await ask(DescribeDelegationTokenRequest(owners=None), DescribeDelegationTokenResponse, 3)).tokens
        assert (shown.principal_name, shown.token_requester_principal_name) == ("alice", requester)
        assert shown.hmac == token.hmac
        await ask(RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1), RenewDelegationTokenResponse, 2)
        request = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        await ask(request, ExpireDelegationTokenResponse, 2)

    in_node(scenario)


def test_who_sees_which_tokens() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice, bob, mallory, root = [await log_in(environment, name) for name in ("alice", "bob", "mallory", "root")]
        first = await create(alice, renewers=("bob",))
        second = await create(alice)

        async def seen(connection: Connection, owners: tuple[str, ...] | None = None) -> set[str]:
            answer = await describe(connection, owners)
            assert answer.error_code == 0
            return {each.token_id for each in answer.tokens}

        both = {first.token_id, second.token_id}
        assert (await seen(alice), await seen(root)) == (both, both)
        assert (await seen(bob), await seen(mallory)) == ({first.token_id}, set())
        assert (await seen(alice, ()), await seen(alice, ("bob",)), await seen(alice, ("alice",))) == (
            set(),
            set(),
            both,
        )
        (shown,) = (await describe(bob)).tokens
        assert (shown.hmac, [each.principal_name for each in shown.renewers]) == (first.hmac, ["bob"])
        await allow(client, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, second.token_id, user="User:mallory")
        assert await seen(mallory) == {second.token_id}
        await allow(client, Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:alice", user="User:mallory")
        assert await seen(mallory) == both

    in_node(scenario)


def test_a_renewer_without_a_name_hides_no_token() -> None:
    """Kafka accepts one, too; nobody has that name."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        token = await create(alice, renewers=("", "bob"))
        (shown,) = (await describe(alice)).tokens
        assert (shown.token_id, [each.principal_name for each in shown.renewers]) == (token.token_id, ["", "bob"])

    in_node(scenario)


def test_a_session_of_a_token_is_renewed_with_its_owners_password() -> None:
    """As in Kafka, where a principal is a type and a name."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await alter(client, upsertion("alice", "secret"))
        token = await create(await log_in(environment, "alice"))
        _, holder = await environment.network.connect(Client, host="n1", port=9094)
        assert isinstance(holder, Client)
        password = b2a_base64(token.hmac, newline=False).decode()
        assert await log_in_again(holder, token.token_id, password, is_token=True) == 0
        assert Principal("User", "alice", is_token=True) in principals(harness)
        assert await log_in_again(holder, "alice", "secret") == 0
        assert Principal("User", "alice", is_token=True) not in principals(harness)

    in_node(scenario)


def test_what_has_expired_is_removed_from_the_metadata() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        await create(alice, max_lifetime_ms=1000)
        kept = await create(alice)
        await asyncio.sleep(7)
        assert harness.node is not None
        assert list(harness.node.broker.image.delegation_tokens.by_id) == [kept.token_id]

    in_node(scenario)


def test_without_a_key_there_are_no_tokens() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await log_in(environment, "alice")
        off = DelegationTokenAuthDisabled.code
        assert (await create(alice)).error_code == off
        assert (await renew(alice, b"x")).error_code == off
        assert (await expire(alice, b"x")).error_code == off
        assert (await describe(alice)).error_code == off

    in_node(scenario, delegation_token_secret_key="")
