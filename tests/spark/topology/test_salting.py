"""Salted aggregates equal plain ones, on keys of which a few have most of the records."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.grouped import GroupedStream
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.topology import Topology
from millbeck.pipeline.topology.windows import hopping, session, tumbling
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.testing.topology_driver import TopologyTestDriver

    Drivers = Callable[..., TopologyTestDriver]

SALES = json("n INT, at TIMESTAMP")


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


def _greatest(one: Any, other: Any) -> Any:
    return one if one["n"] >= other["n"] else other


def test_salted_and_plain_aggregates_are_equal(topology_driver: Drivers) -> None:  # noqa: F811
    def aggregates(grouped: GroupedStream, to: str) -> None:
        grouped.count().to(f"counts-{to}")
        grouped.reduce(_greatest).to(f"greatest-{to}")
        described = {"sum": sf.sum, "mean": sf.avg, "least": sf.min, "spread": sf.stddev}
        columns = grouped.aggregate_columns(lambda r: {name: made(r.value.n) for name, made in described.items()})
        columns.map_values(lambda value: {"sum": value.sum, "least": value.least, "mean": sf.round(value.mean, 6)}).to(
            f"columns-{to}"
        )
        windows = grouped.windowed_by(hopping("10 seconds", advance="5 seconds", grace="2 seconds"))
        windows.aggregate(lambda r: {"sum": sf.sum(r.value.n), "last": sf.max(r.timestamp)}).to(f"windows-{to}")

    def build(topology: Topology) -> None:
        grouped = topology.stream("sales", value=SALES).group_by_key()
        aggregates(grouped, "plain")
        aggregates(grouped.salted(16), "salted")

    driver = topology_driver(build)
    random_numbers = random.Random(3)
    for batch in range(2):
        for number in range(300):
            key = f"key-{min(int(random_numbers.paretovariate(0.3)), 20)}"
            at = batch * 20_000 + random_numbers.randint(-3_000, 15_000) + number
            driver.pipe("sales", {"n": random_numbers.randint(0, 999)}, key=key, at=max(0, at))
        driver.advance()
        for output in ("counts", "greatest", "columns", "windows"):
            plain, salted = driver.read(f"{output}-plain"), driver.read(f"{output}-salted")
            assert len(plain) >= 10, output
            assert sorted(plain) == sorted(salted), output


def test_what_salting_cannot_do_is_refused_by_name(spark: SparkSession) -> None:
    topology = Topology("refused", spark, bootstrap_servers="nowhere:0", late_records="late")
    grouped = topology.stream("sales", value=SALES).group_by_key()
    with pytest.raises(TopologyError, match="salted: 0 is not a number of salts: it must be above zero"):
        grouped.salted(0)
    salted = grouped.salted(16)
    with pytest.raises(TopologyError, match="the result of first depends on the order of the records"):
        salted.aggregate_columns(lambda r: sf.first(r.value.n))
    with pytest.raises(TopologyError, match="use aggregate_columns or reduce"):
        salted.aggregate(0, lambda total, value: total + value["n"], type="BIGINT")
    with pytest.raises(TopologyError, match='emit="every" needs each of them'):
        salted.count(emit="every")
    with pytest.raises(TopologyError, match="salted: only with tumbling windows"):
        salted.windowed_by(session("5 seconds"))
    with pytest.raises(TopologyError, match="late_records needs each of them"):
        salted.windowed_by(tumbling("5 seconds"))
    with pytest.raises(TopologyError, match="cogroup: not possible with salted"):
        salted.cogroup(lambda total, value: total)
