"""Names of former releases: an error that says what to write instead."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig, InvalidRequest
from millbeck.metadata.image import ConfigResource, ResourceType
from millbeck.server.config import NodeConfig
from millbeck.server.config.broker_options import BROKER_OPTIONS
from millbeck.server.config.checks import ConfigChecks
from millbeck.server.config.removed import REMOVED, check_not_removed, replacement_of

REPLACEMENTS = {
    "zookeeper.connect": "controller.quorum",
    "zookeeper.session.timeout.ms": "process.roles",
    "zookeeper.ssl.truststore.location": "ZooKeeper is not supported",
    "zookeeper.metadata.migration.enable": "ZooKeeper is not supported",
    "broker.id.generation.enable": "node.id",
    "reserved.broker.max.id": "node.id",
    "inter.broker.protocol.version": "metadata.version",
    "log.message.format.version": "metadata.version",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms",
    "control.plane.listener.name": "controller.listener.names",
    "password.encoder.secret": "remove it",
    "offsets.commit.required.acks": "remove it",
    "delegation.token.master.key": "delegation.token.secret.key",
    "host.name": "listeners",
    "port": "listeners",
    "advertised.host.name": "advertised.listeners",
}


@pytest.mark.parametrize(("name", "replacement"), REPLACEMENTS.items(), ids=REPLACEMENTS.keys())
def test_a_removed_setting_names_its_replacement(name: str, replacement: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        check_not_removed({"log.dirs": "/data", name: "1"})
    assert name in caught.value.message
    assert replacement in caught.value.message


@pytest.mark.parametrize("name", [*REMOVED, *REPLACEMENTS])
def test_a_removed_setting_is_refused_in_a_file_and_for_brokers_that_run(name: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{name} has been removed: "):
        NodeConfig({name: "1"})
    for broker in ("1", ""):
        with pytest.raises(InvalidRequest, match=f"^{name} has been removed: "):
            ConfigChecks({}).check(ConfigResource(ResourceType.BROKER, broker), {name: "1"}, [name])


def test_all_of_them_are_named_at_once() -> None:
    with pytest.raises(InvalidConfig, match=r"zookeeper\.connect has been removed.*port has been removed"):
        check_not_removed({"zookeeper.connect": "z:2181", "port": "9092"})


def test_what_exists_is_not_removed() -> None:
    assert [name for name in REMOVED if name in BROKER_OPTIONS] == []
    assert [declared.name for declared in BROKER_OPTIONS if replacement_of(declared.name) is not None] == []
    assert replacement_of("zookeeper") is None
    assert replacement_of("my.plugin.port") is None
