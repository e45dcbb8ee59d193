"""Listeners with SASL in a whole node: the protocol before the first request, sessions, and how failures end."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import IllegalSaslState, SaslAuthenticationFailed, UnsupportedSaslMechanism
from millbeck.security.principal import Principal
from millbeck.security.sasl.plain import PlainClient
from millbeck.security.sasl.scram_messages import parse_server_first
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    ScramCredentialUpsertion,
)
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.metadata import ApiVersionsRequest, MetadataRequest
from millbeck.wire.messages.produce import ProduceRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, fetch, produce, results
from tests.unit.server.harness.scraping import samples

PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="admin-secret" user_admin="admin-secret" '
    'user_alice="alice-secret" user_bob="bob-secret";'
)
SETTINGS = {
    "listeners": "PLAINTEXT://:9094,SASL_PLAINTEXT://:9092",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
}
ALICE = PlainClient("alice", "alice-secret").begin()
BOB = PlainClient("bob", "bob-secret").begin()
WRONG = PlainClient("alice", "wrong").begin()


class RawClient(asyncio.Protocol):
    """Bytes in, frames out."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[bytes] = asyncio.Queue()
        self.lost = asyncio.Event()
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            self.frames.put_nowait(self._received[4 : 4 + size])
            self._received = self._received[4 + size :]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def send(self, frame: bytes) -> None:
        self.transport.write(struct.pack(">i", len(frame)) + frame)


def in_node(scenario: Any, **settings: str) -> Any:
    harness = BrokerHarness()
    harness.settings |= SETTINGS | settings
    return harness.run(scenario)


async def handshake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> Any:
    return await client.ask(SaslHandshakeRequest(mechanism), version)


async def authenticate(client: Client, token: bytes, version: int = 2) -> Any:
    return await client.ask(SaslAuthenticateRequest(token), version)


async def log_in(client: Client, token: bytes = ALICE, version: int = 2) -> Any:
    assert (await handshake(client)).error_code == 0
    return await authenticate(client, token, version)


async def is_closed(client: Client) -> bool:
    for _ in range(100):
        if client.is_lost:
            return True
        await asyncio.sleep(0.01)
    return False


def principals(harness: BrokerHarness) -> list[Principal]:
    assert harness.node is not None
    return [
        connection.principal
        for listener in harness.node.listeners
        if listener.address.has_sasl
        for connection in listener.connections.values()
    ]


