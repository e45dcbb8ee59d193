"""OAUTHBEARER with a certified OpenID provider: Kafka's Java client, librdkafka and our client log in by its tokens.

The provider runs under Node on loopback. Tokens live for seconds, so that clients that produce and consume for longer
go through re-authentications with new tokens.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer as RdConsumer
from confluent_kafka import Producer as RdProducer
from joserfc.jwk import RSAKey

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import NewTopic
from tests.e2e.server_process import ServerProcess, free_ports
from tests.interop.cluster import TOOLS, run_tool
from tools import peers

TOOLS.setdefault("kafka-producer-perf-test", "org.apache.kafka.tools.ProducerPerformance")
TOOLS.setdefault("kafka-console-consumer", "org.apache.kafka.tools.consumer.ConsoleConsumer")
LIFETIME_S = 8
SECONDS = 3 * LIFETIME_S
KEY = RSAKey.generate_key(2048, {"kid": "signer", "use": "sig", "alg": "RS256"})
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"


class IdentityProvider:
    def __init__(self) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        script = peers.install("oidc-provider")
        keys = json.dumps({"keys": [KEY.as_dict(private=False)]})
        self._process = subprocess.Popen(
            ["node", str(script), str(port), keys, str(LIFETIME_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == "ready":
                return
        raise AssertionError("the identity provider ended")

    def change_key(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        self._wait_until_ready()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)


class OauthNode:
    def __init__(self, directory: Path, provider: IdentityProvider) -> None:
        (port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        self.directory = directory
        self.process = ServerProcess(
            directory / "node",
            {
                "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.server.callback.handler.class": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
                "sasl.oauthbearer.jwks.endpoint.url": f"{provider.url}/jwks",
                "sasl.oauthbearer.expected.issuer": provider.url,
                "sasl.oauthbearer.expected.audience": "kafka",
                "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "500",
                "sasl.oauthbearer.clock.skew.seconds": "0",
                "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"{provider.url}/jwks",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:alice;User:signer",
                "offsets.topic.replication.factor": "1",
                "group.initial.rebalance.delay.ms": "0",
            },
        )
        self.process.format("AAAAAAAAAAAAAAAAAAAAKg", "-s")
        self.process.start()

    def metric(self, name: str) -> float:
        (page,) = [line.split()[-1] for line in self.process.output.read_text().splitlines() if "/metrics" in line]
        with urllib.request.urlopen(page, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    running = IdentityProvider()
    yield running
    running.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, provider: IdentityProvider) -> Iterator[OauthNode]:
    running = OauthNode(tmp_path_factory.mktemp("oauth"), provider)
    yield running
    running.process.stop()


@pytest.fixture
def java(node: OauthNode, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch) -> str:
    """A properties file for Java's client."""
    allowed = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
    monkeypatch.setenv("KAFKA_OPTS", f"-D{allowed}={provider.url}/token")
    path = node.directory / "java.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f'sasl.jaas.config={MODULE} extension_trace="1";\n'
        f"sasl.login.callback.handler.class={PACKAGE}.OAuthBearerLoginCallbackHandler\n"
        f"sasl.oauthbearer.token.endpoint.url={provider.url}/token\n"
        "sasl.oauthbearer.client.credentials.client.id=alice\n"
        "sasl.oauthbearer.client.credentials.client.secret=alice-secret\n"
        "sasl.oauthbearer.scope=produce\n"
    )
    return str(path)


def settings_of_librdkafka(node: OauthNode, provider: IdentityProvider, **others: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        "sasl.oauthbearer.client.id": "alice",
        "sasl.oauthbearer.client.secret": "alice-secret",
        "sasl.oauthbearer.scope": "produce",
        **others,
    }


def settings_of_ours(node: OauthNode, provider: IdentityProvider, **others: str) -> dict[str, str]:
    return {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
        "sasl.oauthbearer.client.credentials.client.id": "alice",
        "sasl.oauthbearer.client.credentials.client.secret": "alice-secret",
        **others,
    }


REAUTHENTICATIONS = "kafka_server_socket_server_metrics_successful_reauthentication_total"
EXPIRED = "kafka_server_socket_server_metrics_expired_connections_killed_count"


