"""One node's configuration: what its texts mean, what is refused, what changes while it runs."""

from __future__ import annotations

import logging

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers, Section, Update
from millbeck.server.config import BROKER_OPTIONS, GROUP_OPTIONS, NodeConfig
from millbeck.server.config.addresses import ListenerAddress

SAMPLE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
    ),
    "num.network.threads": "3",
    "num.io.threads": "8",
    "socket.send.buffer.bytes": "102400",
    "socket.receive.buffer.bytes": "102400",
    "socket.request.max.bytes": "104857600",
    "log.dirs": "/tmp/kraft-combined-logs",
    "num.partitions": "1",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "168",
    "log.segment.bytes": "1073741824",
    "log.retention.check.interval.ms": "300000",
}
"""The settings of the file that Kafka ships for one node."""


def test_the_file_that_kafka_ships_works() -> None:
    config = NodeConfig(SAMPLE)
    assert [name for name in SAMPLE if name not in BROKER_OPTIONS] == []
    assert config.client_addresses() == [ListenerAddress(name="PLAINTEXT", host="", port=9092, protocol="PLAINTEXT")]
    assert config.advertised()["PLAINTEXT"] == ("localhost", 9092)
    assert config.directories == ("/tmp/kraft-combined-logs",)
    assert config.node.node_id == 1


def test_nothing_at_all_is_a_configuration() -> None:
    config = NodeConfig({})
    assert config.directories == ("/tmp/kafka-logs",)
    assert config.metadata_directory == "/tmp/kafka-logs"
    assert config.node.node_id == 1
    assert config.advertised() == {}
    assert config.option_set is BROKER_OPTIONS
    assert config.group_option_set is GROUP_OPTIONS
    assert config.open_files_max == 4096


def test_directories() -> None:
    config = NodeConfig({"log.dir": "/a", "log.dirs": "/b,/c"})
    assert config.directories == ("/b", "/c")
    assert config.metadata_directory == "/b"
    assert NodeConfig({"log.dir": "/a", "metadata.log.dir": "/m"}).metadata_directory == "/m"


def test_broker_id_is_another_name_of_node_id() -> None:
    assert NodeConfig({"broker.id": "7"}).node.node_id == 7
    config = NodeConfig({"node.id": "7"})
    assert config.node.broker_id == 7
    assert config.texts["broker.id"] == "7"
    assert NodeConfig({"node.id": "7", "broker.id": " 7 "}).node.node_id == 7
    with pytest.raises(InvalidConfig, match=r"node\.id \(7\) and broker\.id \(8\)"):
        NodeConfig({"node.id": "7", "broker.id": "8"})
    with pytest.raises(InvalidConfig, match=r"node\.id"):
        NodeConfig({"broker.id": "-1"})


def test_unknown_names_are_kept() -> None:
    assert NodeConfig({"super.users": "User:admin"}).texts["super.users"] == "User:admin"


KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"
REFUSED = {
    "a bad value of something idle": ({"num.replica.fetchers": "none"}, "num.replica.fetchers"),
    "a bad value for one listener": ({"listener.name.a.ssl.client.auth": "x"}, "listener.name.a.ssl.client.auth"),
    "ZooKeeper": ({"zookeeper.connect": "localhost:2181"}, "zookeeper.connect"),
    "a contradiction": ({"log.retention.ms": "0"}, "log.retention.ms"),
    "only another voter": ({"node.id": "3", "controller.quorum.voters": "1@a:9093"}, "node.id=3"),
    "Kafka's default mechanism": (
        {"listeners": "IN://:9092", "listener.security.protocol.map": "IN:SASL_PLAINTEXT"},
        "sasl.enabled.mechanisms: GSSAPI, which is the default, needs listener.name.in.gssapi.sasl.jaas.config with "
        "the keytab of this node; or use one of PLAIN, SCRAM-SHA-256",
    ),
    "an unknown mechanism": (
        {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "DIGEST-MD5"},
        "sasl.enabled.mechanisms: DIGEST-MD5 is not known: use PLAIN",
    ),
    "GSSAPI without a keytab": (
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": f"{KRB5} useTicketCache=true;",
        },
        "listener.name.sasl_plaintext.gssapi.sasl.jaas.config: GSSAPI needs the keytab of this node",
    ),
    "a rule for Kerberos names": (
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                f'{KRB5} useKeyTab=true keyTab="/k" principal="kafka/broker";'
            ),
            "sasl.kerberos.principal.to.local.rules": "RULE:[3:$1]",
        },
        "sasl.kerberos.principal.to.local.rules: 'RULE:[3:$1]': names have 1 or 2 components",
    ),
    "PLAIN without users": (
        {"listeners": "SASL_PLAINTEXT://:9092", "sasl.enabled.mechanisms": "PLAIN"},
        "listener.name.sasl_plaintext.plain.sasl.jaas.config: PLAIN needs users",
    ),
    "a login module of another mechanism": (
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.sasl_plaintext.scram-sha-256.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required;"
            ),
        },
        "PlainLoginModule cannot be used with SCRAM-SHA-256",
    ),
    "a listener nobody mapped": ({"listeners": "IN://:9092"}, "listener.security.protocol.map"),
    "a name twice": ({"listeners": "PLAINTEXT://:1,plaintext://:2"}, "names must be unique"),
    "a port twice": ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "ports must be unique"),
    "no listener": ({"listeners": ""}, "listeners"),
    "no listener for clients": (
        {"listeners": "CONTROLLER://:9093", "controller.listener.names": "CONTROLLER"},
        "no listener for clients",
    ),
    "everywhere advertised": ({"advertised.listeners": "PLAINTEXT://0.0.0.0:9092"}, "clients cannot connect"),
    "advertised and not there": ({"advertised.listeners": "SSL://host:9092"}, "SSL is not one of listeners"),
    "accepted and not there": ({"millbeck.inter.broker.listeners": "SSL"}, "listeners: SSL is not one of listeners"),
    "advertised twice": ({"advertised.listeners": "PLAINTEXT://a:1,PLAINTEXT://b:1"}, "is listed twice"),
    "brokers' listener not there": ({"inter.broker.listener.name": "IN"}, "inter.broker.listener.name"),
    "an early listener that is not there": ({"early.start.listeners": "IN"}, "early.start.listeners: IN"),
    "no network": ({"listener.name.in.millbeck.allowed.networks": "10.0.0.1/8"}, "millbeck.allowed.networks"),
    "an unknown key store": ({"listeners": "SSL://:9093", "ssl.keystore.type": "BKS"}, "ssl.keystore.type"),
    "a directory twice": ({"log.dirs": "/a,/a"}, "log.dirs"),
}


