"""How a node connects to other nodes: what its configuration must say, and what is refused with the remedy."""

from __future__ import annotations

import pytest

from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.security.principal import ANONYMOUS, Principal
from millbeck.server.config import NodeConfig
from millbeck.server.network.node_tls import NodeTls
from millbeck.server.network.peer_security import NodePeers

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
NODE = 'username="node" password="node-secret"'
FINE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "a:9093,b:9093",
    "controller.listener.names": "CTL",
    "listeners": "IN://:9092,CTL://:9093",
    "listener.security.protocol.map": "IN:SASL_PLAINTEXT,CTL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "IN",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "listener.name.in.plain.sasl.jaas.config": f'{PLAIN} user_a="a";',
    "listener.name.in.scram-sha-512.sasl.jaas.config": f"{SCRAM} {NODE};",
    "listener.name.ctl.plain.sasl.jaas.config": f'{PLAIN} {NODE} user_node="node-secret";',
}
ONLY_BROKER = {
    "process.roles": "broker",
    "listeners": "IN://:9092",
    # It logs in to controllers, and nobody logs in to it there.
    "listener.name.ctl.plain.sasl.jaas.config": f"{PLAIN} {NODE};",
}


def config(changes: dict[str, str | None]) -> NodeConfig:
    merged = FINE | changes
    return NodeConfig({name: text for name, text in merged.items() if text is not None})


def peers(changes: dict[str, str | None]) -> NodePeers:
    node = config(changes)
    environment = real_environment()
    return NodePeers(environment, node, NodeTls(node, environment))


def test_a_node_knows_how_and_as_whom_it_logs_in() -> None:
    security = peers({})
    assert security.brokers.sasl is not None
    assert (security.brokers.sasl.mechanism, security.brokers.sasl.who) == ("SCRAM-SHA-512", "user node")
    assert security.controllers.sasl is not None
    assert security.controllers.sasl.mechanism == "PLAIN"
    assert security.controllers.principal == Principal("User", "node")
    assert security.controllers.tls is None


def test_a_broker_needs_no_users_of_the_controllers_listener() -> None:
    assert peers(dict(ONLY_BROKER)).controllers.principal == Principal("User", "node")


OAUTH: dict[str, str | None] = {
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.oauthbearer.jwks.endpoint.url": "https://idp/jwks",
    "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "https://idp/jwks,https://idp/token",
    "listener.name.in.oauthbearer.sasl.oauthbearer.client.credentials.client.id": "node",
    "listener.name.in.oauthbearer.sasl.oauthbearer.client.credentials.client.secret": "s3cret",
    "listener.name.in.scram-sha-512.sasl.jaas.config": None,
}


def test_a_node_with_tokens_is_nobody_before_the_first_one() -> None:
    security = peers(OAUTH).brokers
    assert security.sasl is not None
    assert (security.sasl.mechanism, security.sasl.who, security.principal) == ("OAUTHBEARER", "client node", ANONYMOUS)


def test_without_sasl_nodes_are_anonymous() -> None:
    security = peers({"listener.security.protocol.map": "IN:PLAINTEXT,CTL:PLAINTEXT"})
    assert (security.brokers.sasl, security.brokers.principal) == (None, ANONYMOUS)
    assert (security.controllers.sasl, security.controllers.principal) == (None, ANONYMOUS)


def test_a_node_that_nobody_joins_needs_no_credentials_for_others() -> None:
    alone = NodeConfig(
        {
            "listeners": "SASL_PLAINTEXT://:9092",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        }
    )
    assert alone.brokers_protocol() == ("SASL_PLAINTEXT", "SASL_PLAINTEXT")


REFUSED: dict[str, tuple[dict[str, str | None], str]] = {
    "SCRAM between controllers": (
        {"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"},
        "sasl.mechanism.controller.protocol: SCRAM-SHA-512 cannot be used between controllers: the credentials are in "
        "the metadata log",
    ),
    "Kafka's default": (
        {"sasl.mechanism.inter.broker.protocol": None},
        "sasl.mechanism.inter.broker.protocol: GSSAPI, which is the default, needs listener.name.",
    ),
    "Kafka's default for controllers": (
        {"sasl.mechanism.controller.protocol": None},
        "sasl.mechanism.controller.protocol: GSSAPI, which is the default, needs listener.name.",
    ),
    "no credentials": (
        {"listener.name.in.scram-sha-512.sasl.jaas.config": None},
        "listener.name.in.scram-sha-512.sasl.jaas.config: username and password must be set",
    ),
    "no password": (
        {"listener.name.ctl.plain.sasl.jaas.config": f'{PLAIN} username="node" user_node="node-secret";'},
        "listener.name.ctl.plain.sasl.jaas.config: username and password must be set",
    ),
    "no list of addresses for tokens": (
        {**OAUTH, "org.apache.kafka.sasl.oauthbearer.allowed.urls": "https://idp/jwks"},
        "https://idp/token for configuration sasl.oauthbearer.token.endpoint.url: The URL cannot be accessed",
    ),
    "nowhere to get tokens": (
        {**OAUTH, "sasl.oauthbearer.token.endpoint.url": None},
        "sasl.oauthbearer.token.endpoint.url is not set",
    ),
    "a mechanism others cannot use": (
        {"listener.name.in.sasl.enabled.mechanisms": "PLAIN"},
        "sasl.mechanism.inter.broker.protocol: SCRAM-SHA-512 must be one of sasl.enabled.mechanisms of listener IN",
    ),
    "a mechanism other controllers cannot use": (
        {"listener.name.ctl.sasl.enabled.mechanisms": "SCRAM-SHA-512"},
        "sasl.mechanism.controller.protocol: PLAIN must be one of sasl.enabled.mechanisms of listener CTL",
    ),
    "listener and protocol": (
        {"security.inter.broker.protocol": "SASL_PLAINTEXT"},
        "inter.broker.listener.name, security.inter.broker.protocol: only one of them may be set",
    ),
    "a protocol without a listener": (
        {"security.inter.broker.protocol": "SASL_SSL", "inter.broker.listener.name": None},
        "security.inter.broker.protocol: no listener is called SASL_SSL: name the listener for connections between "
        "brokers with inter.broker.listener.name, one of IN",
    ),
}


@pytest.mark.parametrize(("changes", "text"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_the_setting_and_the_remedy(changes: dict[str, str | None], text: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        config(changes)
    assert text in str(caught.value)
    assert "node-secret" not in str(caught.value)


def test_a_broker_alone_may_log_in_to_controllers_by_scram() -> None:
    changes: dict[str, str | None] = {
        **ONLY_BROKER,
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
        "listener.name.ctl.scram-sha-512.sasl.jaas.config": f"{SCRAM} {NODE};",
    }
    sasl = peers(changes).controllers.sasl
    assert sasl is not None
    assert sasl.mechanism == "SCRAM-SHA-512"


def test_the_protocol_between_brokers_chooses_the_listener_of_its_name() -> None:
    settings: dict[str, str | None] = {
        "listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9094,CTL://:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CTL:PLAINTEXT",
        "security.inter.broker.protocol": "SASL_PLAINTEXT",
        "inter.broker.listener.name": None,
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{PLAIN} user_a="a";',
        "listener.name.sasl_plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM} {NODE};",
    }
    assert config(settings).brokers_protocol() == ("SASL_PLAINTEXT", "SASL_PLAINTEXT")
