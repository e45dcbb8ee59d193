"""Broker-wide defaults of topic options: derived from those, and on their way to every topic."""

from __future__ import annotations

import pytest

from millbeck.kernel.options import ConfigLayers, ConfigSource, Importance, Update, resolve_option
from millbeck.kernel.units import HOUR_MS, MINUTE_MS
from millbeck.server.config.broker_options import BROKER_OPTIONS
from millbeck.server.config.log_defaults import LogDefaultOptions
from millbeck.storage.config import TOPIC_OPTIONS, LogConfig

DEFAULTS = BROKER_OPTIONS.default_texts()
OTHER_TEXTS = {"boolean": "true", "string": "gzip", "list": "compact", "double": "0.25", "int": "5", "long": "5"}
SINGLE = {
    topic.name: topic.synonyms[0].name for topic in TOPIC_OPTIONS if len(topic.synonyms) == 1 and not topic.internal
}


def config_of(**layers: dict[str, str]) -> LogConfig:
    return LogConfig.resolve(ConfigLayers(defaults=DEFAULTS, **layers))


def test_every_synonym_is_a_broker_option() -> None:
    names = [synonym.name for topic in TOPIC_OPTIONS for synonym in topic.synonyms]
    assert [name for name in names if name not in BROKER_OPTIONS] == []


def test_a_derived_option_is_like_its_topic_option() -> None:
    derived = BROKER_OPTIONS["log.segment.bytes"]
    assert derived in LogDefaultOptions.options
    assert derived.default == LogConfig.segment_bytes.default
    assert derived.valid is LogConfig.segment_bytes.valid
    assert derived.update is Update.CLUSTER_WIDE
    assert derived.importance is Importance.HIGH
    assert "segment.bytes" in derived.doc


def test_brokers_defaults_are_the_topics_own() -> None:
    assert config_of() == LogConfig.of()


@pytest.mark.parametrize(("topic_name", "broker_name"), SINGLE.items(), ids=SINGLE.values())
def test_a_broker_wide_default_reaches_topics(topic_name: str, broker_name: str) -> None:
    topic = TOPIC_OPTIONS[topic_name]
    text = "LogAppendTime" if topic_name == "message.timestamp.type" else OTHER_TEXTS[topic.kind.name]
    assert topic.default_text != text
    expected = topic.convert(text)
    for layer in ("static", "dynamic_default", "dynamic_broker"):
        assert getattr(config_of(**{layer: {broker_name: text}}), topic.attribute) == expected
    own = topic.default_text or ""
    overridden = config_of(dynamic_broker={broker_name: text}, overrides={topic_name: own})
    assert getattr(overridden, topic.attribute) == topic.default


UNITS = {
    "hours": ({"log.retention.hours": "3"}, 3 * HOUR_MS),
    "minutes over hours": ({"log.retention.hours": "3", "log.retention.minutes": "7"}, 7 * MINUTE_MS),
    "ms over minutes over hours": (
        {"log.retention.hours": "3", "log.retention.minutes": "7", "log.retention.ms": "11"},
        11,
    ),
    "minutes forever": ({"log.retention.minutes": "-1"}, -1),
}


@pytest.mark.parametrize(("texts", "expected"), UNITS.values(), ids=UNITS.keys())
def test_retention_ms_over_minutes_over_hours(texts: dict[str, str], expected: int) -> None:
    assert config_of(static=texts).retention_ms == expected
    assert config_of(static=texts, dynamic_default={"log.retention.ms": "13"}).retention_ms == 13


def test_roll_ms_over_hours() -> None:
    hours = {"log.roll.hours": "2", "log.roll.jitter.hours": "1"}
    config = config_of(static=hours)
    assert (config.segment_ms, config.segment_jitter_ms) == (2 * HOUR_MS, 1 * HOUR_MS)
    config = config_of(static=hours | {"log.roll.ms": "5", "log.roll.jitter.ms": "3"})
    assert (config.segment_ms, config.segment_jitter_ms) == (5, 3)


def test_flush_ms_falls_back_to_how_often_logs_are_looked_at() -> None:
    scheduler = {"log.flush.scheduler.interval.ms": "2000"}
    assert config_of(static=scheduler).flush_ms == 2000
    assert config_of(static=scheduler | {"log.flush.interval.ms": "500"}).flush_ms == 500
    assert config_of(static=scheduler, dynamic_default={"log.flush.interval.ms": "300"}).flush_ms == 300


def test_only_the_strongest_of_several_can_change_and_only_the_weakest_has_a_default() -> None:
    names = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
    assert [BROKER_OPTIONS[name].update for name in names] == [
        Update.CLUSTER_WIDE,
        Update.READ_ONLY,
        Update.READ_ONLY,
    ]
    assert [BROKER_OPTIONS[name].default for name in names] == [None, None, 168]


def test_a_topics_synonyms_go_back_to_the_brokers_default() -> None:
    layers = ConfigLayers(
        overrides={"max.message.bytes": "3"},
        dynamic_default={"message.max.bytes": "2"},
        static={"message.max.bytes": "1"},
        defaults=DEFAULTS,
    )
    resolved = resolve_option(LogConfig.max_message_bytes, layers)
    assert [(link.name, link.text, link.source) for link in resolved.synonyms] == [
        ("max.message.bytes", "3", ConfigSource.DYNAMIC_TOPIC_CONFIG),
        ("message.max.bytes", "2", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ("message.max.bytes", "1", ConfigSource.STATIC_BROKER_CONFIG),
        ("message.max.bytes", "1048588", ConfigSource.DEFAULT_CONFIG),
    ]
