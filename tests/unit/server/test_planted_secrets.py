"""Secrets of every kind, planted in a node and its clients, are in no log, answer, metric or audit.

CVE-2019-12399 and CVE-2026-33558 were of this kind. The log is taken at every level, with tracebacks, also of a
handler that fails while it has a secret in its hands.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from binascii import hexlify
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.client.admin import AdminConfig
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.sasl import client_credentials
from millbeck.controller import scram
from millbeck.kernel.config_providers import FILE_PROVIDER, resolved_settings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, SaslAuthenticationFailed
from millbeck.kernel.whole_file import read_whole_file
from millbeck.security.sasl.authentication import Authentication
from millbeck.security.sasl.oauthbearer import OauthClient
from millbeck.security.sasl.plain import PlainClient
from millbeck.server.config import checks
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramCredentialUpsertion,
)
from millbeck.wire.messages.configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, Provider, token
from tests.unit.server.harness.broker_harness import BrokerHarness

PLANTED = {
    "a password in a JAAS configuration": "pl4nted-jaas-password",
    "the node's own password": "pl4nted-node-password",
    "the key of delegation tokens": "pl4nted-token-key",
    "a value of a config provider": "pl4nted-provided-value",
    "a keystore's password": "pl4nted-store-password",
    "a client secret": "pl4nted-client-secret",
    "a passphrase": "pl4nted-passphrase",
    "a password that a client guesses": "pl4nted-guess",
    "a password in a dynamic config": "pl4nted-dynamic",
    "a password in a config that is refused": "pl4nted-refused",
    "a salted password": "pl4nted-salted-passwo",
}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
DYNAMIC_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
URL = "http://idp:8080/jwks"
AUDIT = "/audit.log"
FILE = {
    "config.providers": "file",
    "config.providers.file.class": FILE_PROVIDER,
    "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094",
    "advertised.listeners": "PLAINTEXT://n1:9092,SASL_PLAINTEXT://n1:9094",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
    DYNAMIC_JAAS: f'{PLAIN} username="node" password="pl4nted-node-password" user_alice="pl4nted-jaas-password" '
    'user_bob="${file:/secrets:password}";',
    "delegation.token.secret.key": PLANTED["the key of delegation tokens"],
    "broker.rack": "${file:/secrets:password}",
    "millbeck.audit.file": AUDIT,
    "ssl.keystore.password": PLANTED["a keystore's password"],
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.issuer": ISSUER,
    "sasl.oauthbearer.expected.audience": AUDIENCE,
    "sasl.oauthbearer.client.credentials.client.secret": PLANTED["a client secret"],
    "sasl.oauthbearer.assertion.private.key.passphrase": PLANTED["a passphrase"],
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": URL,
}


def settings() -> dict[str, str]:
    provided = f"password={PLANTED['a value of a config provider']}\n"
    return resolved_settings(FILE, read_text=lambda path: provided, environment={})


class Spread:
    """What has left the node: its answers, and everything that was logged."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def take(self, answer: Any) -> Any:
        self.texts.append(repr(answer))
        return answer

    def has(self, secret: str) -> bool:
        forms = (secret, b64encode(secret.encode()).decode(), hexlify(secret.encode()).decode())
        return any(form in text for text in self.texts for form in forms)


def alter(name: str, value: str) -> IncrementalAlterConfigsRequest:
    config = IncrementalAlterableConfig(name, 0, value)
    return IncrementalAlterConfigsRequest([IncrementalAlterConfigsResource(4, "0", [config])])


async def use(harness: BrokerHarness, environment: Environment, spread: Spread) -> list[str]:
    """Everything that carries a secret, done right and wrong; returns further secrets that came about."""
    client = await harness.connect(environment)
    ask = client.ask
    secret = PLANTED["a password in a dynamic config"]
    spread.take(await ask(alter(DYNAMIC_JAAS, f'{PLAIN} user_alice="{secret}";'), 1))
    refused = PLANTED["a password in a config that is refused"]
    for value in (f'{PLAIN} user_alice="{refused}"', f"${{file:/secrets:{refused}}}"):
        spread.take(await ask(alter(DYNAMIC_JAAS, value), 1))
    whole = AlterConfigsRequest([AlterConfigsResource(4, "0", [AlterableConfig(DYNAMIC_JAAS, f"com.x {refused};")])])
    spread.take(await ask(whole, 2))
    for resource in ((4, "0"), (4, ""), (2, "t")):
        asked = DescribeConfigsRequest([DescribeConfigsResource(*resource, None)], True, True)
        spread.take(await ask(asked, 4))
    salted = PLANTED["a salted password"].encode()
    for iterations in (4096, 1):
        upsertion = ScramCredentialUpsertion("carol", 1, iterations, b"salt", salted)
        spread.take(await ask(AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0))
    spread.take(await ask(DescribeUserScramCredentialsRequest(None), 0))
    return await log_in(environment, spread)


