"""Three nodes that speak TLS to clients and to each other, and that ask everybody for a certificate."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from millbeck.cli.main import cli
from millbeck.testing.cluster_processes import Cluster

COUNT = 300


@pytest.fixture
def authority(tmp_path: Path) -> trustme.CA:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    return authority


@pytest.fixture
def nodes(tmp_path: Path, authority: trustme.CA) -> Iterator[Cluster]:
    common = {
        "listener.security.protocol.map": "CONTROLLER:SSL,CLIENTS:SSL",
        "inter.broker.listener.name": "CLIENTS",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(tmp_path / "authority.pem"),
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
    }
    running = Cluster(common, nodes=3, directory=tmp_path)
    for number, node in enumerate(running.nodes, 1):
        certificate = authority.issue_cert("127.0.0.1", common_name=f"node-{number}")
        path = tmp_path / f"node-{number}.pem"
        certificate.private_key_and_cert_chain_pem.write_to_path(str(path))
        node.settings["ssl.keystore.location"] = str(path)
        node.settings["listeners"] = node.settings["listeners"].replace("PLAINTEXT://", "CLIENTS://")
    try:
        running.start()
        yield running
    finally:
        for node in running.nodes:
            node.kill()
            node.close()


def test_everything_between_nodes_and_clients_is_encrypted_and_known(
    nodes: Cluster, authority: trustme.CA, tmp_path: Path
) -> None:
    certificate = authority.issue_cert("a-client", common_name="a-client")
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    certificate.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))
    client: dict[str, str | int | float | bool] = {
        "bootstrap.servers": nodes.bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": str(tmp_path / "authority.pem"),
        "ssl.certificate.location": str(tmp_path / "certificate.pem"),
        "ssl.key.location": str(tmp_path / "key.pem"),
    }
    admin = AdminClient(client)
    admin.create_topics([NewTopic("t", 3, 3)])["t"].result(30)
    producer = Producer(client | {"enable.idempotence": True})
    for number in range(COUNT):
        producer.produce("t", b"%d" % number)
        if number == COUNT // 2:
            # Leaders, the active controller perhaps and a coordinator move to nodes that are asked who they are.
            producer.flush(30)
            nodes.node(1).restart()
    assert producer.flush(60) == 0
    consumer = Consumer(client | {"group.id": "g", "auto.offset.reset": "earliest"})
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
    _the_commands_speak_it_too(nodes, tmp_path)
    stranger = AdminClient(
        {key: value for key, value in client.items() if "certificate" not in key and "key" not in key}
    )
    with pytest.raises(Exception, match=r"_TRANSPORT|_ALL_BROKERS_DOWN|_TIMED_OUT"):
        stranger.list_topics(timeout=3)


def _the_commands_speak_it_too(nodes: Cluster, directory: Path) -> None:
    settings = {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(directory / "authority.pem"),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(directory / "node-1.pem"),
    }
    file = directory / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    done = CliRunner().invoke(
        cli, ["quorum", "describe", "--bootstrap-server", nodes.bootstrap, "--command-config", str(file)]
    )
    assert done.exit_code == 0, done.output
    assert "[1, 2, 3]" in done.stdout
