"""Two registry processes on a real node, used by Confluent's own client: register, serialize, fail over, restart."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli
from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.registry.access import User
from millbeck.registry.rest.log_acls import LogAcls
from millbeck.registry.roles import Role
from millbeck.registry.topic import ensure_topic
from millbeck.testing import broker

pytest.importorskip("uvicorn")
registry_client = pytest.importorskip("confluent_kafka.schema_registry")

START_SECONDS = 60.0
FAILOVER_SECONDS = 30.0
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, {"name": "n", "type": "long"}]}
COUPON = {"name": "couponCode", "type": ["null", "string"], "default": None}


@dataclass
class RegistryProcess:
    process: subprocess.Popen[str]
    url: str

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return json.load(answer)


def start(bootstrap: str) -> RegistryProcess:
    settings = {
        "listeners": "http://127.0.0.1:0",
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic.replication.factor": "1",
        "schema.registry.group.session.timeout.ms": "6000",
    }
    arguments = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "millbeck.cli.main", "registry", "start", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("listening on http://"), line
    return RegistryProcess(process, line.split()[-1])


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with broker() as running:
        yield running.bootstrap


@pytest.fixture(scope="module")
def pair(bootstrap: str) -> Iterator[list[RegistryProcess]]:
    running = [start(bootstrap) for _ in range(2)]
    yield running
    for each in running:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGTERM)
    for each in running:
        each.process.wait(20)


def client_of(*processes: RegistryProcess) -> Any:
    return registry_client.SchemaRegistryClient({"url": ",".join(each.url for each in processes)})


def schema(node: Any) -> Any:
    return registry_client.Schema(json.dumps(node), "AVRO")


def test_confluents_client_registers_and_evolves(pair: list[RegistryProcess]) -> None:
    client = client_of(pair[0])
    first = client.register_schema("orders-value", schema(ORDER))
    assert client.register_schema("orders-value", schema(ORDER)) == first
    evolved = {**ORDER, "fields": [*ORDER["fields"], COUPON]}
    assert client.test_compatibility("orders-value", schema(evolved))
    second = client.register_schema("orders-value", schema(evolved))
    assert second > first
    broken = {**ORDER, "fields": [*ORDER["fields"], {"name": "x", "type": "int"}]}
    with pytest.raises(registry_client.error.SchemaRegistryError) as refused:
        client.register_schema("orders-value", schema(broken))
    assert refused.value.error_code == 409
    assert client.get_latest_version("orders-value").version == 2
    assert client.get_versions("orders-value") == [1, 2]
    assert "orders-value" in client.get_subjects()
    assert json.loads(client.get_schema(first).schema_str) == ORDER
    assert client.set_compatibility("orders-value", "FULL")["compatibility"] == "FULL"
    assert client.get_compatibility("orders-value") == "FULL"
    assert client.delete_subject("orders-value") == [1, 2]
    assert client.delete_subject("orders-value", permanent=True) == [1, 2]
    with pytest.raises(registry_client.error.SchemaRegistryError) as missing:
        client_of(pair[0]).get_latest_version("orders-value")
    assert missing.value.error_code == 40401


def test_confluents_serializers_round_trip_through_either_instance(pair: list[RegistryProcess]) -> None:
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    context = SerializationContext("payments", MessageField.VALUE)
    payload = AvroSerializer(client_of(pair[0]), json.dumps(ORDER))({"id": "a", "n": 7}, context)
    assert AvroDeserializer(client_of(pair[1]))(payload, context) == {"id": "a", "n": 7}


def test_the_leader_is_killed_and_nothing_answered_is_lost(pair: list[RegistryProcess], bootstrap: str) -> None:
    ids = {
        name: client_of(*pair).register_schema(name, schema({"type": "fixed", "name": name, "size": 1}))
        for name in "ab"
    }
    led_by = pair[0].get("/health")["leader"]
    killed = next(index for index, each in enumerate(pair) if each.url == led_by)
    pair[killed].process.kill()
    pair[killed].process.wait(10)
    survivor = pair[1 - killed]
    deadline = time.monotonic() + FAILOVER_SECONDS
    while True:
        try:
            ids["c"] = client_of(survivor).register_schema("c", schema({"type": "fixed", "name": "c", "size": 1}))
            break
        except registry_client.error.SchemaRegistryError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    assert len(set(ids.values())) == 3
    pair[killed] = start(bootstrap)
    for each in pair:
        found = {name: client_of(each).get_latest_version(name).schema_id for name in ids}
        assert found == ids


def test_a_write_to_a_follower_is_read_from_it_at_once(pair: list[RegistryProcess]) -> None:
    led_by = pair[0].get("/health")["leader"]
    follower = next(each for each in pair if each.url != led_by)
    client = client_of(follower)
    for index in range(5):
        node = {"type": "fixed", "name": f"F{index}", "size": 1}
        registered = client.register_schema(f"f{index}", schema(node))
        assert follower.get(f"/subjects/f{index}/versions/latest")["id"] == registered


def test_a_topic_that_deletes_schemas_is_refused_with_the_command_that_mends_it(bootstrap: str) -> None:
    settings = {"bootstrap.servers": bootstrap}

    async def ensure(topic: str) -> None:
        await ensure_topic(real_environment(), settings, topic, replication_factor=1, timeout_s=20.0)

    def run(*arguments: str) -> None:
        done = CliRunner().invoke(cli, [*arguments, "--bootstrap-server", bootstrap])
        assert done.exit_code == 0, done.output

    run("topic", "create", "_forgetful", "--config", "cleanup.policy=delete")
    with pytest.raises(InvalidConfig, match="deletes schemas") as refused:
        asyncio.run(ensure("_forgetful"))
    run(*str(refused.value).partition("millbeck ")[2].split())
    asyncio.run(ensure("_forgetful"))
    run("topic", "create", "_wide", "--partitions", "2", "--config", "cleanup.policy=compact")
    with pytest.raises(InvalidConfig, match=r"has 2 partitions .* kafkastore\.topic"):
        asyncio.run(ensure("_wide"))


def test_roles_come_from_the_acls_of_the_brokers() -> None:
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    with broker(settings) as running:
        options = ("--bootstrap-server", running.bootstrap, "--allow-principal", "User:carol", "--operation", "READ")
        done = CliRunner().invoke(cli, ["acl", "add", *options, "--topic", "orders"])
        assert done.exit_code == 0, done.output

        async def read() -> None:
            acls = LogAcls(real_environment(), {"bootstrap.servers": running.bootstrap})
            watching = asyncio.create_task(acls.watch())
            async with asyncio.timeout(20):
                while not acls.with_acls(User("carol")).may(Role.READ, "orders-value"):
                    await asyncio.sleep(0.05)
            assert not acls.with_acls(User("carol")).may(Role.WRITE, "orders-value")
            assert not acls.with_acls(User("bob")).may(Role.READ, "orders-value")
            watching.cancel()

        asyncio.run(read())
