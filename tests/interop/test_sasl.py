"""Kafka's own commands, by its Java client, against a listener with SASL: users and delegation tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.server_process import ServerProcess, free_ports
from tests.interop.cluster import run_tool

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class SaslNode:
    def __init__(self, directory: Path) -> None:
        (port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        self._directory = directory
        self.process = ServerProcess(
            directory / "node",
            {
                "listeners": f"SASL_PLAINTEXT://127.0.0.1:{port}",
                "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
                "delegation.token.secret.key": "the key of all nodes",
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:admin;User:carol",
            },
        )
        self.process.format("AAAAAAAAAAAAAAAAAAAAKg", "-s", "-S", "SCRAM-SHA-512=[name=admin,password=admin-secret]")
        self.process.start()

    def config(self, name: str, jaas: str, mechanism: str) -> str:
        path = self._directory / f"{name}.properties"
        path.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={SCRAM} {jaas};\n"
        )
        return str(path)

    def tool(self, name: str, *arguments: str, config: str) -> str:
        done = run_tool(name, "--bootstrap-server", self.bootstrap, *arguments, "--command-config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def refuses(self, config: str) -> str:
        done = run_tool("kafka-topics", "--bootstrap-server", self.bootstrap, "--list", "--command-config", config)
        assert done.returncode != 0
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SaslNode]:
    running = SaslNode(tmp_path_factory.mktemp("sasl"))
    yield running
    running.process.stop()


@pytest.fixture(scope="module")
def admin(node: SaslNode) -> str:
    return node.config("admin", 'username="admin" password="admin-secret"', "SCRAM-SHA-512")


def test_kafka_configs_makes_and_deletes_users(node: SaslNode, admin: str) -> None:
    carol = ("--entity-type", "users", "--entity-name", "carol")
    setting = "SCRAM-SHA-256=[iterations=8192,password=carol-secret]"
    assert "Completed updating" in node.tool("kafka-configs", "--alter", *carol, "--add-config", setting, config=admin)
    shown = node.tool("kafka-configs", "--describe", *carol, config=admin)
    assert "SCRAM-SHA-256=iterations=8192" in shown
    own = node.config("carol", 'username="carol" password="carol-secret"', "SCRAM-SHA-256")
    assert node.tool("kafka-topics", "--list", config=own) == "\n"
    wrong = node.config("wrong", 'username="carol" password="guessed"', "SCRAM-SHA-256")
    assert "Authentication failed during authentication due to invalid credentials" in node.refuses(wrong)
    node.tool("kafka-configs", "--alter", *carol, "--delete-config", "SCRAM-SHA-256", config=admin)
    assert "Authentication failed during authentication due to invalid credentials" in node.refuses(own)


def test_kafka_delegation_tokens(node: SaslNode, admin: str) -> None:
    tokens = "kafka-delegation-tokens"
    created = node.tool(tokens, "--create", "--max-life-time-period", "-1", config=admin)
    found = re.search(r"(\S{22})\s+(\S{88})\s+User:admin\s+User:admin", created)
    assert found is not None, created
    token_id, secret = found.groups()
    holder = node.config("holder", f'username="{token_id}" password="{secret}" tokenauth="true"', "SCRAM-SHA-256")
    # As the superuser that it belongs to.
    assert node.tool("kafka-topics", "--list", config=holder) == "\n"
    # Without an owner the command asks for the tokens of nobody.
    describe = (tokens, "--describe", "--owner-principal", "User:admin")
    assert token_id in node.tool(*describe, config=admin)
    assert "Completed renew" in node.tool(
        tokens, "--renew", "--renew-time-period", "-1", "--hmac", secret, config=admin
    )
    node.tool(tokens, "--expire", "--expiry-time-period", "-1", "--hmac", secret, config=admin)
    assert token_id not in node.tool(*describe, config=admin)
    assert "Authentication failed during authentication due to invalid credentials" in node.refuses(holder)