@pytest.mark.parametrize(("texts", "named"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_is_refused_by_name(texts: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        NodeConfig(texts)
    assert named in caught.value.message


def test_a_node_may_be_told_to_know_less() -> None:
    assert NodeConfig({}).supported_features["metadata.version"] == (7, 30)
    assert NodeConfig({"internal.metadata.version.max": "4.2-IV1"}).supported_features["metadata.version"] == (7, 29)
    with pytest.raises(InvalidConfig, match="unknown release"):
        NodeConfig({"internal.metadata.version.max": "9.9"})


def test_this_node_may_be_its_own_voter_or_one_of_several() -> None:
    assert NodeConfig({"node.id": "3", "controller.quorum.voters": "3@localhost:9093"}).quorum.voters
    several = {
        "controller.quorum.voters": "1@a:9093,2@b:9093",
        "listeners": "PLAINTEXT://:9092,CTL://:9093",
        "controller.listener.names": "CTL",
    }
    assert [voter.node_id for voter in NodeConfig(several).voters] == [1, 2]


ROLES = {
    "both": ({}, True, True),
    "a broker": (
        {
            "process.roles": "broker",
            "node.id": "4",
            "controller.quorum.voters": "1@a:9093",
            "controller.listener.names": "CTL",
        },
        True,
        False,
    ),
    "a controller": (
        {
            "process.roles": "controller",
            "controller.quorum.voters": "1@a:9093",
            "controller.listener.names": "CTL",
            "listeners": "CTL://:9093",
        },
        False,
        True,
    ),
}


@pytest.mark.parametrize(("texts", "is_broker", "is_controller"), ROLES.values(), ids=ROLES.keys())
def test_roles(texts: dict[str, str], is_broker: bool, is_controller: bool) -> None:
    config = NodeConfig(texts)
    assert (config.is_broker, config.is_controller) == (is_broker, is_controller)
    assert bool(config.client_addresses()) == is_broker
    assert config.controllers_protocol()[1] == "PLAINTEXT"


def test_the_brokers_own_listener() -> None:
    assert NodeConfig({}).inter_broker_listener == "PLAINTEXT"
    two = {
        "listeners": "EXTERNAL://:9092,INTERNAL://:9094",
        "listener.security.protocol.map": "EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT",
    }
    assert NodeConfig(two).inter_broker_listener == "EXTERNAL"
    assert NodeConfig(two | {"inter.broker.listener.name": "internal"}).inter_broker_listener == "INTERNAL"


def test_a_controllers_listener_needs_no_protocol_and_may_share_no_port() -> None:
    texts = {"listeners": "PLAINTEXT://:9092,CTL://:9093", "controller.listener.names": "CTL"}
    assert [address.name for address in NodeConfig(texts).client_addresses()] == ["PLAINTEXT"]
    assert [(each.name, each.protocol) for each in NodeConfig(texts).controller_addresses()] == [("CTL", "PLAINTEXT")]
    zero = {"listeners": "PLAINTEXT://:0,SSL://:0"}
    assert len(NodeConfig(zero).client_addresses()) == 2


def test_a_listeners_own_tls_settings_come_first() -> None:
    config = NodeConfig(
        {
            "listeners": "IN://:1,OUT://:2",
            "listener.security.protocol.map": "IN:SSL,OUT:SSL",
            "ssl.keystore.location": "/all.pem",
            "ssl.client.auth": "required",
            "listener.name.out.ssl.keystore.location": "/out.pem",
            "listener.name.out.ssl.key.password": "secret",
        }
    )
    assert config.ssl("IN").ssl_keystore_location == "/all.pem"
    assert config.ssl("IN").ssl_key_password is None
    outside = config.ssl("OUT")
    assert outside.ssl_keystore_location == "/out.pem"
    assert outside.ssl_client_auth == "required"
    assert outside.ssl_key_password is not None
    assert outside.ssl_key_password.reveal() == "secret"
    config.apply_dynamic({"listener.name.in.ssl.keystore.location": "/new.pem"}, {})
    assert config.ssl("IN").ssl_keystore_location == "/new.pem"
    assert config.ssl("OUT").ssl_keystore_location == "/out.pem"
    config.apply_dynamic({}, {})
    assert config.ssl("IN").ssl_keystore_location == "/all.pem"


@pytest.mark.parametrize(
    ("name", "is_default"),
    [
        ("org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", True),
        ("DefaultKafkaPrincipalBuilder", True),
        ("", True),
        ("OurPrincipals", False),
    ],
)
def test_kafkas_principal_builder_is_the_default_in_full_or_in_short(name: str, is_default: bool) -> None:
    config = NodeConfig({**SAMPLE, "principal.builder.class": name})
    expected = None if is_default else ("principal.builder.class", name)
    assert config.principal_builder("PLAINTEXT") == expected


def test_networks_of_a_listener_come_before_those_of_all() -> None:
    config = NodeConfig(
        {
            "listeners": "PLAINTEXT://:1,OUT://:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT",
            "listener.name.out.millbeck.allowed.networks": "10.0.0.0/8,127.0.0.1",
        }
    )
    assert config.allowed_networks("PLAINTEXT") is None
    outside = config.allowed_networks("OUT")
    assert outside is not None
    assert ("10.9.9.9" in outside, "11.0.0.1" in outside) == (True, False)
    config.apply_dynamic({"millbeck.allowed.networks": "::1"}, {})
    inside = config.allowed_networks("PLAINTEXT")
    assert inside is not None
    assert "::1" in inside
    config.apply_dynamic({"listener.name.out.millbeck.allowed.networks": ""}, {})
    assert config.allowed_networks("OUT") is None


def test_controllers_listeners_start_early_unless_others_are_named() -> None:
    texts = {"listeners": "PLAINTEXT://:1,CONTROLLER://:2", "controller.listener.names": "CONTROLLER"}
    assert NodeConfig(texts).early_listeners == ("CONTROLLER",)
    assert NodeConfig({**texts, "early.start.listeners": "plaintext"}).early_listeners == ("PLAINTEXT",)
    assert NodeConfig({**texts, "early.start.listeners": ""}).early_listeners == ()


def test_options_of_a_listener_are_described_when_they_are_set() -> None:
    config = NodeConfig({"listener.name.out.ssl.client.auth": "none", "super.users": "User:admin"})
    layers = ConfigLayers(static=config.texts, dynamic_broker={"listener.name.in.ssl.key.password": "x"})
    names = [declared.name for declared in config.described_options(layers)]
    assert names[-2:] == ["listener.name.in.ssl.key.password", "listener.name.out.ssl.client.auth"]
    assert len(names) == len(BROKER_OPTIONS) + 2


def test_dynamic_settings_come_before_the_file_and_go_again() -> None:
    config = NodeConfig({"max.connections": "10"})
    config.apply_dynamic({}, {"max.connections": "20"})
    assert config.socket.max_connections == 20
    config.apply_dynamic({"max.connections": "30"}, {"max.connections": "20"})
    assert config.socket.max_connections == 30
    config.apply_dynamic({}, {})
    assert config.socket.max_connections == 10


def sections_of(config: NodeConfig) -> dict[str, Section]:
    return {name: value for name, value in vars(config).items() if isinstance(value, Section)}


OTHER_TEXT = {
    "int": "700007",
    "short": "7",
    "long": "7",
    "string": "127.0.0.1:7",
    "list": "10.0.0.0",
    "double": "0.5",
    "boolean": "true",
    "password": "a",
}
READ_AT_START = ("listener", "metrics", "node")
"""Their dynamic options are refused (listeners, directories) or change nothing (reporters)."""


@pytest.mark.parametrize("name", sections_of(NodeConfig({})))
def test_every_section_with_an_option_that_can_change_follows(name: str) -> None:
    section = sections_of(NodeConfig({}))[name]
    dynamic = [declared for declared in section.options if declared.update is not Update.READ_ONLY]
    if name in READ_AT_START:
        assert dynamic
        return
    for declared in dynamic:
        config = NodeConfig({})
        text = OTHER_TEXT[declared.kind.name]
        config.apply_dynamic({}, {declared.name: text})
        assert getattr(sections_of(config)[name], declared.attribute) == declared.parse(text), declared.name


def test_what_cannot_change_does_not() -> None:
    config = NodeConfig({})
    before = config.socket
    config.apply_dynamic({"socket.request.max.bytes": "5", "nobody.knows": "1"}, {"connections.max.idle.ms": "5"})
    assert config.socket == before


def test_a_dynamic_value_that_cannot_be_used_is_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    config = NodeConfig({})
    with caplog.at_level(logging.ERROR):
        config.apply_dynamic({"max.connections": "many"}, {"max.connections.per.ip": "5"})
    assert config.socket.max_connections == 2**31 - 1
    assert config.socket.max_connections_per_ip == 5
    assert "max.connections" in caplog.text
