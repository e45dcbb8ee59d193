"""Results of aggregates before they are final: once per batch or for every record, on lists of records."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.serdes import json
from millbeck.pipeline.topology.topology import Topology
from millbeck.pipeline.topology.windows import hopping, session, sliding, sliding_join, tumbling
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.testing.topology_driver import TopologyTestDriver, WrittenRecord

    Drivers = Callable[..., TopologyTestDriver]

SALES = json("n INT")


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


def _told(records: list[WrittenRecord]) -> list[tuple[Any, ...]]:
    """Start and end of each window in seconds, and its value."""
    told = []
    for record in records:
        key = json_module.loads(record.key or b"")
        start, end = (datetime.fromisoformat(key[edge]).timestamp() for edge in ("start", "end"))
        told.append((start, end, None if record.value is None else json_module.loads(record.value)))
    return told


def test_a_window_tells_its_result_before_it_closes(topology_driver: Drivers) -> None:  # noqa: F811
    def build(topology: Topology) -> None:
        sales = topology.stream("sales", value=SALES).group_by_key()
        (
            sales.windowed_by(tumbling("10 seconds", grace="2 seconds"))
            .aggregate(lambda r: {"mean": sf.avg(r.value.n), "who": r.key, "total": sf.sum(r.value.n) * 2})
            .to("means")
        )

    driver = topology_driver(build, late_records="late")
    for n, at in ((2, 1_000), (4, 3_000), (6, 13_000)):
        driver.pipe("sales", {"n": n}, key="a", at=at)
    driver.advance()
    assert _told(driver.read("means")) == [
        (0, 10, {"mean": 3.0, "who": "a", "total": 12}),
        (10, 20, {"mean": 6.0, "who": "a", "total": 12}),
    ]
    driver.pipe("sales", {"n": 1}, key="a", at=2_000)
    driver.pipe("sales", {"n": 9}, key="a", at=12_000)
    driver.advance()
    assert _told(driver.read("means")) == [(10, 20, {"mean": 7.5, "who": "a", "total": 30})]
    assert driver.read("late") == [(b"a", b'{"n":1}')]


@pytest.mark.long
def test_results_of_every_record_and_of_sessions(topology_driver: Drivers) -> None:  # noqa: F811
    def build(topology: Topology) -> None:
        sales = topology.stream("sales", value=SALES).group_by_key()
        sales.windowed_by(hopping("10 seconds", advance="5 seconds"), emit="every").count().to("counts")
        sales.windowed_by(session("4 seconds"), emit="update").count().to("sessions")
        sales.aggregate_columns(lambda r: {"least": sf.min(r.value.n)}, emit="every").to("leasts")

    driver = topology_driver(build)
    for n, at in ((2, 1_000), (4, 3_000), (6, 11_000)):
        driver.pipe("sales", {"n": n}, key="a", at=at)
    driver.advance()
    assert _told(driver.read("counts")) == [
        (-5, 5, 1),
        (0, 10, 1),
        (-5, 5, 2),
        (0, 10, 2),
        (5, 15, 1),
        (10, 20, 1),
    ]
    assert _told(driver.read("sessions")) == [(1, 7, 2), (11, 15, 1)]
    assert [record.value for record in driver.read("leasts")] == [b'{"least":2}'] * 3
    driver.pipe("sales", {"n": 1}, key="a", at=2_000)
    driver.pipe("sales", {"n": 9}, key="a", at=13_000)
    driver.advance()
    assert _told(driver.read("counts")) == [(5, 15, 2), (10, 20, 2)]
    assert _told(driver.read("sessions")) == [(11, 15, None), (11, 17, 2)]
    assert [record.value for record in driver.read("leasts")] == [b'{"least":1}'] * 2


@pytest.mark.long
def test_sliding_windows_and_final_results_with_a_topic_for_late_records(topology_driver: Drivers) -> None:  # noqa: F811
    def build(topology: Topology) -> None:
        sales = topology.stream("sales", value=SALES).group_by_key()
        sales.windowed_by(sliding("3 seconds"), emit="final").aggregate(lambda r: sf.sum(r.value.n)).to("sliding")
        sales.windowed_by(tumbling("5 seconds"), emit="final").reduce(lambda one, other: one).map_values(
            lambda value: value.n
        ).to("firsts")

    driver = topology_driver(build, late_records="late")
    for n, at in ((1, 5_000), (2, 7_000), (4, 12_000)):
        driver.pipe("sales", {"n": n}, key="a", at=at)
    driver.advance()
    driver.pipe("sales", {"n": 8}, key="a", at=30_000)
    driver.advance()
    driver.pipe("sales", {"n": 16}, key="a", at=6_000)
    driver.advance()
    assert sorted(_told(driver.read("sliding"))) == [(2, 5, 1), (4, 7, 3), (5.001, 8.001, 2), (9, 12, 4)]
    assert _told(driver.read("firsts")) == [(5, 10, 1), (10, 15, 4)]
    assert driver.read("late") == [(b"a", b'{"n":16}')] * 2


def test_idle_sources_close_their_windows(topology_driver: Drivers) -> None:  # noqa: F811
    """Of two sources one is silent, then both; marker rows reach neither functions nor outputs."""

    def build(topology: Topology) -> None:
        sales = topology.stream("sales", value=SALES)
        visits = topology.stream("visits", value=SALES, timestamp=lambda r: sf.timestamp_millis(r.value.n))
        sales.map_values(lambda value: {"n": sf.coalesce(value.n, sf.lit(-1))}).to("copy")
        large = sales.filter(lambda r: r.value.n > 0)
        large.group_by_key().windowed_by(tumbling("5 seconds"), emit="final").count().to("counts")
        both = sales.outer_join(
            visits, lambda sale, visit: {"sale": sale.n, "visit": visit.n}, window=sliding_join("1 second")
        )
        both.to("both")
        both.group_by_key().windowed_by(tumbling("5 seconds")).count().to("running")

    driver = topology_driver(build, options={"idleAfter": "10s"}, bad_records="dead")
    driver.pipe("sales", {"n": 1}, key="a", at=1_000)
    driver.advance()
    driver.pipe("sales", {"n": 2}, key="a", at=30_000)
    driver.advance()
    assert driver.read("counts") == [], "the other source holds the watermark"
    driver.advance(idle_at=20_000)
    assert _told(driver.read("counts")) == [(0, 5, 1)]
    assert [record.value for record in driver.read("both")] == [b'{"sale":1}']
    driver.advance(idle_at=40_000)
    driver.advance(idle_at=41_000)
    assert _told(driver.read("counts")) == [(30, 35, 1)]
    assert [record.value for record in driver.read("both")] == [b'{"sale":2}']
    assert [record.value for record in driver.read("copy")] == [b'{"n":1}', b'{"n":2}']
    assert driver.read("dead") == []


def test_what_has_no_running_result_is_refused_by_name(spark: SparkSession) -> None:
    topology = Topology("refused", spark, bootstrap_servers="nowhere:0")
    sales = topology.stream("sales", value=SALES).group_by_key()
    with pytest.raises(TopologyError, match=r'windowed aggregate: skewness has no running result; use emit="final"'):
        sales.windowed_by(tumbling("1 minute")).aggregate(lambda r: sf.skewness(r.value.n))
    with pytest.raises(TopologyError, match="emit is update, final, every, not 'often'"):
        sales.windowed_by(tumbling("1 minute"), emit="often")
    with pytest.raises(TopologyError, match="nothing says when it is final"):
        sales.count(emit="final")
