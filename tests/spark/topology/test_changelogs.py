"""Published stores: the topic is made, compacted, and holds what the table holds; tombstones for what is gone."""

from __future__ import annotations

import json as plain_json
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.client.admin.results import ConfigResource, ResourceType
from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.changelogs import changelog_of, make_changelogs
from millbeck.pipeline.topology.serdes import json, long
from millbeck.pipeline.topology.topology import Topology
from millbeck.pipeline.topology.windows import tumbling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog

NUMBERS = json("n INT")


def _records(values: list[tuple[str, int | None]]) -> list[dict[str, Any]]:
    return [
        {"key": key.encode(), "value": None if n is None else plain_json.dumps({"n": n}).encode()} for key, n in values
    ]


@pytest.mark.long
def test_a_published_store_is_its_topic(spark: SparkSession, log: LiveLog, make_topic: Any, tmp_path: Any) -> None:
    source, target = make_topic(2), make_topic(1)
    name = f"app-{source}"

    def build() -> Topology:
        topology = Topology(name, spark, bootstrap_servers=log.bootstrap)
        numbers = topology.stream(source, value=NUMBERS)
        numbers.group_by_key().count(store="counts").publish(value=long()).to(target)
        # Read in more tasks than the log has partitions: the order of a key's records must survive that.
        topology.table(source, value=NUMBERS, store="latest").publish()
        return topology

    assert build().outline.lines()[-3:] == [
        f"writes   {name}-counts-changelog (compacted: the changes of the store counts)",
        f"writes   {target}",
        f"writes   {name}-latest-changelog (compacted: the changes of the store latest)",
    ]
    waves = [[(f"k{n % 5}", n) for n in range(40)], [("k0", None), ("k1", 7), ("k2", None), ("k2", 8), ("gone", None)]]
    for wave in waves:
        log.put(source, _records(wave))  # type: ignore[arg-type]
        query = build().start(str(tmp_path), trigger={"availableNow": True})
        query.awaitTermination()
    latest = {record.key: record.value for _, record in log.read(f"{name}-latest-changelog")}
    held = {key: plain_json.loads(value)["n"] for key, value in latest.items() if value is not None}
    assert held == {b"k1": 7, b"k2": 8, b"k3": 38, b"k4": 39}
    assert latest[b"k0"] is None
    counts = {record.key: record.value for _, record in log.read(f"{name}-counts-changelog")}
    assert {key: int.from_bytes(value or b"") for key, value in counts.items()} == {
        b"k0": 8,
        b"k1": 9,
        b"k2": 9,
        b"k3": 8,
        b"k4": 8,
    }
    resource = ConfigResource(ResourceType.TOPIC, f"{name}-counts-changelog")
    described = log.blocking.run(log.admin.describe_configs({resource: ["cleanup.policy"]}))[resource]
    assert described["cleanup.policy"].value == "compact"
    topic = log.blocking.run(log.admin.describe_topics([resource.name]))[resource.name]
    assert len(topic.partitions) == 2


def test_a_topic_that_forgets_is_no_changelog(log: LiveLog, make_topic: Any) -> None:
    kept, forgets = make_topic(1, cleanup_policy="compact,delete"), make_topic(1)
    settings = {"bootstrap.servers": log.bootstrap, "isolation.level": "read_committed"}
    make_changelogs(settings, {kept: 1})
    with pytest.raises(TopologyError, match=f"{forgets} exists and has cleanup.policy=delete"):
        make_changelogs(settings, {kept: 1, forgets: 1})


def test_only_what_has_a_name_is_published(spark: SparkSession, log: LiveLog) -> None:
    topology = Topology("app", spark, bootstrap_servers=log.bootstrap)
    numbers = topology.stream("numbers", value=NUMBERS)
    with pytest.raises(TopologyError, match="give it one with store="):
        numbers.group_by_key().count().publish()
    with pytest.raises(TopologyError, match="windowed aggregate with store="):
        numbers.publish()
    windowed = numbers.group_by_key().windowed_by(tumbling("1 minute")).count(store="per-minute")
    windowed.publish()
    with pytest.raises(TopologyError, match="published twice"):
        windowed.publish()
    with pytest.raises(TopologyError, match="is not a valid topic name"):
        changelog_of("app", "a store")
