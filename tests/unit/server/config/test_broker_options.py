"""The set of all broker options, and the names that are about one listener."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import ConfigLayers, ConfigSource, Scope, Update, resolve_option
from millbeck.server.config.broker_options import BROKER_OPTIONS, GROUP_OPTIONS, listener_key, without_listener

LOCATION = "ssl.keystore.location"
OUTSIDE_LOCATION = "listener.name.outside.ssl.keystore.location"


def test_every_option_is_the_brokers_or_a_groups() -> None:
    assert {declared.scope for declared in BROKER_OPTIONS} == {Scope.BROKER}
    assert {declared.scope for declared in GROUP_OPTIONS} == {Scope.GROUP}


def test_a_listeners_option_is_like_the_one_it_ends_with() -> None:
    assert listener_key("OUTSIDE", LOCATION) == OUTSIDE_LOCATION
    assert OUTSIDE_LOCATION in BROKER_OPTIONS
    declared = BROKER_OPTIONS[OUTSIDE_LOCATION]
    assert declared.name == OUTSIDE_LOCATION
    assert declared.update is Update.PER_BROKER
    assert declared.kind is BROKER_OPTIONS[LOCATION].kind
    assert OUTSIDE_LOCATION not in [each.name for each in BROKER_OPTIONS]


def test_a_listeners_option_has_the_plain_one_as_its_synonym() -> None:
    layers = ConfigLayers(static={LOCATION: "/all.pem", OUTSIDE_LOCATION: "/outside.pem"})
    resolved = resolve_option(BROKER_OPTIONS[OUTSIDE_LOCATION], layers)
    assert resolved.value == "/outside.pem"
    assert [(link.name, link.source) for link in resolved.synonyms] == [
        (OUTSIDE_LOCATION, ConfigSource.STATIC_BROKER_CONFIG),
        (LOCATION, ConfigSource.STATIC_BROKER_CONFIG),
    ]


def test_a_listeners_password_is_a_secret_too() -> None:
    assert BROKER_OPTIONS["listener.name.outside.ssl.key.password"].sensitive


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("listener.name.a.ssl.client.auth", "ssl.client.auth"),
        ("listener.name.a.sasl.enabled.mechanisms", "sasl.enabled.mechanisms"),
        ("listener.name.a.scram-sha-256.sasl.jaas.config", "sasl.jaas.config"),
        ("listener.name.a.plain.sasl.server.callback.handler.class", "sasl.server.callback.handler.class"),
        ("ssl.client.auth", "ssl.client.auth"),
    ],
)
def test_the_option_behind_a_listeners_name(name: str, base: str) -> None:
    assert without_listener(name) == base
    assert name in BROKER_OPTIONS


@pytest.mark.parametrize(
    "name",
    [
        "listener.name.a.log.dirs",
        "listener.name.a.max.connections.per.ip",
        "listener.name.ssl.client.auth",
        "listener.name.a.b.c.sasl.jaas.config",
        "listener.name.a.",
    ],
)
def test_other_options_cannot_be_set_for_one_listener(name: str) -> None:
    assert without_listener(name) == name
    assert name not in BROKER_OPTIONS
    with pytest.raises(InvalidConfig, match="Unknown configuration"):
        BROKER_OPTIONS.parse(name, "1")


def test_a_bad_value_names_the_listeners_option() -> None:
    with pytest.raises(InvalidConfig, match=r"listener\.name\.outside\.ssl\.client\.auth"):
        BROKER_OPTIONS.parse("listener.name.outside.ssl.client.auth", "perhaps")