def test_plain() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        versions = await client.ask(ApiVersionsRequest("test", "1"), 3)
        assert {17, 36} <= {each.api_key for each in versions.api_keys}
        shaken = await handshake(client)
        assert (shaken.error_code, shaken.mechanisms) == (0, ["PLAIN", "SCRAM-SHA-256"])
        done = await authenticate(client, ALICE)
        assert (done.error_code, done.auth_bytes, done.session_lifetime_ms) == (0, b"", 0)
        assert principals(harness) == [Principal("User", "alice")]
        assert (await client.ask(MetadataRequest(None), 12)).brokers

    in_node(scenario)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_of_sasl_authenticate(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        done = await log_in(client, version=version)
        assert done.error_code == 0
        assert done.session_lifetime_ms == (60_000 if version else 0)

    in_node(scenario, **{"connections.max.reauth.ms": "60000"})


def test_everything_in_one_packet() -> None:
    """The bytes behind the last token belong to the authenticated connection."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        replies = [
            client.send(ApiVersionsRequest("test", "1"), 3),
            client.send(SaslHandshakeRequest("PLAIN"), 1),
            client.send(SaslAuthenticateRequest(ALICE), 2),
            client.send(MetadataRequest(None), 12),
        ]
        *_, metadata = await asyncio.gather(*replies)
        assert metadata.brokers

    in_node(scenario)


def test_bare_tokens_after_handshake_0() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, raw = await environment.network.connect(RawClient, host="n1", port=9092)
        assert isinstance(raw, RawClient)
        raw.send(struct.pack(">hhih5p", 17, 0, 7, 0, b"")[:10] + struct.pack(">h", 5) + b"PLAIN")
        raw.send(ALICE)
        assert (await raw.frames.get())[:6] == struct.pack(">ih", 7, 0)
        assert await raw.frames.get() == b""
        raw.send(struct.pack(">hhih", 3, 1, 8, 0) + struct.pack(">i", 0))
        assert (await raw.frames.get())[:4] == struct.pack(">i", 8)
        _, other = await environment.network.connect(RawClient, host="n1", port=9092)
        assert isinstance(other, RawClient)
        other.send(struct.pack(">hhih", 17, 0, 7, 0) + struct.pack(">h", 5) + b"PLAIN")
        other.send(b"\0a\0b")
        await other.lost.wait()
        assert other.frames.qsize() == 1, "a wrong bare token is not answered"

    in_node(scenario)


def test_wrong_password_is_answered_late_and_closed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await handshake(client)).error_code == 0
        started = environment.clock.monotonic()
        failed = await authenticate(client, WRONG)
        assert failed.error_code == SaslAuthenticationFailed.code
        assert failed.error_message == "Authentication failed: Invalid username or password"
        assert environment.clock.monotonic() - started >= 0.25
        assert await is_closed(client)

    in_node(scenario, **{"connection.failed.authentication.delay.ms": "250"})


def test_the_reason_is_not_told() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        failed = await log_in(client, b"nonsense")
        assert failed.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"
        )

    in_node(scenario)


def test_requests_behind_a_failed_login_are_not_answered() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        client.send(SaslHandshakeRequest("PLAIN"), 1)
        client.send(SaslAuthenticateRequest(WRONG), 2)
        behind = client.send(MetadataRequest(None), 12)
        with pytest.raises(ConnectionError):
            await behind

    in_node(scenario)


def test_unknown_mechanism() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        answer = await handshake(client, "GSSAPI")
        assert answer.error_code == UnsupportedSaslMechanism.code
        assert answer.mechanisms == ["PLAIN", "SCRAM-SHA-256"]
        assert await is_closed(client)

    in_node(scenario)


@pytest.mark.parametrize(
    ("before", "request_", "version"),
    [
        ([], MetadataRequest(None), 12),
        ([], ProduceRequest(), 9),
        ([], SaslAuthenticateRequest(ALICE), 2),
        ([(ApiVersionsRequest("test", "1"), 3)], ApiVersionsRequest("test", "1"), 3),
        ([(ApiVersionsRequest("test", "1"), 3)], SaslAuthenticateRequest(ALICE), 2),
    ],
)
def test_out_of_order(before: list[tuple[Any, int]], request_: Any, version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        for request, its_version in before:
            await client.ask(request, its_version)
        with pytest.raises(ConnectionError):
            await client.ask(request_, version)

    in_node(scenario)


def test_an_api_versions_request_that_fails_may_be_repeated() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await client.ask(ApiVersionsRequest("bad name!", "1"), 3)).error_code == 42
        assert (await client.ask(ApiVersionsRequest("test", "1"), 3)).error_code == 0
        assert (await log_in(client)).error_code == 0

    in_node(scenario)


def test_another_request_among_the_tokens() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await handshake(client)
        answer = await client.ask(ApiVersionsRequest("test", "1"), 3)
        assert answer.error_code == IllegalSaslState.code
        assert await is_closed(client)

    in_node(scenario)


def test_a_long_frame_before_authentication() -> None:
    """CVE-2022-34917: closed when the length is known, with nothing allocated for it."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        client.write(struct.pack(">i", 524_289))
        assert await is_closed(client)
        other = await harness.connect(environment)
        other.write(struct.pack(">i", 524_288) + b"\0" * 100)
        await asyncio.sleep(1)
        assert not other.is_lost
        assert harness.node is not None
        (held,) = [each._held_bytes for each in harness.node.listeners[1].connections.values()]
        assert held <= 4096
        assert (await log_in(await harness.connect(environment))).error_code == 0

    in_node(scenario)


def test_long_frames_after_authentication() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        assert (await client.ask(MetadataRequest(None), 12, client_id="x" * 30_000)).brokers

    in_node(scenario, **{"sasl.server.max.receive.size": "20000"})


def test_who_does_not_authenticate_is_closed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        silent = await harness.connect(environment)
        for _ in range(3):
            await asyncio.sleep(14)
            if not silent.is_lost:
                silent.write(b"\0")
        assert silent.is_lost
        assert not client.is_lost

    in_node(scenario)


@pytest.mark.parametrize("port", [9094, 9092])
def test_sasl_requests_where_they_have_no_place(port: int) -> None:
    """On a PLAINTEXT listener, and after authentication when sessions do not expire."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        if port != 9092:
            _, plain = await environment.network.connect(Client, host="n1", port=port)
            assert isinstance(plain, Client)
            client = plain
        else:
            await log_in(client)
        assert (await handshake(client)).error_code == IllegalSaslState.code
        answer = await authenticate(client, ALICE)
        assert answer.error_code == IllegalSaslState.code
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
        assert (await client.ask(MetadataRequest(None), 12)).brokers

    in_node(scenario)


# sessions

REAUTHENTICATE = {"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "5000"}


def test_a_session_is_renewed() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert (await log_in(client)).session_lifetime_ms == 5000
        for _ in range(3):
            await asyncio.sleep(4)
            assert (await client.ask(MetadataRequest(None), 12)).brokers
            assert (await log_in(client)).session_lifetime_ms == 5000
        await asyncio.sleep(6)
        assert (await log_in(client)).error_code == 0, "an expired session can still be renewed"
        assert (await client.ask(MetadataRequest(None), 12)).brokers

    in_node(scenario, **REAUTHENTICATE)


def test_an_expired_session_is_closed_at_the_next_request() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await asyncio.sleep(4.9)
        assert (await client.ask(MetadataRequest(None), 12)).brokers
        await asyncio.sleep(0.2)
        assert not client.is_lost
        with pytest.raises(ConnectionError):
            await client.ask(MetadataRequest(None), 12)

    in_node(scenario, **REAUTHENTICATE)


def test_sessions_of_bare_tokens_expire_too() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, raw = await environment.network.connect(RawClient, host="n1", port=9092)
        assert isinstance(raw, RawClient)
        raw.send(struct.pack(">hhih", 17, 0, 7, 0) + struct.pack(">h", 5) + b"PLAIN")
        raw.send(ALICE)
        await raw.frames.get()
        await raw.frames.get()
        await asyncio.sleep(6)
        raw.send(struct.pack(">hhih", 3, 1, 8, 0) + struct.pack(">i", 0))
        await raw.lost.wait()
        assert raw.frames.empty()

    in_node(scenario, **REAUTHENTICATE)


def test_a_session_is_renewed_at_most_once_in_a_second() -> None:
    """As in Kafka the first renewal may follow at once."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        assert (await log_in(client)).error_code == 0
        assert (await handshake(client)).error_code == IllegalSaslState.code
        await asyncio.sleep(1.1)
        assert (await log_in(client)).error_code == 0

    in_node(scenario, **REAUTHENTICATE)


def test_a_request_behind_a_waiting_one_does_not_outlive_the_session() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await create(client)
        waiting = client.send(fetch((0, 0), max_wait_ms=6000), 12)
        behind = client.send(MetadataRequest(None), 12)
        assert results(await waiting)[0].error_code == 0
        with pytest.raises(ConnectionError):
            await behind

    in_node(scenario, **REAUTHENTICATE)


def test_the_principal_cannot_change() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await asyncio.sleep(2)
        failed = await log_in(client, BOB)
        assert failed.error_code == SaslAuthenticationFailed.code
        assert failed.error_message == ("Cannot change principals during re-authentication from User.alice: User.bob")
        assert await is_closed(client)

    in_node(scenario, **REAUTHENTICATE)


def test_the_mechanism_cannot_change() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await asyncio.sleep(2)
        assert (await handshake(client, "SCRAM-SHA-256")).error_code == 0
        with pytest.raises(ConnectionError):
            await authenticate(client, b"n,,n=alice,r=C")

    in_node(scenario, **REAUTHENTICATE)


def test_a_user_added_while_the_node_runs() -> None:
    """By a dynamic config; one that loads another login module is refused."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, admin = await environment.network.connect(Client, host="n1", port=9094)
        assert isinstance(admin, Client)

        async def alter(value: str) -> Any:
            config = IncrementalAlterableConfig("listener.name.sasl_plaintext.plain.sasl.jaas.config", 0, value)
            resource = IncrementalAlterConfigsResource(4, "1", [config])
            (result,) = (await admin.ask(IncrementalAlterConfigsRequest([resource]), 1)).responses
            return result

        assert (await log_in(client, PlainClient("eve", "eves").begin())).error_code == 58
        refused = await alter("com.sun.security.auth.module.JndiLoginModule required;")
        assert refused.error_code == 42
        assert "JndiLoginModule is not allowed as login module" in refused.error_message
        assert (await alter(PLAIN_USERS[:-1] + ' user_eve="eves";')).error_code == 0
        assert (await log_in(await harness.connect(environment), PlainClient("eve", "eves").begin())).error_code == 0

    in_node(scenario)


def test_a_failed_renewal_has_its_own_text() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await asyncio.sleep(2)
        failed = await log_in(client, b"nonsense")
        assert failed.error_message == (
            "Authentication failed during re-authentication due to invalid credentials with SASL mechanism PLAIN"
        )

    in_node(scenario, **REAUTHENTICATE)


def test_requests_during_a_renewal_are_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await asyncio.sleep(2)
        await handshake(client)
        refused = client.send(MetadataRequest(None), 12)
        with pytest.raises(ConnectionError):
            await refused
        assert await is_closed(client)

    in_node(scenario, **REAUTHENTICATE)


def test_logins_are_counted() -> None:
    prefix = "kafka_server_socket_server_metrics_"

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        def counted(name: str) -> float:
            found: dict[str, float] = samples(harness.node)
            return found[f'{prefix}{name}{{listener="SASL_PLAINTEXT"}}']

        assert (await log_in(client)).error_code == 0
        other = await harness.connect(environment)
        assert (await log_in(other, WRONG)).error_code == SaslAuthenticationFailed.code
        assert counted("successful_authentication_total") == 1
        assert counted("failed_authentication_total") == 1
        await asyncio.sleep(2)
        assert (await log_in(client)).error_code == 0
        assert counted("successful_reauthentication_total") == 1
        assert counted("failed_reauthentication_total") == 0
        assert counted("expired_connections_killed_count") == 0

    in_node(scenario, **{"connections.max.reauth.ms": "60000"})


def test_clients_that_have_not_logged_in_take_no_request_memory_from_those_that_have() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await log_in(client)
        await create(client, max_message_bytes="2000000")
        for _ in range(10):
            _, other = await environment.network.connect(RawClient, host="n1", port=9092)
            assert isinstance(other, RawClient)
            other.transport.write(struct.pack(">i", 500_000) + bytes(400_000))
        await asyncio.sleep(1)
        async with asyncio.timeout(5):
            assert await produce(client, bytes(900_000)) == 0

    in_node(scenario, **{"queued.max.request.bytes": "2000000", "socket.request.max.bytes": "2000000"})


@pytest.mark.parametrize(("secret", "stays"), [("token-key-secret", True), (None, False)])
def test_the_salt_of_an_unknown_user_does_not_tell_that_others_changed(secret: str | None, stays: bool) -> None:
    async def salt(harness: BrokerHarness, environment: Environment) -> bytes:
        client = await harness.connect(environment)
        await handshake(client, "SCRAM-SHA-256")
        answer = await authenticate(client, b"n,,n=nobody,r=abc")
        return parse_server_first(answer.auth_bytes).salt

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, admin = await environment.network.connect(Client, host="n1", port=9094)
        assert isinstance(admin, Client)
        found = []
        for password in (b"1", b"2"):
            upsertion = ScramCredentialUpsertion("al", 1, 4096, b"a salt of the user", password * 32)
            answer = await admin.ask(AlterUserScramCredentialsRequest([], [upsertion]), 0)
            assert answer.results[0].error_code == 0
            await asyncio.sleep(0.1)
            found.append(await salt(harness, environment))
        assert (found[0] == found[1]) is stays

    in_node(scenario, **({} if secret is None else {"delegation.token.secret.key": secret}))
