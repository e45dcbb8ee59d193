"""Confluent's keys and variables, and what is passed on to the clients."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.registry.rest.config import access_settings, instance_settings, parse, settings_of_environment


def test_keys_of_the_store_are_settings_of_the_clients() -> None:
    config, client, _, unknown = parse(
        {
            "listeners": "http://0.0.0.0:8085",
            "kafkastore.bootstrap.servers": "PLAINTEXT://b1:9092,SSL://b2:9093",
            "kafkastore.security.protocol": "SSL",
            "kafkastore.topic": "schemas",
            "master.eligibility": "false",
            "schema.compatibility.level": "full",
            "resource.extension.class": "x",
        }
    )
    settings = instance_settings(config, client)
    assert config.address == ("0.0.0.0", 8085)
    assert settings.client["bootstrap.servers"] == ["b1:9092", "b2:9093"]
    assert settings.client["security.protocol"] == "SSL"
    assert (settings.topic, settings.compatibility, config.leader_eligibility) == ("schemas", "FULL", False)
    assert unknown == ["resource.extension.class"]


def test_variables_of_confluents_images() -> None:
    found = settings_of_environment(
        {"SCHEMA_REGISTRY_KAFKASTORE_TOPIC": "t", "SCHEMA_REGISTRY_A__B___C": "x", "PATH": "y"}
    )
    assert found == {"kafkastore.topic": "t", "a_b-c": "x"}


@pytest.mark.parametrize("listeners", ["ftp://a:1", "a:1", "http://a", "http://a:x", "http://a:1,http://b:2"])
def test_a_listener_is_one_address(listeners: str) -> None:
    config = parse({"listeners": listeners}).config
    with pytest.raises(InvalidConfig):
        _ = config.address


ACCESS = {
    "a method without users": ({"authentication.method": "BASIC"}, "millbeck.users.file"),
    "users that cannot authenticate": ({"millbeck.users.file": "users.toml"}, "authentication.method=BASIC"),
    "certificates without TLS": ({"ssl.client.authentication": "REQUIRED"}, "https"),
}


@pytest.mark.parametrize(("settings", "text"), ACCESS.values(), ids=ACCESS.keys())
def test_settings_of_access_fit_together(settings: dict[str, str], text: str) -> None:
    with pytest.raises(InvalidConfig, match=text):
        access_settings(parse(settings).config)


def test_settings_of_tls_are_the_listeners() -> None:
    found = parse({"listeners": "https://a:1", "ssl.keystore.location": "node.pem", "kafkastore.ssl.key.password": "x"})
    assert (found.tls.ssl_keystore_location, found.unknown, found.config.scheme) == ("node.pem", [], "https")
    with pytest.raises(InvalidConfig, match=r"inter\.instance\.protocol"):
        _ = parse({"inter.instance.protocol": "https"}).config.address
    with pytest.raises(InvalidConfig, match="NONE, BASIC, BEARER"):
        parse({"authentication.method": "DIGEST"})
