"""Three nodes whose every listener asks for a login, of clients and of the other nodes, with ACLs in force."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)

from millbeck.testing.cluster_processes import Cluster

COUNT = 300
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret" user_admin="admin-secret";'
)
SETTINGS = {
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,CLIENTS:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.clients.plain.sasl.jaas.config": JAAS,
    "listener.name.controller.plain.sasl.jaas.config": JAAS,
    "connections.max.reauth.ms": "3000",
    "millbeck.disconnect.on.revoke": "true",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:node;User:admin;User:app",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(SETTINGS, nodes=3, directory=tmp_path)
    for node in running.nodes:
        node.settings["listeners"] = node.settings["listeners"].replace("PLAINTEXT://", "CLIENTS://")
    try:
        running.start()
        yield running
    finally:
        for node in running.nodes:
            node.kill()
            node.close()


def client(nodes: Cluster, mechanism: str, user: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": nodes.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": f"{user}-secret",
    }


def test_records_outlive_a_restart_of_every_node(nodes: Cluster) -> None:
    admin = AdminClient(client(nodes, "PLAIN", "admin"))
    admin.create_topics([NewTopic("t", 3, 3)])["t"].result(30)
    create_user(admin)
    app = client(nodes, "SCRAM-SHA-512", "app")
    producer = Producer(app | {"enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("t", b"%d" % number)
        if number % (COUNT // 3) == COUNT // 6:
            # Leaders, coordinators and the active controller move, and nodes log in to each other anew.
            producer.flush(30)
            nodes.nodes[number // (COUNT // 3)].restart()
    assert producer.flush(60) == 0
    consumer = Consumer(app | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    seen: list[bytes] = []
    deadline_s = time.monotonic() + 60
    while len(seen) < COUNT and time.monotonic() < deadline_s:
        seen += [message.value() or b"" for message in consumer.consume(100, 0.3) if message.error() is None]
    consumer.close()
    assert sorted(seen, key=int) == [b"%d" % number for number in range(COUNT)]
    deadline_s = time.monotonic() + 30
    while {len(each.isrs) for each in admin.list_topics(timeout=10).topics["t"].partitions.values()} != {3}:
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
    ends_on_every_node(nodes, admin, app)
    for node in nodes.nodes:
        assert "-secret" not in node.output(), "a password is in the log"


def create_user(admin: AdminClient) -> None:
    credential = UserScramCredentialUpsertion(
        "app", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"app-secret"
    )
    admin.alter_user_scram_credentials([credential])["app"].result(30)


def ends_on_every_node(nodes: Cluster, admin: AdminClient, app: dict[str, Any]) -> None:
    """The sessions of a deleted user end on every node, while another user's go on.

    librdkafka closes a connection at the end of its session (``connections.max.reauth.ms``) and connects anew, so a
    node may have had no session of the user just then: such a round is repeated.
    """
    deadline_s = time.monotonic() + 60
    while True:
        clients = [AdminClient({**app, "bootstrap.servers": node.bootstrap}) for node in nodes.nodes]
        for each in clients:
            assert each.list_topics(timeout=20).brokers
        admin.alter_user_scram_credentials([UserScramCredentialDeletion("app", ScramMechanism.SCRAM_SHA_512)])[
            "app"
        ].result(30)
        round_ends_s = time.monotonic() + 5
        while time.monotonic() < round_ends_s:
            if all(revoked_count(node.metrics_url) for node in nodes.nodes):
                assert admin.list_topics(timeout=20).brokers
                return
            time.sleep(0.2)
        assert time.monotonic() < deadline_s
        create_user(admin)


def revoked_count(metrics_url: str) -> int:
    with urlopen(metrics_url) as answer:
        lines = answer.read().decode().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("millbeck_sessions_revoked_total")))
