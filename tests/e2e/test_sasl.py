"""Clients of others and commands of our own that log in: each mechanism, refusals, and sessions that end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import kafka
import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from millbeck.cli.main import cli
from tests.e2e.server_process import ServerProcess, free_ports

PLAIN_USERS = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret" user_bob="bob-secret";'
)
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SESSION_SECONDS = 2


class Node:
    def __init__(self, directory: Path) -> None:
        self.port, self.short_port, self.scram_port = free_ports(3)
        listeners = {"LONG": self.port, "SHORT": self.short_port, "VERIFYING": self.scram_port}
        self.process = ServerProcess(
            directory,
            {
                "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
                "listener.security.protocol.map": ",".join(f"{name}:SASL_PLAINTEXT" for name in listeners),
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "listener.name.long.plain.sasl.jaas.config": PLAIN_USERS,
                "listener.name.short.plain.sasl.jaas.config": PLAIN_USERS,
                "listener.name.short.connections.max.reauth.ms": str(SESSION_SECONDS * 1000),
                "listener.name.verifying.sasl.enabled.mechanisms": "PLAIN",
                "listener.name.verifying.millbeck.plain.verify": "scram",
                "delegation.token.secret.key": "token-key-secret",
                "group.initial.rebalance.delay.ms": "0",
                "offsets.topic.replication.factor": "1",
                "num.partitions": "1",
            },
        )
        users = [f"{each}=[name=alice,password=alice-secret]" for each in MECHANISMS[1:]]
        self.process.format("AAAAAAAAAAAAAAAAAAAAKg", "-s", *(part for user in users for part in ("-S", user)))
        self.process.start()

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    running = Node(tmp_path_factory.mktemp("sasl"))
    yield running
    running.process.stop()
    output = running.process.said()
    assert "-secret" not in output, "a password is in the log"
    assert "unexpected" not in output, output


def librdkafka(
    node: Node, mechanism: str = "PLAIN", user: str = "alice", password: str | None = None, port: int = 0
) -> dict[str, Any]:
    return {
        "bootstrap.servers": f"127.0.0.1:{port or node.port}",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password or f"{user}-secret",
    }


def create(node: Node, topic: str) -> None:
    admin = AdminClient(librdkafka(node))
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)


# clients of others


def confluent_round_trip(node: Node, mechanism: str, topic: str) -> bytes:
    producer = Producer(librdkafka(node, mechanism))
    producer.produce(topic, b"hello")
    assert producer.flush(20) == 0
    consumer = Consumer(librdkafka(node, mechanism) | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    deadline_s = time.monotonic() + 20
    while time.monotonic() < deadline_s:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            consumer.close()
            return message.value() or b""
    raise AssertionError("nothing was consumed")


def kafka_python_round_trip(node: Node, mechanism: str, topic: str) -> bytes:
    settings = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"hello").get(timeout=20)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=topic, auto_offset_reset="earliest", consumer_timeout_ms=20_000, **settings
    )
    value: bytes = next(iter(consumer)).value
    consumer.close()
    return value


def aiokafka_round_trip(node: Node, mechanism: str, topic: str) -> bytes:
    settings = {
        "bootstrap_servers": node.bootstrap,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": mechanism,
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }

    async def main() -> bytes:
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with aiokafka.AIOKafkaConsumer(
            topic, group_id=topic, auto_offset_reset="earliest", **settings
        ) as consumer:
            value: bytes = (await asyncio.wait_for(consumer.getone(), 20)).value
            return value

    return asyncio.run(main())


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("round_trip", [confluent_round_trip, kafka_python_round_trip, aiokafka_round_trip])
def test_records_make_the_round_trip(node: Node, round_trip: Callable[..., bytes], mechanism: str) -> None:
    topic = f"{round_trip.__name__}-{mechanism}"
    create(node, topic)
    assert round_trip(node, mechanism, topic) == b"hello"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(("user", "password"), [("alice", "wrong"), ("nobody", "alice-secret")])
def test_a_refusal_is_an_authentication_error(node: Node, mechanism: str, user: str, password: str) -> None:
    errors: list[KafkaError] = []
    settings = librdkafka(node, mechanism, user, password) | {"error_cb": errors.append}
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.7)
    admin.poll(1)
    assert KafkaError._AUTHENTICATION in [error.code() for error in errors]


def test_a_mechanism_that_is_not_enabled(node: Node) -> None:
    errors: list[KafkaError] = []
    admin = AdminClient(librdkafka(node, "SCRAM-SHA-256", port=node.scram_port) | {"error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=0.7)
    admin.poll(1)
    assert any("SCRAM-SHA-256" in error.str() and "PLAIN" in error.str() for error in errors)


def test_plain_against_scram_credentials(node: Node) -> None:
    assert AdminClient(librdkafka(node, port=node.scram_port)).list_topics(timeout=10).brokers
    with pytest.raises(KafkaException):
        AdminClient(librdkafka(node, user="bob", port=node.scram_port)).list_topics(timeout=0.7)


# sessions


def test_a_client_that_authenticates_again_keeps_its_connections_under_load(node: Node) -> None:
    settings = librdkafka(node, "SCRAM-SHA-512", port=node.short_port)
    create(node, "renewed")
    trouble: list[str] = []
    delivered = 0

    def done(error: KafkaError | None, _: object) -> None:
        nonlocal delivered
        assert error is None
        delivered += 1

    producer = Producer(
        settings | {"linger.ms": 1, "error_cb": lambda error: trouble.append(error.str()), "retries": 0}
    )
    ends_s = time.monotonic() + 3.5 * SESSION_SECONDS
    sent = 0
    while time.monotonic() < ends_s:
        producer.produce("renewed", b"%d" % sent, on_delivery=done)
        sent += 1
        producer.poll(0.001)
    assert producer.flush(20) == 0
    assert trouble == []
    assert delivered == sent > 1000


def test_a_client_that_cannot_is_disconnected_and_loses_nothing(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    create(node, "dropped")
    settings = {
        "bootstrap_servers": f"127.0.0.1:{node.short_port}",
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "alice-secret",
    }

    async def main() -> None:
        sent = 0
        async with aiokafka.AIOKafkaProducer(enable_idempotence=True, **settings) as producer:
            ends_s = time.monotonic() + 2.5 * SESSION_SECONDS
            while time.monotonic() < ends_s:
                await producer.send_and_wait("dropped", b"%d" % sent)
                sent += 1
                await asyncio.sleep(0.005)
        async with aiokafka.AIOKafkaConsumer("dropped", auto_offset_reset="earliest", **settings) as consumer:
            values: list[bytes] = []
            async with asyncio.timeout(20):
                while len(values) < sent:
                    for records in (await consumer.getmany(timeout_ms=200)).values():
                        values += [record.value for record in records]
        assert [int(value) for value in values] == list(range(sent))

    asyncio.run(main())
    assert f"Connection at 127.0.0.1:{node.short_port} closed" in caplog.text


# commands


@pytest.fixture
def properties(node: Node, tmp_path: Path) -> str:
    path = tmp_path / "client.properties"
    path.write_text(
        f"bootstrap.servers={node.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.username=alice\nsasl.password=alice-secret\n"
    )
    return str(path)


@pytest.fixture
def run(properties: str) -> Callable[..., Result]:
    def invoke(*arguments: str, stdin: str = "", as_tool: str | None = None) -> Result:
        words = [*arguments, "--command-config", properties]
        return CliRunner().invoke(cli, words, input=stdin, prog_name=as_tool or "millbeck", obj=as_tool)

    return invoke


def test_a_users_life(run: Callable[..., Result], node: Node, tmp_path: Path) -> None:
    def logs_in(user: str, password: str, mechanism: str = "SCRAM-SHA-512") -> bool:
        arguments = ("topic", "list", "-b", node.bootstrap, "-X", "security.protocol=SASL_PLAINTEXT")
        settings = {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        flags = [part for name, value in settings.items() for part in ("-X", f"{name}={value}")]
        done = CliRunner().invoke(cli, [*arguments, *flags], prog_name="millbeck")
        assert done.exit_code == 0 or f"refused user {user}: Authentication failed" in done.stderr, done.stderr
        return done.exit_code == 0

    created = run("user", "create", "carol", stdin="carol-secret\n")
    assert created.stdout == "created user carol with SCRAM-SHA-512\n", created.stderr
    assert logs_in("carol", "carol-secret")
    assert not logs_in("carol", "another")
    again = run("user", "create", "carol", stdin="x\n")
    assert "user carol exists with SCRAM-SHA-512: change the password with millbeck user passwd carol" in again.stderr
    assert run("user", "create", "carol", "--mechanism", "scram-sha-256", "--password", "c-256").exit_code == 0
    assert logs_in("carol", "c-256", "SCRAM-SHA-256")
    described = run("user", "describe", "carol", "-o", "json")
    assert '"SCRAM-SHA-256"' in described.stdout
    assert '"iterations": 8192' in described.stdout
    file = tmp_path / "password"
    file.write_text("new-secret\nnot this\n")
    changed = run("user", "passwd", "carol", "--password-file", str(file))
    assert changed.stdout == "changed the password of user carol for SCRAM-SHA-256, SCRAM-SHA-512\n"
    assert logs_in("carol", "new-secret")
    assert logs_in("carol", "new-secret", "SCRAM-SHA-256")
    assert not logs_in("carol", "carol-secret")
    assert "carol" in run("user", "list").stdout
    assert run("user", "delete", "carol", "--mechanism", "SCRAM-SHA-256", stdin="n\n").stdout.endswith("deleted\n")
    assert run("user", "delete", "carol", "-y").stdout == "deleted user carol (SCRAM-SHA-256, SCRAM-SHA-512)\n"
    assert not logs_in("carol", "new-secret")
    gone = run("user", "describe", "carol")
    assert (gone.exit_code, "does not exist: carol (RESOURCE_NOT_FOUND)" in gone.stderr) == (1, True)


def test_an_empty_password_is_refused(run: Callable[..., Result]) -> None:
    done = run("user", "create", "dave", stdin="\n")
    assert "the password is empty" in done.stderr
    assert "dave" not in run("user", "list").stdout


def test_a_tokens_life(run: Callable[..., Result], node: Node, tmp_path: Path) -> None:
    created = run("token", "create", "--renewer", "User:bob", "--max-lifetime", "600000", "-o", "json")
    assert created.exit_code == 0, created.stderr
    (token,) = json.loads(created.stdout)
    assert (token["owner"], token["requester"], token["renewers"]) == ("User:alice", "User:alice", ["User:bob"])
    holder = tmp_path / "holder.properties"
    holder.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{token["token_id"]}" password="{token["hmac"]}" tokenauth="true";\n'
    )

    def as_holder(*arguments: str) -> Result:
        return CliRunner().invoke(
            cli, [*arguments, "-b", node.bootstrap, "--command-config", str(holder)], prog_name="millbeck"
        )

    assert as_holder("topic", "list").exit_code == 0
    assert "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" in as_holder("token", "create").stderr
    listed = run("token", "list")
    assert token["token_id"] in listed.stdout
    assert token["hmac"] not in listed.stdout
    assert run("token", "list", "--owner", "User:bob", "-o", "json").stdout == "[]\n"
    assert run("token", "renew", token["token_id"]).stdout.startswith("renewed until 20")
    described = run("token", "--describe", as_tool="kafka-delegation-tokens").stdout.splitlines()
    assert described[:2] == [
        "Calling describe token operation for current user.",
        "Total number of tokens : 1",
    ]
    assert described[-1].split()[:5] == [token["token_id"], token["hmac"], "User:alice", "User:alice", "[User:bob]"]
    renewed = run(
        *("token", "--renew", "--renew-time-period", "-1", "--hmac", token["hmac"]), as_tool="kafka-delegation-tokens"
    )
    assert "Completed renew operation. New expiry date : 20" in renewed.stdout
    later = run("token", "--expire", "--expiry-time-period", "60000", "--hmac", token["hmac"])
    assert later.stdout.startswith("the token expires at 20"), later.stderr
    assert run("token", "expire", token["token_id"]).stdout == "the token has expired\n"
    assert "there is no token" in run("token", "renew", token["token_id"]).stderr
    assert f"refused token {token['token_id']}: Authentication failed" in as_holder("topic", "list").stderr


def test_a_login_that_fails_is_one_line_with_the_settings(node: Node) -> None:
    settings = ("security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.username=alice", "sasl.password=no")
    flags = [part for setting in settings for part in ("-X", setting)]
    done = CliRunner().invoke(cli, ["topic", "list", "-b", node.bootstrap, *flags], prog_name="millbeck")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == (
        f"millbeck: {node.bootstrap} refused user alice: Authentication failed: Invalid username or password (see "
        "sasl.username and sasl.password) (SASL_AUTHENTICATION_FAILED)\n"
    )
