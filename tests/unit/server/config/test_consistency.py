"""Settings that contradict each other, as Kafka refuses them."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.consistency import check_consistent

CONTRADICTIONS = {
    "kept for no time": ({"log.retention.ms": "0"}, "log.retention.ms"),
    "kept for no hours": ({"log.retention.hours": "0"}, "log.retention.ms"),
    "rolled all the time": ({"log.roll.ms": "0"}, "log.roll.ms"),
    "jitter backwards": ({"log.roll.jitter.ms": "-1"}, "log.roll.jitter.ms"),
    "lag upside down": (
        {"log.cleaner.min.compaction.lag.ms": "2", "log.cleaner.max.compaction.lag.ms": "1"},
        "compaction.lag",
    ),
    "no room for one request": ({"queued.max.request.bytes": "5"}, "queued.max.request.bytes"),
    "nobody may connect": ({"max.connections.per.ip": "0"}, "max.connections.per.ip"),
    "no memory to compact with": ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
    "waits longer than the socket": ({"replica.fetch.wait.max.ms": "30001"}, "replica.socket.timeout.ms"),
    "waits longer than it may lag": (
        {"replica.fetch.wait.max.ms": "20000", "replica.lag.time.max.ms": "10000"},
        "replica.lag.time.max.ms",
    ),
    "two heartbeats do not fit": ({"broker.heartbeat.interval.ms": "4501"}, "broker.session.timeout.ms"),
}
FINE = {
    "nothing": {},
    "kept forever": {"log.retention.ms": "-1"},
    "kept forever, said strangely": {"log.retention.ms": "-5"},
    "hours of no account": {"log.retention.ms": "5", "log.retention.hours": "0"},
    "room for a small request": {"queued.max.request.bytes": "5", "socket.request.max.bytes": "5"},
    "some may connect": {"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:3"},
    "no cleaner": {"log.cleaner.threads": "0", "log.cleaner.dedupe.buffer.size": "1"},
    "two heartbeats just fit": {"broker.heartbeat.interval.ms": "4500"},
    "waits exactly as long": {"replica.fetch.wait.max.ms": "30000"},
}


@pytest.mark.parametrize(("texts", "named"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_a_contradiction_is_refused_by_name(texts: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidConfig, match=named):
        check_consistent(texts)


@pytest.mark.parametrize("texts", FINE.values(), ids=FINE.keys())
def test_what_kafka_accepts_is_accepted(texts: dict[str, str]) -> None:
    assert check_consistent(texts) is None  # type: ignore[func-returns-value]
