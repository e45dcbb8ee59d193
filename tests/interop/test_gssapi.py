"""Kerberos with MIT's KDC: Kafka's Java client, kafka-python and our client log in by GSSAPI, and nodes to each other.

Without the KDC's programs or the Python package ``gssapi`` nothing is tested.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.client import Admin, Consumer, Producer
from millbeck.client.admin.results import NewTopic
from millbeck.kernel.errors import SaslAuthenticationFailed, TopicAuthorizationFailed
from tests.e2e.server_process import ServerProcess, free_ports
from tests.interop.cluster import Cluster, run_tool
from tests.interop.kdc import REALM, Kdc, missing_programs

if importlib.util.find_spec("gssapi") is None:
    pytest.skip("the package gssapi is not installed: pip install 'millbeck[kerberos]'", allow_module_level=True)
if missing := missing_programs():
    pytest.skip(f"not installed: {', '.join(missing)}", allow_module_level=True)

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
RULES = "RULE:[2:$1](app)s/^app$/service/,DEFAULT"


def jaas(keytab: Path, principal: str) -> str:
    return f'{MODULE} useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}";'


@pytest.fixture(scope="module")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    running = Kdc(tmp_path_factory.mktemp("kerberos") / "kdc")
    before = os.environ.get("KAFKA_OPTS")
    os.environ["KAFKA_OPTS"] = f"-Djava.security.krb5.conf={running.config}"
    yield running
    running.close()
    if before is None:
        del os.environ["KAFKA_OPTS"]
    else:
        os.environ["KAFKA_OPTS"] = before


class Realm:
    """The keytabs, and a node whose listener accepts their tickets."""

    def __init__(self, directory: Path, kdc: Kdc) -> None:
        (port,) = free_ports(1)
        self.bootstrap = f"localhost:{port}"
        self.directory = directory
        self.kdc = kdc
        self.keytabs = {name: kdc.keytab(name) for name in ("kafka/localhost", "alice", "bob", "app/host.example")}
        self.process = ServerProcess(
            directory / "node",
            {
                "listeners": f"SASL_PLAINTEXT://localhost:{port}",
                # Kerberos knows the broker by this name, and not by its address.
                "advertised.listeners": f"SASL_PLAINTEXT://localhost:{port}",
                "sasl.enabled.mechanisms": "GSSAPI",
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.principal.to.local.rules": RULES,
                "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(
                    self.keytabs["kafka/localhost"], "kafka/localhost"
                ),
                "listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms": "4000",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:alice;User:service",
                "offsets.topic.replication.factor": "1",
                "group.initial.rebalance.delay.ms": "0",
            },
        )
        self.process.format("AAAAAAAAAAAAAAAAAAAAKg", "-s")
        self.process.start()

    def settings(self, principal: str, **others: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": jaas(self.keytabs[principal], principal),
            **others,
        }

    def file(self, principal: str) -> str:
        path = self.directory / f"{principal.replace('/', '-')}.properties"
        settings = self.settings(principal)
        del settings["bootstrap.servers"], settings["sasl.mechanism"]  # the default of Java's clients
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return str(path)


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory, kdc: Kdc) -> Iterator[Realm]:
    running = Realm(tmp_path_factory.mktemp("gssapi"), kdc)
    yield running
    running.process.stop()


async def create(settings: dict[str, Any], name: str) -> None:
    async with Admin(settings) as admin:
        (await admin.create_topics([NewTopic(name=name, partition_count=1, replication_factor=1)])).all()


@pytest.mark.parametrize("principal", ["alice", "app/host.example"])
def test_kafkas_tools(realm: Realm, principal: str) -> None:
    topic = f"tools-{len(principal)}"
    for arguments in (("--create", "--topic", topic), ("--describe", "--topic", topic)):
        done = run_tool(
            "kafka-topics", "--bootstrap-server", realm.bootstrap, "--command-config", realm.file(principal), *arguments
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert topic in done.stdout


def test_commands_take_the_file_of_a_java_client(realm: Realm) -> None:
    arguments = ["cluster", "id", "-b", realm.bootstrap, "--command-config", realm.file("alice")]
    done = subprocess.run(
        [sys.executable, "-m", "millbeck.cli.main", *arguments], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "AAAAAAAAAAAAAAAAAAAAKg" in done.stdout) == (0, True), done.stdout + done.stderr


def test_our_client_through_reauthentications(realm: Realm) -> None:
    async def run() -> int:
        settings = realm.settings("alice")
        await create(settings, "ours")
        async with Producer(settings) as producer:
            for number in range(100):
                await producer.send("ours", str(number).encode())
                await asyncio.sleep(0.1)
        values: list[bytes | None] = []
        async with Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
            consumer.subscribe(["ours"])
            while len(values) < 100:
                for records in (await consumer.poll(timeout_s=1)).values():
                    values += [record.value for record in records]
        return len(set(values))

    assert asyncio.run(asyncio.wait_for(run(), 60)) == 100


def test_a_ticket_cache_and_the_names_of_librdkafka(realm: Realm) -> None:
    async def run(settings: dict[str, Any], topic: str) -> None:
        await create({"bootstrap.servers": realm.bootstrap, "security.protocol": "SASL_PLAINTEXT", **settings}, topic)

    cache = realm.kdc.ticket_cache("alice", realm.keytabs["alice"])
    asyncio.run(run({"sasl.jaas.config": f'{MODULE} useTicketCache=true ticketCache="{cache}";'}, "cached"))
    keytab = {"sasl.kerberos.keytab": str(realm.keytabs["alice"]), "sasl.kerberos.principal": f"alice@{REALM}"}
    asyncio.run(run({"sasl.mechanisms": "GSSAPI", **keytab}, "by-keytab"))


def test_kafka_python(realm: Realm) -> None:
    script = (
        "import kafka, sys\n"
        f"p = kafka.KafkaProducer(bootstrap_servers='{realm.bootstrap}', security_protocol='SASL_PLAINTEXT',\n"
        "    sasl_mechanism='GSSAPI', sasl_kerberos_service_name='kafka', sasl_kerberos_domain_name='localhost')\n"
        "print(p.send('python', b'x').get(30).offset)\n"
    )
    asyncio.run(create(realm.settings("alice"), "python"))
    cache = realm.kdc.ticket_cache("alice", realm.keytabs["alice"])
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"KRB5CCNAME": f"FILE:{cache}"},
    )
    assert done.stdout == "0\n", done.stderr


def test_who_may_not_and_who_is_not(realm: Realm) -> None:
    with pytest.raises(TopicAuthorizationFailed):
        asyncio.run(create(realm.settings("bob"), "mine"))
    stale = realm.directory / "stale.keytab"
    stale.write_bytes(realm.kdc.keytab("carol").read_bytes())
    realm.kdc.keytab("carol")  # with new keys
    for settings, reason in (
        ({"sasl.jaas.config": jaas(stale, "carol")}, "carol@EXAMPLE.COM cannot log in"),
        ({"sasl.jaas.config": jaas(realm.directory / "nowhere", "dave")}, "dave@EXAMPLE.COM cannot log in"),
        ({"sasl.kerberos.service.name": "other"}, "Server other/localhost@EXAMPLE.COM not found"),
    ):
        with pytest.raises(SaslAuthenticationFailed, match=reason):
            asyncio.run(create({**realm.settings("alice"), **settings}, "not-mine"))


def test_a_node_without_its_keytab_says_so(realm: Realm, tmp_path: Path) -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://localhost:0",
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": jaas(tmp_path / "nowhere", "kafka/localhost"),
    }
    process = ServerProcess(tmp_path / "node", settings)
    process.format("AAAAAAAAAAAAAAAAAAAAKg", "-s")
    process.launch()
    while process.is_running:
        pass
    assert "listener.name.sasl_plaintext.gssapi.sasl.jaas.config: " in process.said()
    assert "nowhere" in process.said()


def test_nodes_log_in_to_each_other(realm: Realm, tmp_path: Path) -> None:
    keytab = realm.kdc.keytab("kafka/127.0.0.1")
    entry = jaas(keytab, "kafka/127.0.0.1")
    overrides = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.plaintext.gssapi.sasl.jaas.config": entry,
        "listener.name.controller.gssapi.sasl.jaas.config": entry,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:kafka",
        "min.insync.replicas": "3",
    }
    with Cluster("millbeck", tmp_path, overrides=overrides) as cluster:
        settings = {**realm.settings("alice"), "bootstrap.servers": cluster.bootstrap, "sasl.jaas.config": entry}

        async def run() -> int:
            async with Admin(settings) as admin:
                (
                    await admin.create_topics([NewTopic(name="replicated", partition_count=3, replication_factor=3)])
                ).all()
            async with Producer({**settings, "acks": "all"}) as producer:
                return (await producer.send("replicated", b"x")).offset

        assert asyncio.run(asyncio.wait_for(run(), 60)) == 0
