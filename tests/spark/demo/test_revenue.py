"""The demo's pipeline says what the recount says, over a restart."""

from __future__ import annotations

import random
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.demo import orders as demo
from millbeck.pipeline.demo.recount import WINDOW_MS, differences, recount, written
from millbeck.pipeline.demo.revenue import build
from millbeck.pipeline.topology.topology import Topology

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog


@pytest.mark.long
def test_it_equals_the_recount(spark: SparkSession, log: LiveLog, tmp_path: Path) -> None:
    for name, partitions in demo.TOPICS.items():
        log.create(name, partitions)
    begin_ms = 1_700_000_100_000
    seconds = list(islice(demo.orders(random.Random(5).randint(0, 99), begin_ms, per_second=60), 16))

    def put(events: list[demo.Event]) -> None:
        log.put(
            demo.ORDERS if events[0].topic == demo.ORDERS else demo.CUSTOMERS,
            [{"key": event.key, "value": event.value, "timestamp": event.timestamp_ms} for event in events],
        )

    def run() -> None:
        topology = Topology("revenue", spark, bootstrap_servers=log.bootstrap)
        build(topology)
        topology.start(str(tmp_path), trigger={"availableNow": True}).awaitTermination()

    put(demo.customers(begin_ms))
    waves: list[list[demo.Event]] = [
        [event for second in half for event in second] for half in (seconds[:8], seconds[8:])
    ]
    end_ms = begin_ms + 16 * demo.SPEED * 1000 // WINDOW_MS * WINDOW_MS + WINDOW_MS
    waves += [demo.closing(end_ms + step, demo.TOPICS[demo.ORDERS]) for step in (3_600_000, 3_600_001)]
    for wave in waves:
        put(wave)
        run()

    def rows(topic: str) -> list[Any]:
        return [record for _, record in log.read(topic)]

    expected = recount(
        [(record.key, record.value) for record in rows(demo.CUSTOMERS)],
        [(record.timestamp, record.value) for record in rows(demo.ORDERS)],
        before_ms=end_ms,
    )
    found, twice = written((record.key, record.value) for record in rows(demo.REVENUE))
    assert len(expected) >= 10
    assert differences(expected, found, twice) == []
