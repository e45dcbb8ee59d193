"""The examples of pipelines, on lists of records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.running.definition import load
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.testing.topology_driver import TopologyTestDriver

    Drivers = Callable[..., TopologyTestDriver]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MINUTE_MS = 60_000


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


@pytest.fixture
def example(topology_driver: Drivers) -> Callable[[str], TopologyTestDriver]:  # noqa: F811
    def started(path: str) -> TopologyTestDriver:
        definition = load(EXAMPLES / path)
        settings = definition.settings
        return topology_driver(definition.build, bad_records=settings.bad_records, options=settings.source_options)

    return started


def values(driver: TopologyTestDriver, topic: str) -> list[tuple[Any, Any]]:
    """Keys and values, read as JSON where they are."""
    return [(_read(record.key), _read(record.value)) for record in driver.read(topic)]


def _read(raw: bytes | None) -> Any:
    try:
        return json.loads(raw or b"null")
    except ValueError:
        return (raw or b"").decode()


def test_orders_with_their_customers(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("order-enrichment/enrichment.py")
    driver.pipe("customers", {"name": "Ada", "region": "north"}, key="c1")
    driver.pipe("orders", {"amount": 12.5}, key="c1", at=10_000)
    driver.pipe("orders", {"amount": 2.5}, key="c1", at=20_000)
    driver.pipe("orders", {"amount": 1.0}, key="c2", at=20_000)
    driver.advance()
    start = "1970-01-01T00:00:00.000Z"
    assert sorted(values(driver, "revenue-by-region-5min")) == [
        ("north", {"start": start, "total": 15.0}),
        ("unknown", {"start": start, "total": 1.0}),
    ]


@pytest.mark.long
def test_balances_from_events(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("account-balances/balances.py")
    for account, cents in (("a", 500), ("b", 20), ("a", -120)):
        driver.pipe("movements", {"cents": cents}, key=account)
    driver.advance()
    assert dict(values(driver, "balances")) == {"a": {"cents": 380, "movements": 2}, "b": {"cents": 20, "movements": 1}}


@pytest.mark.long
def test_features_by_user(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("fraud-features/features.py")
    for cents, merchant, minute in ((100, "books", 30), (300, "shoes", 31), (200, "books", 50)):
        driver.pipe("payments", {"cents": cents, "merchant": merchant}, key="u", at=minute * MINUTE_MS)
    driver.advance()
    short, long = ([value for _, value in values(driver, topic)] for topic in ("features-5min", "features-1h"))
    assert {"payments": 2, "cents": 400, "largest": 300, "mean": 200.0, "merchants": 2} in short
    assert max(value["payments"] for value in short) == 2, "the third is twenty minutes later"
    assert {"payments": 3, "cents": 600, "largest": 300, "mean": 200.0, "merchants": 2} in long


@pytest.mark.long
def test_clicks_and_the_impressions_before_them(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("click-attribution/attribution.py")
    driver.pipe("impressions", {"campaign": "spring"}, key="u1-ad7", at=10 * MINUTE_MS)
    driver.pipe("clicks", {"page": "early"}, key="u1-ad7", at=9 * MINUTE_MS)
    driver.pipe("clicks", {"page": "home"}, key="u1-ad7", at=39 * MINUTE_MS)
    driver.pipe("clicks", {"page": "late"}, key="u1-ad7", at=41 * MINUTE_MS)
    driver.advance()
    [(window, count)] = values(driver, "clicks-by-campaign")
    assert (window["key"], window["start"], count) == ("spring", "1970-01-01T00:39:00.000Z", 1)


@pytest.mark.long
def test_log_lines(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("log-aggregation/logs.py")
    for level, at in (("INFO", 1_000), ("ERROR", 2_000), ("INFO", 3_000)):
        driver.pipe("logs", {"service": "shop", "level": level, "message": "sold"}, at=at)
    driver.pipe("logs", "no json", at=4_000)
    driver.advance(idle_at=2 * MINUTE_MS)
    start = "1970-01-01T00:00:00.000Z"
    assert sorted(values(driver, "lines-by-minute"), key=str) == [
        ("shop", {"level": "ERROR", "minute": start, "lines": 1}),
        ("shop", {"level": "INFO", "minute": start, "lines": 2}),
    ]
    assert len(driver.read("errors")) == 1
    assert [value for _, value in values(driver, "unreadable-logs")] == ["no json"]


@pytest.mark.long
def test_the_latest_state(example: Callable[[str], TopologyTestDriver]) -> None:
    driver = example("latest-state/latest.py")
    driver.pipe("devices", {"room": "kitchen"}, key="d1")
    for celsius in (20.0, 21.5):
        driver.pipe("readings", {"celsius": celsius}, key="d1")
    driver.advance()
    assert values(driver, "driver-rooms-changelog")[-1] == ("d1", {"celsius": 21.5, "room": "kitchen"})
