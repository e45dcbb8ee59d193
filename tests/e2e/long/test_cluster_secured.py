"""A cluster in use gets TLS, logins and ACLs by rolling restarts, as `docs/security.md` says, and loses nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import trustme
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from millbeck.testing import Cluster, cluster
from tests.e2e.long.load import PARTITIONS, Load, run, until
from tests.e2e.server_process import free_ports

JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="node" password="node-secret" user_node="node-secret" user_admin="admin-secret";'
)
SECURED = "SECURE:SASL_SSL,QUORUM:SASL_SSL"
COMMON = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}


class Migration:
    def __init__(self, nodes: Cluster, directory: Path) -> None:
        self.nodes = nodes
        self.directory = directory
        self.trusted = directory / "authority.pem"
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(self.trusted))
        for number, _ in enumerate(nodes.nodes, 1):
            certificate = authority.issue_cert("127.0.0.1", common_name=f"node-{number}")
            certificate.private_key_and_cert_chain_pem.write_to_path(str(directory / f"node-{number}.pem"))
        count = len(nodes.nodes)
        ports = free_ports(2 * count)
        self.client_ports, self.controller_ports = ports[:count], ports[count:]

    @property
    def bootstrap(self) -> str:
        """The listeners with TLS."""
        return ",".join(f"127.0.0.1:{port}" for port in self.client_ports)

    def client(self, user: str, mechanism: str = "SCRAM-SHA-512") -> dict[str, str]:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.trusted),
            "sasl.mechanism": mechanism,
            "sasl.username": user,
            "sasl.password": f"{user}-secret",
        }

    def add_listeners(self, index: int) -> None:
        settings = self.nodes.nodes[index].settings
        settings["listeners"] += (
            f",SECURE://127.0.0.1:{self.client_ports[index]},QUORUM://127.0.0.1:{self.controller_ports[index]}"
        )
        settings |= {
            "controller.listener.names": "CONTROLLER,QUORUM",
            "millbeck.inter.broker.listeners": "PLAINTEXT,SECURE",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{SECURED}",
            "ssl.keystore.location": str(self.directory / f"node-{index + 1}.pem"),
            "ssl.truststore.location": str(self.trusted),
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": JAAS,
            "listener.name.quorum.plain.sasl.jaas.config": JAAS,
        }

    def connect_by_them(self, index: int) -> None:
        self.nodes.nodes[index].settings |= {
            "inter.broker.listener.name": "SECURE",
            "controller.listener.names": "QUORUM,CONTROLLER",
            "controller.quorum.bootstrap.servers": ",".join(f"127.0.0.1:{port}" for port in self.controller_ports),
        }

    def decide_in_a_dry_run(self, index: int) -> None:
        self.nodes.nodes[index].settings |= {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:node;User:admin",
            "millbeck.authorizer.dry.run": "true",
            "millbeck.audit.file": str(self.audit_file(index)),
        }

    def close_the_others(self, index: int) -> None:
        settings = self.nodes.nodes[index].settings
        kept = [each for each in settings["listeners"].split(",") if each.startswith(("SECURE:", "QUORUM:"))]
        settings["listeners"] = ",".join(kept)
        settings["controller.listener.names"] = "QUORUM"
        settings["listener.security.protocol.map"] = SECURED
        del settings["millbeck.authorizer.dry.run"], settings["millbeck.inter.broker.listeners"]

    def audit_file(self, index: int) -> Path:
        return self.directory / f"audit-{index + 1}.log"


def roll(nodes: Cluster, step: object, in_sync: object) -> None:
    for index, node in enumerate(nodes.nodes):
        node.stop()
        step(index)  # type: ignore[operator]
        node.start()
        until(in_sync)  # type: ignore[arg-type]


def is_in_sync(bootstrap: str, settings: Mapping[str, str]) -> bool:
    try:
        topics = AdminClient({"bootstrap.servers": bootstrap, **settings}).list_topics(timeout=10).topics
    except KafkaException:
        return False
    return all(len(each.isrs) == len(each.replicas) for topic in topics.values() for each in topic.partitions.values())


def test_a_cluster_in_use_is_secured_and_loses_nothing(tmp_path: Path) -> None:
    with cluster(COMMON, nodes=3, data=tmp_path / "data") as nodes:
        plain = nodes.bootstrap
        migration = Migration(nodes, tmp_path)
        secure, app = migration.bootstrap, migration.client("app")
        admin_settings = migration.client("admin", "PLAIN")
        for topic in ("t", "later"):
            run(plain, "topic", "create", topic, "--partitions", str(PARTITIONS), "--replication-factor", "3")

        def plain_in_sync() -> bool:
            return is_in_sync(plain, {})

        with Load(plain) as load:
            until(lambda: len(load.consumed) > 100)
            roll(nodes, migration.add_listeners, plain_in_sync)
            roll(nodes, migration.connect_by_them, plain_in_sync)
            roll(nodes, migration.decide_in_a_dry_run, plain_in_sync)
        assert load.failures == []
        assert sorted(load.consumed, key=int) == sorted(load.acknowledged, key=int)

        admin = AdminClient({"bootstrap.servers": secure, **admin_settings})
        credentials = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        for user in ("app", "eve"):
            upsertion = UserScramCredentialUpsertion(user, credentials, f"{user}-secret".encode())
            admin.alter_user_scram_credentials([upsertion])[user].result(30)
        config = tmp_path / "admin.properties"
        config.write_text(
            "".join(f"{name}={value}\n" for name, value in admin_settings.items()).replace(
                "ssl.ca.location", "ssl.truststore.location"
            )
        )
        with Load(secure, app, group="later", topic="later") as load:
            until(lambda: len(load.consumed) > 100)
            # What the clients would be denied, as the smallest ACLs that allow it.
            wanted = ""
            for index in range(3):
                until(lambda index=index: migration.audit_file(index).exists())  # type: ignore[misc]
            time.sleep(3)
            for index in range(3):
                wanted = run(secure, "acl", "suggest", "--from-audit", str(migration.audit_file(index)))
                suggested = tmp_path / f"acls-{index}.yaml"
                suggested.write_text(wanted)
                run(secure, "acl", "apply", str(suggested), "--command-config", str(config))
            assert "User:app" in wanted
            roll(nodes, migration.close_the_others, lambda: is_in_sync(secure, admin_settings))
            before = len(load.consumed)
            until(lambda: len(load.consumed) > before + 100)
        assert load.failures == []
        assert len(load.acknowledged) > 500
        assert sorted(load.consumed, key=int) == sorted(load.acknowledged, key=int)

        errors: list[str] = []
        eve = Producer({"bootstrap.servers": secure, **migration.client("eve"), "message.timeout.ms": 5000})
        eve.produce("later", b"x", on_delivery=lambda error, _: errors.append(str(error)))
        eve.flush(15)
        assert any("authoriz" in each.lower() for each in errors), errors
        assert not is_in_sync(plain, {"socket.timeout.ms": "2000"})
        for node in nodes.nodes:
            assert "-secret" not in node.output()
