"""Profiles set what the program does not, and say what they set."""

from __future__ import annotations

import pytest

from millbeck.client import Producer
from millbeck.kernel.errors import InvalidConfig

HERE = {"bootstrap.servers": "h:1"}


@pytest.mark.parametrize(
    ("name", "linger_ms", "batch_size", "acks", "codec"),
    [
        ("low-latency", 0, 16_384, "1", "none"),
        ("throughput", 100, 1_048_576, "all", "lz4"),
        ("durable", 5, 16_384, "all", "none"),
    ],
)
def test_each_sets_its_pairs(name: str, linger_ms: int, batch_size: int, acks: str, codec: str) -> None:
    config = Producer(HERE, profile=name).config
    assert (config.linger_ms, config.batch_size, config.acks, config.compression_type) == (
        linger_ms,
        batch_size,
        acks,
        codec,
    )


def test_a_setting_of_the_program_s_own_wins_and_is_shown() -> None:
    producer = Producer(HERE, profile="throughput", linger_ms=20)
    assert producer.config.linger_ms == 20
    assert producer.profile is not None
    lines = producer.profile.explain().splitlines()
    assert lines[0].startswith("throughput: ")
    assert "20 (profile: 100)" in lines[2]
    assert "compression.type" in lines[-1]


def test_a_profile_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="fast does not exist; the profiles are low-latency, throughput, durable"):
        Producer(HERE, profile="fast")
