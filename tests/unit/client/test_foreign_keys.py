"""Which keys other clients know."""

from __future__ import annotations

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.consumer import ConsumerConfig
from millbeck.client.foreign_keys import LIBRDKAFKA_SYNONYMS, is_known_elsewhere, java_settings, reason_of
from millbeck.client.producer import ProducerConfig
from millbeck.client.share.config import ShareConsumerConfig

OUR_OWN = {"decompressed.max.bytes"}
"""Settings no other client has."""


@pytest.mark.parametrize("name", ["sasl.jaas.config", "key.serializer", "socket.keepalive.enable", "partitioner.class"])
def test_known(name: str) -> None:
    assert is_known_elsewhere(name)


@pytest.mark.parametrize("name", ["", "linger_ms", "bootstrap.server"])
def test_unknown(name: str) -> None:
    assert not is_known_elsewhere(name)


@pytest.mark.parametrize("section", [AdminConfig, ProducerConfig, ConsumerConfig])
def test_our_names_are_those_other_clients_use(section: type[AdminConfig]) -> None:
    names = {option.name for option in section.options}
    assert {name for name in names if not is_known_elsewhere(name)} <= OUR_OWN


def test_every_setting_of_java_is_here_or_refused_for_a_reason() -> None:
    sections = (AdminConfig, ProducerConfig, ConsumerConfig, ShareConsumerConfig)
    ours = {option.name for section in sections for option in section.options}
    refused = [name for name in java_settings() if name not in ours]
    assert len(refused) < 40
    assert [name for name in refused if reason_of(name) == reason_of("no.such.setting")] == []


def test_synonyms_lead_to_settings_we_have() -> None:
    ours = {option.name for section in (ProducerConfig, ConsumerConfig) for option in section.options}
    assert all(is_known_elsewhere(name) for name in LIBRDKAFKA_SYNONYMS)
    assert set(LIBRDKAFKA_SYNONYMS.values()) <= ours
