"""A worker's settings."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.pipeline.connect.worker.config import parse, settings_of_environment


def test_settings_go_to_whom_they_are_for() -> None:
    parsed = parse(
        {
            "bootstrap.servers": "PLAINTEXT://a:9092,b:9092",
            "group.id": "team",
            "security.protocol": "PLAINTEXT",
            "producer.linger.ms": "5",
            "consumer.isolation.level": "read_uncommitted",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter.schemas.enable": "false",
            "spark.executor.memory": "2g",
            "config.providers": "env",
            "plugin.path": "/usr/share/java",
            "no.such.key": "1",
        }
    )
    assert parsed.config.group_id == "team"
    assert parsed.client == {"bootstrap.servers": "a:9092,b:9092", "security.protocol": "PLAINTEXT"}
    assert parsed.producer == {"linger.ms": "5"}
    assert parsed.consumer == {"isolation.level": "read_uncommitted"}
    assert parsed.converters["value.converter.schemas.enable"] == "false"
    assert parsed.default_converters["key.converter"].endswith("StringConverter")
    assert parsed.default_converters["value.converter"].endswith("JsonConverter")
    assert parsed.spark == {"spark.executor.memory": "2g"}
    assert parsed.providers == {"config.providers": "env"}
    assert parsed.unknown == ("no.such.key",)


def test_variables_of_the_environment_are_settings() -> None:
    given = {"CONNECT_GROUP_ID": "a", "CONNECT_URL": "http://x", "CONNECT_REST_ADVERTISED_HOST_NAME": "h", "OTHER": "b"}
    assert settings_of_environment(given) == {"group.id": "a", "rest.advertised.host.name": "h"}


LISTENERS = {
    "port alone": ("http://:8083", ("", 8083)),
    "host": ("HTTP://10.0.0.1:80", ("10.0.0.1", 80)),
    "no scheme": ("localhost:8083", ("localhost", 8083)),
}


@pytest.mark.parametrize(("text", "address"), LISTENERS.values(), ids=LISTENERS.keys())
def test_the_address_of_a_listener(text: str, address: tuple[str, int]) -> None:
    assert parse({"listeners": text}).config.address == address


@pytest.mark.parametrize("text", ["https://a:1", "http://a", "http://a:1,http://b:2", "http://a:x"])
def test_a_listener_that_cannot_be_used(text: str) -> None:
    with pytest.raises(InvalidConfig, match="listeners"):
        assert parse({"listeners": text}).config.address


def test_a_wrong_client_setting_is_an_error_at_start() -> None:
    with pytest.raises(InvalidConfig, match=r"acks"):
        parse({"producer.acks": "7"})