def tool(name: str, *arguments: str) -> str:
    done = run_tool(name, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_java_produces_through_reauthentications_and_consumes(node: OauthNode, java: str) -> None:
    server = ("--bootstrap-server", node.bootstrap)
    tool("kafka-topics", *server, "--create", "--topic", "java", "--command-config", java)
    before, expired = node.metric(REAUTHENTICATIONS), node.metric(EXPIRED)
    count = 20 * SECONDS
    shown = tool(
        "kafka-producer-perf-test",
        *("--topic", "java", "--num-records", str(count), "--throughput", "20", "--record-size", "100"),
        *(*server, "--command-config", java),
    )
    assert f"{count} records sent" in shown
    assert node.metric(REAUTHENTICATIONS) - before >= 2
    assert node.metric(EXPIRED) == expired
    consumed = run_tool(
        "kafka-console-consumer",
        *(*server, "--topic", "java", "--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000"),
        *("--command-config", java),
    )
    assert consumed.stdout.count("\n") == count, consumed.stderr


def test_javas_client_is_told_that_its_token_is_refused(node: OauthNode, java: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    settings = tmp_path / "wrong.properties"
    file.write_text(foreign_token(node))
    settings.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=OAUTHBEARER\n"
        f"sasl.jaas.config={MODULE};\nsasl.oauthbearer.token.endpoint.url=file://{file}\n"
        f"sasl.login.callback.handler.class={PACKAGE}.OAuthBearerLoginCallbackHandler\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://{file}")
        done = run_tool(
            "kafka-topics", "--bootstrap-server", node.bootstrap, "--list", "--command-config", str(settings)
        )
    assert done.returncode != 0
    assert '{"status":"invalid_token"}' in done.stdout + done.stderr


def foreign_token(node: OauthNode) -> str:
    """A token that somebody else has signed, right in every claim."""
    from tests.fixtures.identity_provider import token

    issuer = node.process.settings["sasl.oauthbearer.expected.issuer"]
    return token("alice", int(time.time() * 1000), iss=issuer)


def test_librdkafka_produces_through_reauthentications_and_consumes(
    node: OauthNode, provider: IdentityProvider
) -> None:
    before, expired = node.metric(REAUTHENTICATIONS), node.metric(EXPIRED)
    failed: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        if error is not None:
            failed.append(error)

    producer = RdProducer(settings_of_librdkafka(node, provider))
    count = 10 * SECONDS
    for number in range(count):
        producer.produce("rd", b"%d" % number, on_delivery=delivered)
        producer.poll(0)
        time.sleep(0.1)
    assert producer.flush(30) == 0
    assert not failed
    assert node.metric(REAUTHENTICATIONS) - before >= 2
    assert node.metric(EXPIRED) == expired
    consumer = RdConsumer(settings_of_librdkafka(node, provider, **{"group.id": "rd", "auto.offset.reset": "earliest"}))
    consumer.subscribe(["rd"])
    values: list[int] = []
    deadline_s = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            values.append(int(message.value() or b"-1"))
    consumer.close()
    assert sorted(values) == list(range(count))


WAYS = ["secret", "private_key_jwt", "file"]


@pytest.mark.parametrize("way", WAYS)
def test_our_client_produces_through_reauthentications_and_consumes(
    node: OauthNode, provider: IdentityProvider, way: str, tmp_path: Path
) -> None:
    settings = settings_of_ours(node, provider)
    writer = _TokenFile(provider, tmp_path / "token")
    if way == "private_key_jwt":
        key = tmp_path / "key.pem"
        key.write_bytes(KEY.as_pem(private=True, password="the passphrase"))
        prefix = "sasl.oauthbearer."
        settings |= {
            f"{prefix}client.credentials.client.id": "signer",
            f"{prefix}assertion.private.key.file": str(key),
            f"{prefix}assertion.private.key.passphrase": "the passphrase",
            f"{prefix}assertion.claim.iss": "signer",
            f"{prefix}assertion.claim.sub": "signer",
            f"{prefix}assertion.claim.aud": provider.url,
            f"{prefix}assertion.claim.jti.include": "true",
        }
    elif way == "file":
        settings["sasl.oauthbearer.token.endpoint.url"] = f"file://{tmp_path}/token"
        writer.start()

    async def use() -> None:
        topic = f"ours-{way}"
        async with Admin(settings) as admin:
            (await admin.create_topics([NewTopic(name=topic)], timeout_s=30)).all()
        async with Producer(settings) as producer:
            for number in range(10 * SECONDS):
                await producer.send(topic, b"%d" % number)
                await asyncio.sleep(0.1)
        group = {"group.id": topic, "auto.offset.reset": "earliest"}
        async with Consumer(settings | group) as consumer:
            consumer.subscribe([topic])
            values: list[int] = []
            async with asyncio.timeout(60):
                while len(values) < 10 * SECONDS:
                    for records in (await consumer.poll(timeout_s=1)).values():
                        values += [int(record.value or b"-1") for record in records]
        assert sorted(values) == list(range(10 * SECONDS))

    before = node.metric(REAUTHENTICATIONS)
    try:
        asyncio.run(use())
    finally:
        writer.stop()
    assert node.metric(REAUTHENTICATIONS) - before >= 2


class _TokenFile:
    """Keeps a token in a file, as a platform does that mounts them."""

    def __init__(self, provider: IdentityProvider, path: Path) -> None:
        self._provider = provider
        self._path = path
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._write()
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stopped.wait(LIFETIME_S / 4):
            self._write()

    def _write(self) -> None:
        manager = urllib.request.HTTPPasswordMgrWithPriorAuth()
        manager.add_password(None, self._provider.url, "alice", "alice-secret", is_authenticated=True)
        opener = urllib.request.build_opener(urllib.request.HTTPBasicAuthHandler(manager))
        with opener.open(f"{self._provider.url}/token", b"grant_type=client_credentials", timeout=10) as answer:
            token = json.load(answer)["access_token"]
        beside = self._path.with_suffix(".new")
        beside.write_text(token)
        beside.replace(self._path)


def test_a_new_key_of_the_provider_is_noticed(node: OauthNode, provider: IdentityProvider) -> None:
    async def ask() -> None:
        async with Admin(settings_of_ours(node, provider)) as admin:
            assert await admin.list_topics(timeout_s=20) is not None

    asyncio.run(ask())
    for _ in range(3):
        provider.change_key()
        time.sleep(1)
        asyncio.run(ask())
