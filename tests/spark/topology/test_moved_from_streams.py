"""Three applications as they are usually written for Kafka Streams, moved with the page docs/kafka-streams.md."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import json, long, string
from millbeck.pipeline.topology.windows import hopping, tumbling
from millbeck.testing.plugin import topology_driver  # noqa: F401  (the fixture)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.pipeline.topology.topology import Topology
    from millbeck.testing.topology_driver import TopologyTestDriver

    Drivers = Callable[..., TopologyTestDriver]

pytestmark = pytest.mark.long


@pytest.fixture
def topology_spark(spark: SparkSession) -> SparkSession:
    return spark


def _json(text: bytes | None) -> Any:
    return json_module.loads(text or b"null")


def test_word_count(topology_driver: Drivers) -> None:  # noqa: F811
    def build(topology: Topology) -> None:
        (
            topology.stream("plaintext", value=string())
            .flat_map_values(lambda line: sf.split(sf.lower(line), r"\W+"))
            .group_by(lambda r: r.value)
            .count(store="counts")
            .to("word-counts", value=long())
        )

    driver = topology_driver(build)
    driver.pipe("plaintext", "All streams lead to Kafka", at=0)
    driver.advance()
    driver.pipe("plaintext", "Join Kafka", at=1)
    driver.advance()
    counts = {
        (record.key or b"").decode(): int.from_bytes(record.value or b"") for record in driver.read("word-counts")
    }
    assert counts == {"all": 1, "streams": 1, "lead": 1, "to": 1, "kafka": 2, "join": 1}


def test_page_views_by_region(topology_driver: Drivers) -> None:  # noqa: F811
    """Views get the region of their user, and are counted by region in overlapping windows."""

    def build(topology: Topology) -> None:
        views = topology.stream("page-views", value=json("page STRING, user STRING"))
        profiles = topology.table("profiles", value=json("region STRING"))
        (
            views.select_key(lambda r: r.value.user)
            .left_join(profiles, lambda view, profile: {"region": sf.coalesce(profile.region, sf.lit("UNKNOWN"))})
            .group_by(lambda r: r.value.region)
            .windowed_by(hopping("7 days", advance="1 day"))
            .count()
            .map(lambda r: ({"start": r.key.start, "region": r.key.key}, {"region": r.key.key, "count": r.value}))
            .to("views-by-region")
        )

    driver = topology_driver(build)
    driver.pipe("profiles", {"region": "europe"}, key="alice", at=0)
    for page, user in (("index", "alice"), ("about", "alice"), ("index", "bob")):
        driver.pipe("page-views", {"page": page, "user": user}, key=page, at=10 * 86_400_000)
    driver.advance()
    records = driver.read("views-by-region")
    assert len({record.key for record in records}) == len(records) == 2 * 7
    assert {(value["region"], value["count"]) for value in [_json(record.value) for record in records]} == {
        ("europe", 2),
        ("UNKNOWN", 1),
    }


def test_highest_temperatures(topology_driver: Drivers) -> None:  # noqa: F811
    """The highest of all temperatures of five seconds, where it is above 20 degrees."""

    def build(topology: Topology) -> None:
        (
            topology.stream("temperatures", value=string())
            .map_values(lambda text: text.cast("int"))
            .select_key(lambda r: "temperature")
            .group_by_key()
            .windowed_by(tumbling("5 seconds"))
            .aggregate(lambda r: sf.max(r.value))
            .filter(lambda r: r.value > 20)
            .to("highest")
        )

    driver = topology_driver(build)
    for text, at in (("19", 0), ("25", 1_000), ("22", 4_999), ("18", 5_000), ("20", 9_000), ("31", 12_000)):
        driver.pipe("temperatures", text, at=at)
    driver.advance()
    assert [(_json(record.key)["start"], record.value) for record in driver.read("highest")] == [
        ("1970-01-01T00:00:00.000Z", b"25"),
        ("1970-01-01T00:00:10.000Z", b"31"),
    ]
