"""Topologies on lists of records: no broker, and time as the records say it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.serdes import json, string
from millbeck.pipeline.topology.windows import tumbling
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.pipeline.topology.topology import Topology
    from millbeck.testing.topology_driver import TopologyTestDriver

    Drivers = Callable[..., TopologyTestDriver]


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


def count_words(topology: Topology) -> None:
    (
        topology.stream("lines", value=string())
        .flat_map_values(lambda line: sf.split(sf.lower(line), r"\W+"))
        .group_by(lambda r: r.value)
        .count()
        .to("counts")
    )


def test_words_are_counted_over_two_advances(topology_driver: Drivers) -> None:  # noqa: F811
    driver = topology_driver(count_words)
    driver.pipe("lines", "To be or not to be", at=0)
    driver.advance()
    assert dict(driver.read("counts")) == {b"to": b"2", b"be": b"2", b"or": b"1", b"not": b"1"}
    driver.pipe("lines", "be", at=1000)
    driver.advance()
    assert driver.read("counts") == [(b"be", b"3")]
    assert driver.read("counts") == []


def test_windows_global_tables_and_bad_records_are_as_in_a_run(topology_driver: Drivers) -> None:  # noqa: F811
    def build(topology: Topology) -> None:
        regions = topology.global_table("regions", value=string())
        sales = topology.stream("sales", value=json("n INT, shop STRING"))
        joined = sales.join(regions, lambda sale, region: {"n": sale.n, "region": region}, key=lambda r: r.value.shop)
        by_region = joined.group_by(lambda r: r.value.region)
        totals = by_region.windowed_by(tumbling("10 seconds"), emit="final").aggregate(lambda r: sf.sum(r.value.n))
        totals.map(lambda r: (r.key.key, r.value)).to("totals")

    driver = topology_driver(build, bad_records="dead")
    driver.pipe("regions", "north", key="a")
    driver.pipe("sales", {"n": 2, "shop": "a"}, at=1_000)
    driver.pipe("sales", {"n": 3, "shop": "a"}, at=9_000)
    driver.pipe("sales", "nonsense", key="k", at=9_000)
    driver.advance()
    assert (driver.read("totals"), driver.read("dead")) == ([], [(b"k", b"nonsense")])
    driver.pipe("sales", {"n": 9, "shop": "a"}, at=10_000)
    driver.advance()
    assert driver.read("totals") == [(b"north", b"5")]
    with pytest.raises(TopologyError, match="regions is a global table"):
        driver.pipe("regions", "south", key="b")
    driver.pipe("other", "x")
    with pytest.raises(TopologyError, match="does not read other; it reads sales"):
        driver.advance()
