"""The files of a secured local cluster: made once, kept, and private."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from millbeck.host import real_environment
from millbeck.host.environment import HostClock
from millbeck.kernel.environment import Environment
from millbeck.kernel.properties import parse_properties
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.security.principal import Principal
from millbeck.security.standard_authorizer import StandardAuthorizer
from millbeck.security.tls.principal_mapping import PrincipalMapping
from millbeck.security.tls.stores import read_key_store
from millbeck.server.config import NodeConfig
from millbeck.server.local.client_configs import PROTOCOL
from millbeck.server.local.embedded import NodePlacement, cluster_settings, embedded_settings
from millbeck.server.local.secured import (
    CERTIFICATE_DAYS,
    RENEWED_BEFORE_DAYS,
    SecuredCluster,
    SecurityDamaged,
    application_acls,
    is_secured,
    read_secured,
    secure,
)

HOSTS = ("localhost", "127.0.0.1")
DAY_MS = 86_400_000


class LaterClock(HostClock):
    def __init__(self, days: float) -> None:
        super().__init__()
        self._later_ms = int(days * DAY_MS)

    def wall_ms(self) -> int:
        return super().wall_ms() + self._later_ms


def environment(days: float = 0) -> Environment:
    return replace(real_environment(), clock=LaterClock(days))


def made(
    data: Path, *, nodes: Sequence[int] = (1,), days: float = 0, hosts: Sequence[str] = HOSTS, formatted: bool = False
) -> SecuredCluster:
    return secure(environment(days), str(data), node_ids=nodes, hosts=hosts, is_formatted=formatted)


def contents(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "security").iterdir()}


def test_secrets_are_for_their_owner_only(tmp_path: Path) -> None:
    assert not is_secured(real_environment().files, str(tmp_path))
    before = os.umask(0)
    try:
        made(tmp_path).write_client_files(real_environment().files, "h:1")
    finally:
        os.umask(before)
    assert is_secured(real_environment().files, str(tmp_path))
    for path in (tmp_path / "security").iterdir():
        assert path.stat().st_mode & 0o777 == (0o644 if path.name == "ca.pem" else 0o600), path.name


def test_a_second_start_keeps_everything(tmp_path: Path) -> None:
    first = made(tmp_path, nodes=(1, 2))
    kept = contents(tmp_path)
    assert (
        made(tmp_path, nodes=(1, 2), formatted=True) == first == read_secured(real_environment().files, str(tmp_path))
    )
    assert contents(tmp_path) == kept
    assert len(set(first.passwords.values())) == 3
    assert min(map(len, first.passwords.values())) >= 32


@pytest.mark.parametrize(
    ("days", "hosts", "is_renewed"),
    [
        (CERTIFICATE_DAYS - RENEWED_BEFORE_DAYS - 1, HOSTS, False),
        (CERTIFICATE_DAYS - RENEWED_BEFORE_DAYS + 1, HOSTS, True),
        (0, (*HOSTS, "192.0.2.7"), True),
        (0, HOSTS[:1], False),
    ],
    ids=["long before its end", "soon before its end", "another address", "an address less"],
)
def test_a_certificate_is_renewed_when_it_has_to_be(
    tmp_path: Path, days: float, hosts: Sequence[str], is_renewed: bool
) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    made(tmp_path, days=days, hosts=hosts, formatted=True)
    after = contents(tmp_path)
    assert (after.pop("node-1.pem") != before.pop("node-1.pem")) == is_renewed
    assert after == before
    chain = read_key_store(contents(tmp_path)["node-1.pem"], store_password=None, key_password=None).chain
    assert {f"{'IP' if each[0].isdigit() else 'DNS'}:{each}" for each in hosts} <= chain[0].alternative_names


@pytest.mark.parametrize("lost", ["secrets.properties", "ca.key", "ca.pem"])
def test_what_a_running_cluster_needs_is_not_made_anew(tmp_path: Path, lost: str) -> None:
    made(tmp_path)
    (tmp_path / "security" / lost).unlink()
    with pytest.raises(SecurityDamaged, match=f"{lost}.* is missing"):
        made(tmp_path, formatted=True)
    made(tmp_path)


@pytest.mark.parametrize("name", ["secrets.properties", "ca.key", "ca.pem"])
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"key=\\u12"], ids=["empty", "not text", "an escape cut short"])
def test_damage_is_told(tmp_path: Path, name: str, content: bytes) -> None:
    made(tmp_path)
    (tmp_path / "security" / name).write_bytes(content)
    (tmp_path / "security" / "node-1.pem").unlink()
    with pytest.raises(SecurityDamaged, match=name.partition(".")[0]):
        made(tmp_path, formatted=True)


def test_nodes_accept_their_settings(tmp_path: Path) -> None:
    secured = made(tmp_path, nodes=(1, 2))
    single = embedded_settings("/data", host="127.0.0.1", port=9092, metrics_port=0, protocol=PROTOCOL)
    config = NodeConfig(single | secured.node_settings(1))
    assert config.client_addresses()[0].has_sasl
    places = [
        NodePlacement(node_id=each, directory=f"/{each}", port=each, controller_port=each + 10, metrics_port=0)
        for each in (1, 2)
    ]
    several = cluster_settings(places[1], places, host="127.0.0.1", protocol=PROTOCOL)
    config = NodeConfig(several | secured.node_settings(2))
    assert config.controllers_protocol() == ("CONTROLLER", "SSL")
    assert config.brokers_protocol() == (PROTOCOL, PROTOCOL)


def test_a_node_is_a_superuser_by_its_certificate_and_a_client_is_not(tmp_path: Path) -> None:
    settings = made(tmp_path).node_settings(1)
    mapping = PrincipalMapping(settings["listener.name.controller.ssl.principal.mapping.rules"])
    pem = contents(tmp_path)["node-1.pem"]
    subject = read_key_store(pem, store_password=None, key_password=None).chain[0].subject
    supers = settings["super.users"].split(";")
    assert f"User:{mapping.name_of(subject)}" in supers
    for foreign in ("CN=alice", "CN=node", "CN=millbeck-node-1,O=x", "CN=x,CN=millbeck-node-1"):
        assert f"User:{mapping.name_of(foreign)}" not in supers


def test_an_application_may_use_topics_but_not_those_of_the_cluster() -> None:
    authorizer = StandardAuthorizer()
    authorizer.change([], application_acls("User:app"))
    authorizer.loaded()

    def may(operation: Operation, kind: ResourceType, name: str, user: str = "app") -> bool:
        return authorizer.authorize(Principal("User", user), "127.0.0.1", operation, kind, name)

    assert may(Operation.WRITE, ResourceType.TOPIC, "orders")
    assert may(Operation.DESCRIBE, ResourceType.TOPIC, "orders")
    assert may(Operation.READ, ResourceType.GROUP, "g")
    assert may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "t")
    assert not may(Operation.READ, ResourceType.TOPIC, "__consumer_offsets")
    assert not may(Operation.ALTER_CONFIGS, ResourceType.TOPIC, "orders")
    assert not may(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster")
    assert not may(Operation.READ, ResourceType.TOPIC, "orders", user="bob")


def test_the_files_of_clients_name_the_addresses_of_this_start(tmp_path: Path) -> None:
    secured = made(tmp_path)
    files: Any = real_environment().files
    names = secured.write_client_files(files, "127.0.0.1:1")
    assert set(names) <= set(contents(tmp_path))
    secured.write_client_files(files, "127.0.0.1:2")
    for name in names:
        text = contents(tmp_path)[name].decode()
        assert "127.0.0.1:2" in text.replace("\\", "")
        assert "127.0.0.1:1\n" not in text
    java = parse_properties(contents(tmp_path)["app.properties"].decode())
    assert java == secured.clients("app", "127.0.0.1:2").java
