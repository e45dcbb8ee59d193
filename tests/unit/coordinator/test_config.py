from __future__ import annotations

import pytest

from millbeck.coordinator.config import BROKER_SECTIONS, OffsetOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import OptionSet

OPTIONS = OptionSet(*BROKER_SECTIONS)

DEFAULTS = {
    "offsets.topic.num.partitions": 50,
    "offsets.topic.replication.factor": 3,
    "offsets.topic.segment.bytes": 104857600,
    "offsets.topic.compression.codec": 0,
    "offsets.load.buffer.size": 5242880,
    "offsets.commit.timeout.ms": 5000,
    "offset.metadata.max.bytes": 4096,
    "offsets.retention.minutes": 10080,
    "offsets.retention.check.interval.ms": 600000,
    "group.min.session.timeout.ms": 6000,
    "group.max.session.timeout.ms": 1800000,
    "group.initial.rebalance.delay.ms": 3000,
    "group.max.size": 2147483647,
    "group.coordinator.rebalance.protocols": ("classic", "consumer", "streams"),
    "group.coordinator.threads": 4,
    "group.coordinator.append.linger.ms": -1,
    "group.coordinator.cached.buffer.max.bytes": 1048588,
    "group.consumer.session.timeout.ms": 45000,
    "group.consumer.heartbeat.interval.ms": 5000,
    "group.consumer.assignors": ("uniform", "range"),
    "group.consumer.migration.policy": "bidirectional",
    "group.share.max.size": 200,
    "group.share.assignors": ("simple",),
    "group.streams.num.standby.replicas": 0,
}

REFUSED = {
    "offsets.topic.num.partitions": "0",
    "offsets.retention.minutes": "0",
    "offsets.topic.compression.codec": "9",
    "group.max.size": "0",
    "group.share.max.size": "1001",
    "group.consumer.migration.policy": "sideways",
    "group.consumer.assignors": "range,range",
    "group.coordinator.rebalance.protocols": "modern",
}


@pytest.mark.parametrize(("name", "default"), DEFAULTS.items())
def test_defaults_are_kafka_s(name: str, default: object) -> None:
    assert OPTIONS[name].default == default


@pytest.mark.parametrize(("name", "text"), REFUSED.items())
def test_values_out_of_range_are_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidConfig, match=name):
        OPTIONS.parse(name, text)


def test_retention_is_given_in_minutes() -> None:
    assert OffsetOptions.of(retention_minutes="2").retention_ms == 120_000
