"""Three nodes whose every listener asks for a login, of clients and of the other nodes, with ACLs in force."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
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
    credential = UserScramCredentialUpsertion(
        "app", ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096), b"app-secret"
    )
    admin.alter_user_scram_credentials([credential])["app"].result(30)
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
    for node in nodes.nodes:
        assert "-secret" not in node.output(), "a password is in the log"
