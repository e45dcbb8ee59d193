"""The stricter profile: what it changes, and everything that it does not allow."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import BROKER_OPTIONS, NodeConfig
from millbeck.server.config.hardened import HARDENED, changed_by_profile

PLAIN_JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_a="a";'
URL = "https://idp.example/jwks"
SECURE = {
    "millbeck.hardened": "true",
    "listeners": "OUT://:9092,LOCAL://localhost:9093",
    "listener.security.protocol.map": "OUT:SASL_SSL,LOCAL:PLAINTEXT",
    "sasl.enabled.mechanisms": "SCRAM-SHA-512,PLAIN,OAUTHBEARER",
    "listener.name.out.plain.sasl.jaas.config": PLAIN_JAAS,
    "sasl.oauthbearer.jwks.endpoint.url": URL,
    "sasl.oauthbearer.expected.issuer": "https://idp.example",
    "sasl.oauthbearer.expected.audience": "kafka",
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"{URL},http://idp.example/jwks,http://localhost/jwks",
}


def config(**changed: str | None) -> NodeConfig:
    merged = SECURE | changed
    return NodeConfig({name: text for name, text in merged.items() if text is not None})


def test_limits_replace_kafkas_defaults_and_not_what_is_set() -> None:
    hardened = config(**{"max.connections": "50000"})
    assert hardened.socket.max_connections == 50_000
    assert hardened.socket.max_connections_per_ip == 1000
    assert hardened.connection_rate_max(None) == 200
    assert hardened.classic_groups.size_max == 1000
    changed = dict.fromkeys(name for name, _, _ in changed_by_profile({"max.connections": "50000"}))
    assert set(changed) == set(HARDENED) - {"max.connections"}


def test_every_limit_is_stricter_than_kafkas() -> None:
    for name, text, default in changed_by_profile({}):
        value, loose = int(text), int(default)
        assert BROKER_OPTIONS.parse(name, text) == value
        assert loose in (-1, 0) or value < loose, name


def test_without_the_profile_nothing_changes() -> None:
    loose = NodeConfig({"listeners": "PLAINTEXT://:9092"})
    assert loose.socket.max_connections == 2_147_483_647


REFUSED: dict[str, tuple[dict[str, str | None], str]] = {
    "plain text in public": (
        {"listener.security.protocol.map": "OUT:PLAINTEXT,LOCAL:PLAINTEXT"},
        "listeners: OUT is PLAINTEXT, and not on loopback",
    ),
    "SASL without TLS in public": (
        {"listener.security.protocol.map": "OUT:SASL_PLAINTEXT,LOCAL:PLAINTEXT"},
        "listeners: OUT is SASL_PLAINTEXT, and not on loopback",
    ),
    "clients without certificates": (
        {"listener.security.protocol.map": "OUT:SSL,LOCAL:PLAINTEXT"},
        "listener.name.out.ssl.client.auth: must be required",
    ),
    "certificates that may be left out": (
        {"listener.security.protocol.map": "OUT:SSL,LOCAL:PLAINTEXT", "ssl.client.auth": "requested"},
        "listener.name.out.ssl.client.auth: must be required",
    ),
    "PLAIN without TLS, on loopback too": (
        {
            "listener.security.protocol.map": "OUT:SASL_SSL,LOCAL:SASL_PLAINTEXT",
            "listener.name.local.plain.sasl.jaas.config": PLAIN_JAAS,
        },
        "listener.name.local.sasl.enabled.mechanisms: PLAIN sends passwords as they are",
    ),
    "other nodes by any name": (
        {"ssl.endpoint.identification.algorithm": ""},
        "listener.name.out.ssl.endpoint.identification.algorithm: must be https",
    ),
    "controllers by any name": (
        {
            "listener.security.protocol.map": "OUT:SASL_SSL,LOCAL:PLAINTEXT,CTL:SSL",
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.bootstrap.servers": "c:9093",
            "controller.listener.names": "CTL",
            "inter.broker.listener.name": "LOCAL",
            "listener.name.ctl.ssl.endpoint.identification.algorithm": "",
        },
        "listener.name.ctl.ssl.endpoint.identification.algorithm: must be https",
    ),
    "any issuer": ({"sasl.oauthbearer.expected.issuer": None}, "expected.issuer must be set"),
    "any audience": ({"sasl.oauthbearer.expected.audience": None}, "expected.audience must be set"),
    "keys over http": ({"sasl.oauthbearer.jwks.endpoint.url": "http://idp.example/jwks"}, "must be an https: URL"),
    "unsecured tokens": (
        {
            "listeners": "LOCAL://localhost:9093",
            "listener.security.protocol.map": "LOCAL:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": None,
        },
        "unsecured tokens are not allowed",
    ),
    "everyone where there is no ACL": ({"allow.everyone.if.no.acl.found": "true"}, "must be false"),
    "an authorizer that only says what it would do": ({"millbeck.authorizer.dry.run": "true"}, "must be false"),
    "controllers without TLS": (
        {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.bootstrap.servers": "c:9093",
            "controller.listener.names": "CTL",
            "inter.broker.listener.name": "LOCAL",
        },
        "CTL is PLAINTEXT: connections to controllers must be encrypted",
    ),
}


@pytest.mark.parametrize(("changed", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_allowed_stops_the_start(changed: dict[str, str | None], reason: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        config(**changed)
    assert reason in str(caught.value)
    assert "millbeck.hardened" in str(caught.value)
    loose = {**SECURE, **changed, "millbeck.hardened": None}
    NodeConfig({name: text for name, text in loose.items() if text is not None})


def test_everything_that_is_not_allowed_is_told_at_once() -> None:
    with pytest.raises(InvalidConfig) as caught:
        config(
            **{
                "listener.security.protocol.map": "OUT:SASL_PLAINTEXT,LOCAL:PLAINTEXT",
                "sasl.oauthbearer.expected.issuer": None,
                "allow.everyone.if.no.acl.found": "true",
            }
        )
    told = str(caught.value).splitlines()
    assert len(told) == 5, told


def test_a_certificate_for_every_client_is_enough() -> None:
    mutual = {"listener.security.protocol.map": "OUT:SSL,LOCAL:PLAINTEXT", "ssl.client.auth": "required"}
    assert config(**mutual).ssl("OUT").ssl_client_auth == "required"


def test_a_dynamic_config_does_not_get_around_it() -> None:
    node = config(
        **{
            "listener.security.protocol.map": "OUT:SASL_SSL,LOCAL:SASL_PLAINTEXT",
            "listener.name.local.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        }
    )
    node.apply_dynamic(
        {
            "listener.name.local.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.local.plain.sasl.jaas.config": PLAIN_JAAS,
        },
        {},
    )
    with pytest.raises(InvalidConfig, match="PLAIN sends passwords"):
        node.sasl("LOCAL")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"listener.name.out.ssl.client.auth": "none"}, "listener.name.out.ssl.client.auth: must be required"),
        (
            {"listener.name.out.ssl.endpoint.identification.algorithm": ""},
            "listener.name.out.ssl.endpoint.identification.algorithm: must be https",
        ),
    ],
)
def test_dynamic_tls_settings_do_not_get_around_it(changed: dict[str, str], reason: str) -> None:
    node = config(
        **{"listener.security.protocol.map": "OUT:SSL,LOCAL:PLAINTEXT", "listener.name.out.ssl.client.auth": "required"}
    )
    with pytest.raises(InvalidConfig, match=reason):
        node.ssl("OUT", changed)
    node.apply_dynamic(changed, {})
    with pytest.raises(InvalidConfig, match=reason):
        node.ssl("OUT")
    assert node.ssl("OUT", {}).ssl_client_auth == "required"
