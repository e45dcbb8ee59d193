"""A consumer's settings, and which of them go together."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.consumer.config import ConsumerConfig, duration_ms
from millbeck.kernel.errors import InvalidConfig


def parse(**settings: Any) -> ConsumerConfig:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return ConsumerConfig.parse({"bootstrap.servers": "a:1"} | texts)


def test_defaults_are_those_of_the_java_client() -> None:
    config = parse(group_id="g")
    assert config.assignors == ("range", "cooperative-sticky")
    assert (config.session_timeout_ms, config.heartbeat_interval_ms) == (45_000, 3_000)
    assert (config.max_poll_records, config.max_poll_interval_ms) == (500, 300_000)
    assert (config.fetch_min_bytes, config.fetch_max_wait_ms) == (1, 500)
    assert (config.fetch_max_bytes, config.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert config.auto_offset_reset == "latest"
    assert config.enable_auto_commit
    assert config.check_crcs
    assert not config.reads_committed


DURATIONS = {
    "by_duration:PT1S": 1000,
    "by_duration:PT1.5S": 1500,
    "by_duration:P1D": 86_400_000,
    "by_duration:P2DT3H4M5S": (2 * 24 + 3) * 3_600_000 + 4 * 60_000 + 5000,
    "by_duration:pt10m": 600_000,
    "by_duration:P": None,
    "by_duration:PT": None,
    "by_duration:-PT1S": None,
    "by_duration:1h": None,
    "PT1S": None,
}


@pytest.mark.parametrize(("text", "expected"), DURATIONS.items())
def test_durations(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["earliest", "latest", "none", "by_duration:PT1H"])
def test_reset_policies(text: str) -> None:
    assert parse(auto_offset_reset=text).auto_offset_reset == text


@pytest.mark.parametrize("text", ["beginning", "by_duration", "by_duration:soon"])
def test_other_policies_are_refused(text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"auto\.offset\.reset"):
        parse(auto_offset_reset=text)


@pytest.mark.parametrize("java", ["org.apache.kafka.clients.consumer.StickyAssignor", "StickyAssignor"])
def test_strategies_may_be_named_as_java_classes(java: str) -> None:
    assert parse(partition_assignment_strategy=[java, "sticky", "roundrobin"]).assignors == ("sticky", "roundrobin")


@pytest.mark.parametrize("strategy", ["", ["range", "range"]])
def test_other_strategies_are_refused(strategy: Any) -> None:
    with pytest.raises(InvalidConfig, match=r"partition\.assignment\.strategy"):
        parse(partition_assignment_strategy=strategy)


def test_without_a_group_there_is_nothing_to_commit_for() -> None:
    assert not parse().enable_auto_commit
    with pytest.raises(InvalidConfig, match=r"group\.id"):
        parse(enable_auto_commit=True)


def test_contradictions() -> None:
    with pytest.raises(InvalidConfig, match=r"heartbeat\.interval\.ms"):
        parse(session_timeout_ms=6000, heartbeat_interval_ms=6000)
    with pytest.raises(InvalidConfig, match=r"group\.id is empty"):
        parse(group_id="")
    with pytest.raises(InvalidConfig, match=r"group\.protocol"):
        parse(group_protocol="streams")


def test_read_committed() -> None:
    assert parse(isolation_level="read_committed").reads_committed


def test_who_assigns() -> None:
    assert not parse(group_protocol="CLASSIC", group_id="g").is_broker_assigning
    assert parse(group_protocol="Consumer", group_id="g", group_remote_assignor="range").is_broker_assigning
