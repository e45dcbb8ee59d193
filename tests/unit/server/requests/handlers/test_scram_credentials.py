"""SCRAM credentials over the wire of a whole node: set, described, used to log in, deleted, and who may."""

from __future__ import annotations

import asyncio
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    DuplicateResource,
    ResourceNotFound,
    SaslAuthenticationFailed,
)
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import ClientWork
from millbeck.security.sasl.scram import ScramClient
from millbeck.security.sasl.scram_messages import BY_NAME, ScramMechanism, salted_password
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)
from millbeck.wire.messages.metadata import MetadataRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.secured import allow, connect_as, run_secured

SALT = b"0123456789"


def upsertion(name: str, password: str, mechanism: ScramMechanism = ScramMechanism.SHA_256) -> ScramCredentialUpsertion:
    salted = salted_password(mechanism, password, SALT, 4096)
    return ScramCredentialUpsertion(name, mechanism.number, 4096, SALT, salted)


async def alter(client: Client, *changes: Any) -> dict[str, int]:
    request = AlterUserScramCredentialsRequest(
        deletions=[each for each in changes if isinstance(each, ScramCredentialDeletion)],
        upsertions=[each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    answer = await client.ask(request, 0)
    await asyncio.sleep(0.1)
    return {each.user: each.error_code for each in answer.results}


async def describe(client: Client, *names: str) -> Any:
    users = [UserName(name) for name in names] if names else None
    return await client.ask(DescribeUserScramCredentialsRequest(users=users), 0)


async def log_in(
    client: Client, user: str, password: str, mechanism: str = "SCRAM-SHA-256", *, is_token: bool = False
) -> int:
    """The error code of the last step."""
    assert (await client.ask(SaslHandshakeRequest(mechanism), 1)).error_code == 0
    exchange = ScramClient(BY_NAME[mechanism], user, password, "nonce", is_token=is_token)
    token: bytes | None = exchange.begin()
    code: int = 0
    while token is not None and not code:
        answer = await client.ask(SaslAuthenticateRequest(token), 2)
        code = answer.error_code
        if not code:
            step = exchange.step(answer.auth_bytes)
            token = step.then(step.job(*step.arguments)) if isinstance(step, ClientWork) else step
    return code


def test_credentials_are_set_used_and_deleted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        async def as_user(user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> int:
            _, fresh = await environment.network.connect(Client, host="n1", port=9094)
            assert isinstance(fresh, Client)
            code = await log_in(fresh, user, password, mechanism)
            if not code:
                assert (await fresh.ask(MetadataRequest(None), 12)).brokers
            return code

        assert (await describe(client)).results == []
        assert await as_user("alice", "secret") == SaslAuthenticationFailed.code
        assert await alter(client, upsertion("alice", "secret"), upsertion("bob", "b")) == {"alice": 0, "bob": 0}
        assert await alter(client, upsertion("alice", "other", ScramMechanism.SHA_512)) == {"alice": 0}
        assert await as_user("alice", "secret") == 0
        assert await as_user("alice", "other") == SaslAuthenticationFailed.code
        assert await as_user("alice", "other", "SCRAM-SHA-512") == 0
        shown = {
            each.user: [(info.mechanism, info.iterations) for info in each.credential_infos]
            for each in (await describe(client)).results
        }
        assert shown == {"alice": [(1, 4096), (2, 4096)], "bob": [(1, 4096)]}
        assert await alter(client, ScramCredentialDeletion("alice", 1)) == {"alice": 0}
        assert await as_user("alice", "secret") == SaslAuthenticationFailed.code
        assert await alter(client, ScramCredentialDeletion("alice", 1)) == {"alice": ResourceNotFound.code}

    harness = BrokerHarness()
    harness.settings |= {
        "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    }
    harness.run(scenario)


def test_descriptions_of_unknown_and_repeated_users() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await alter(client, upsertion("alice", "secret"), upsertion("bob", "b"))
        results = {each.user: each for each in (await describe(client, "carol", "alice", "bob", "bob")).results}
        assert (results["carol"].error_code, results["carol"].error_message) == (
            ResourceNotFound.code,
            "Attempt to describe a user credential that does not exist: carol",
        )
        assert results["alice"].error_code == 0
        assert (results["bob"].error_code, results["bob"].error_message, results["bob"].credential_infos) == (
            DuplicateResource.code,
            "Cannot describe SCRAM credentials for the same user twice in a single request: bob",
            [],
        )

    run_secured(scenario)


def test_only_those_allowed_may_see_and_change_credentials() -> None:
    denied = ClusterAuthorizationFailed.code

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await connect_as(harness, environment)
        assert await alter(alice, upsertion("x", "x"), ScramCredentialDeletion("y", 1)) == {"x": denied, "y": denied}
        # Kafka 4.3.1 never answers the first of these.
        assert (await describe(alice)).error_code == denied
        assert (await describe(alice, "x")).error_code == denied
        await allow(client, Operation.DESCRIBE, ResourceType.CLUSTER)
        assert (await describe(alice)).error_code == 0
        assert await alter(alice, upsertion("x", "x")) == {"x": denied}
        await allow(client, Operation.ALTER, ResourceType.CLUSTER)
        assert await alter(alice, upsertion("x", "x")) == {"x": 0}

    run_secured(scenario)


def test_a_token_does_not_change_credentials() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        alice = await connect_as(harness, environment)
        await allow(client, Operation.ALTER, ResourceType.CLUSTER)
        assert harness.node is not None
        (listener, *_) = harness.node.listeners
        list(listener.connections.values())[-1].principal = Principal("User", "alice", is_token=True)
        assert await alter(alice, upsertion("x", "x")) == {"x": ClusterAuthorizationFailed.code}

    run_secured(scenario)