async def log_in(environment: Environment, spread: Spread) -> list[str]:
    common = {"bootstrap.servers": "n1:9094", "security.protocol": "SASL_PLAINTEXT"}
    guess = PLANTED["a password that a client guesses"]
    tokens = []
    for mechanism, user, password in (
        ("PLAIN", "alice", PLANTED["a password in a dynamic config"]),
        ("PLAIN", "alice", guess),
        ("SCRAM-SHA-256", "carol", guess),
    ):
        given = {**common, "sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        await connect(environment, AdminConfig.parse(given), spread)
    for subject, lifetime_s in (("alice", 300), ("alice", -300), ("", 300)):
        tokens.append(token(subject, environment.clock.wall_ms(), lifetime_s=lifetime_s))
        for message in (OauthClient(tokens[-1], {}).begin(), b"n,,\x01auth=Bearer " + tokens[-1].encode()):
            await raw_login(environment, "OAUTHBEARER", message, spread)
    await raw_login(environment, "PLAIN", PlainClient("alice", guess).begin() + b"\0more", spread)
    given = {**common, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "http://idp:8080/token"}
    prefix = "sasl.oauthbearer.client.credentials.client."
    given |= {f"{prefix}id": "alice", f"{prefix}secret": PLANTED["a client secret"]}
    await connect(environment, AdminConfig.parse(given), spread)
    return [part for text in tokens for part in (text, text.rpartition(".")[2])]


async def connect(environment: Environment, config: AdminConfig, spread: Spread) -> None:
    spread.take(config)
    try:
        sasl = client_credentials(config, environment)
        spread.take(sasl)
        connection_settings = ConnectionSettings(sasl=sasl)
        spread.take(connection_settings)
        connection = await Connection.open(environment.network, Address("n1", 9094), connection_settings)
        connection.close()
    except SaslAuthenticationFailed as error:
        spread.take(error)


async def raw_login(environment: Environment, mechanism: str, message: bytes, spread: Spread) -> None:
    from tests.unit.server.harness.broker_harness import Client

    _, client = await environment.network.connect(Client, host="n1", port=9094)
    assert isinstance(client, Client)
    spread.take(await client.ask(SaslHandshakeRequest(mechanism), 1))
    try:
        spread.take(await client.ask(SaslAuthenticateRequest(message), 2))
    except (ConnectionError, ApiError):
        pass
    client.close()


@pytest.mark.parametrize("fails", [False, True], ids=["well", "while a handler fails"])
def test_no_planted_secret_gets_out(
    fails: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness, spread = BrokerHarness(), Spread()
    harness.settings |= settings()
    caplog.set_level(1)
    if fails:

        def broken(*arguments: Any, **named: Any) -> Any:
            raise RuntimeError("a mistake in the code, while a secret is at hand")

        monkeypatch.setattr(Authentication, "_token", broken)
        monkeypatch.setattr(checks, "parse_jaas", broken)
        monkeypatch.setattr(scram, "scram_keys", broken)
    made: list[str] = []

    async def provide(environment: Environment) -> None:
        await Provider(environment).serve()
        await asyncio.Event().wait()

    async def whole(environment: Environment) -> None:
        harness.world.node("idp").start(provide)
        await harness.start()
        assert harness.node is not None
        spread.take(harness.node.config.tokens)
        try:
            made.extend(await asyncio.wait_for(use(harness, environment, spread), 200))
        except (ApiError, ConnectionError, TimeoutError):
            assert fails
        spread.texts.append(harness.node.render_metrics())
        await asyncio.sleep(5)
        if not fails:
            audited = read_whole_file(harness.node.environment.files, AUDIT, bytes_max=1 << 20).decode()
            assert "carol" in audited
            spread.texts.append(audited)

    with harness.world:
        harness.world.run(whole, limit_s=1000)
    formatter = logging.Formatter("%(message)s %(exc_text)s %(args)s")
    spread.texts += [formatter.format(record) for record in caplog.records]
    spread.texts.append(caplog.text)
    secrets = {**PLANTED, **{f"token {index}": text for index, text in enumerate(made)}}
    assert len(spread.texts) > (5 if fails else 30)
    assert [name for name, secret in secrets.items() if spread.has(secret)] == []


def test_the_search_would_find_one() -> None:
    spread = Spread()
    spread.take({"password": b64encode(b"pl4nted-guess").decode()})
    assert spread.has("pl4nted-guess")
