"""Settings under Kafka's names: typed, checked, and helpful when a name is wrong."""

from __future__ import annotations

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.config import ClientConfig
from millbeck.client.consumer import ConsumerConfig
from millbeck.client.foreign_keys import ASKS_FOR_NOTHING, KNOWN, LIBRDKAFKA_SYNONYMS
from millbeck.client.producer import ProducerConfig
from millbeck.client.share import ShareConsumerConfig
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import Scope

BOOTSTRAP = {"bootstrap.servers": "a:1,b:2"}


def test_defaults() -> None:
    config = AdminConfig.parse(BOOTSTRAP)
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert config.client_id == "millbeck"
    assert config.request_timeout_ms == 30_000
    assert config.metadata_max_age_ms == 300_000
    assert config.security_protocol == "PLAINTEXT"


def test_python_values_are_understood() -> None:
    config = ProducerConfig.parse(
        {"bootstrap.servers": ["a:1", "b:2"], "linger.ms": 7, "enable.idempotence": False, "client.rack": None}
    )
    assert config.bootstrap_servers == ("a:1", "b:2")
    assert config.linger_ms == 7
    assert config.enable_idempotence is False
    assert config.client_rack == ""


def test_a_list_holds_texts() -> None:
    with pytest.raises(InvalidConfig, match=r"bootstrap\.servers"):
        AdminConfig.parse({"bootstrap.servers": [1]})  # type: ignore[list-item]


def test_bootstrap_servers_must_be_set() -> None:
    with pytest.raises(InvalidConfig, match=r"bootstrap\.servers"):
        AdminConfig.parse({})


TYPOS = {"bootstrap.server": "bootstrap.servers", "linger_ms": "linger.ms", "request.timout.ms": "request.timeout.ms"}


@pytest.mark.parametrize(("typo", "meant"), TYPOS.items())
def test_an_unknown_key_is_an_error_that_names_the_nearest(typo: str, meant: str) -> None:
    with pytest.raises(InvalidConfig, match=f"{typo}, did you mean {meant}"):
        ProducerConfig.parse(BOOTSTRAP | {typo: "1"})


def test_an_unknown_key_like_no_other_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match=r"Unknown configuration zzzzzz$"):
        AdminConfig.parse(BOOTSTRAP | {"zzzzzz": "1"})


def test_a_setting_of_another_kind_of_client_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    AdminConfig.parse(BOOTSTRAP | {"linger.ms": "1"})
    assert "configuration linger.ms has no effect on this client, a admin" in caplog.text


def test_librdkafka_s_word_for_a_setting_means_that_setting() -> None:
    assert ProducerConfig.parse(BOOTSTRAP | {"queue.buffering.max.ms": "50"}).linger_ms == 50
    with pytest.raises(InvalidConfig, match=r"queue\.buffering\.max\.ms and linger\.ms are names of the same setting"):
        ProducerConfig.parse(BOOTSTRAP | {"queue.buffering.max.ms": "50", "linger.ms": "5"})


def test_a_setting_that_is_not_available_is_refused_unless_it_asks_for_what_happens_anyway() -> None:
    for name, values in ASKS_FOR_NOTHING.items():
        for value in values:
            ConsumerConfig.parse(BOOTSTRAP | {name: value})
    for name in ("sasl.kerberos.kinit.cmd", "statistics.interval.ms", "client.dns.lookup"):
        with pytest.raises(InvalidConfig, match=rf"{name}=.* is not available here: "):
            ConsumerConfig.parse(BOOTSTRAP | {name: "true"})


@pytest.mark.parametrize("section", [ProducerConfig, ConsumerConfig, AdminConfig, ShareConsumerConfig])
def test_every_setting_that_another_client_has_is_honoured_or_refused(section: type[ClientConfig]) -> None:
    declared = {known.name for known in section.options}
    elsewhere = {
        known.name for other in (ProducerConfig, ConsumerConfig, ShareConsumerConfig) for known in other.options
    }
    for name in sorted(KNOWN - declared - elsewhere - set(LIBRDKAFKA_SYNONYMS)):
        with pytest.raises(InvalidConfig, match=rf"^{name}="):
            section.parse(BOOTSTRAP | {name: "something-else"})


@pytest.mark.parametrize(
    ("name", "text"),
    [("request.timeout.ms", "0"), ("security.protocol", "TLS"), ("retry.backoff.ms", "soon")],
)
def test_a_bad_value_names_its_setting(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name.replace(".", r"\.")):
        AdminConfig.parse(BOOTSTRAP | {name: text})


@pytest.mark.parametrize("section", [AdminConfig, ProducerConfig, ConsumerConfig])
def test_every_option_is_a_client_option(section: type[ClientConfig]) -> None:
    assert {option.scope for option in section.options} == {Scope.CLIENT}


def test_secrets_do_not_show() -> None:
    config = AdminConfig.parse(BOOTSTRAP | {"ssl.key.password": "hush"})
    assert "hush" not in repr(config)
