"""Topologies in Spark's real-time mode, over its own connector: outputs, bad records, tables, windows, a restart."""

from __future__ import annotations

import json as json_module
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tools import peers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millbeck.pipeline.topology.topology import Topology
    from tests.spark.live_log import LiveLog

pytestmark = [
    pytest.mark.skipif(os.environ.get("INTEROP_SYSTEM", "millbeck") != "millbeck", reason="starts a node of its own"),
    pytest.mark.timeout(600),
]

SECONDS_MAX = 240.0


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from millbeck.pipeline.session import spark_session
    from millbeck.pipeline.topology.real_time import SESSION_SETTINGS

    try:
        folder = peers.install("spark-connector")
    except peers.PeerUnavailable as missing:
        if os.environ.get("INTEROP_ALLOW_MISSING") == "1":
            pytest.skip(str(missing))
        raise
    jars = ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    settings = {
        **SESSION_SETTINGS,
        "spark.jars": jars,
        "spark.ui.enabled": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "1",
    }
    session = spark_session("interop", master="local[8]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def log() -> Iterator[LiveLog]:
    from millbeck.testing.broker_process import broker
    from tests.spark.live_log import LiveLog

    with broker({"num.partitions": "1", "auto.create.topics.enable": "false"}) as running:
        live = LiveLog(running)
        yield live
        live.close()


def _await(log: LiveLog, topic: str, count: int) -> list[tuple[bytes | None, Any]]:
    """Keys and values of a topic, once it has so many records."""
    ends_at = time.monotonic() + SECONDS_MAX
    while len(found := log.read(topic)) < count:
        assert time.monotonic() < ends_at, f"{topic} has {len(found)} records after {SECONDS_MAX:.0f} s, not {count}"
        time.sleep(0.2)
    return [(record.key, json_module.loads(record.value or b"null")) for _, record in found]


def _start(spark: SparkSession, log: LiveLog, build: Callable[[Topology], None], path: Path, **settings: Any) -> Any:
    from millbeck.pipeline.topology.real_time import RealTimeTopology

    topology = RealTimeTopology("real-time", spark, bootstrap_servers=log.bootstrap, **settings)
    build(topology)
    assert topology.slots().total <= spark.sparkContext.defaultParallelism
    return topology.start(str(path / "checkpoint"), trigger={"realTime": "5 seconds"})


def _numbers(*numbers: int, bad: bool = False) -> list[dict[str, Any]]:
    now = int(time.time() * 1000)
    values = [json_module.dumps({"n": number}).encode() for number in numbers] + ([b"nonsense"] if bad else [])
    return [{"key": b"a", "value": value, "timestamp": now} for value in values]


def test_outputs_a_global_table_bad_records_and_a_restart(spark: SparkSession, log: LiveLog, tmp_path: Path) -> None:
    from millbeck.pipeline.topology.real_time import RealTimeTopology
    from millbeck.pipeline.topology.serdes import json, string

    for topic in ("in", "names", "all", "large", "bad"):
        log.create(topic)
    log.put("names", [{"key": b"a", "value": b"first"}, {"key": b"a", "value": b"one"}])

    def build(topology: Topology) -> None:
        numbers = topology.stream("in", value=json("n INT"))
        names = topology.global_table("names", value=string())
        named = numbers.join(names, lambda value, name: {"n": value.n, "called": name})
        named.to("all")
        named.filter(lambda r: r.value.n > 1).to("large")

    query = _start(spark, log, build, tmp_path, bad_records="bad")
    log.put("in", _numbers(1, 2, bad=True))
    assert _await(log, "all", 2) == [(b"a", {"n": n, "called": "one"}) for n in (1, 2)]
    assert _await(log, "large", 1) == [(b"a", {"n": 2, "called": "one"})]
    (_, letter), *_ = log.read("bad")
    assert (letter.value, dict(letter.headers)["__millbeck.error.offset"]) == (b"nonsense", b"2")
    while query.lastProgress is None or query.lastProgress.batchId < 0:
        time.sleep(0.2)
    query.stop()
    log.put("in", _numbers(3))
    again = RealTimeTopology("real-time", spark, bootstrap_servers=log.bootstrap, bad_records="bad")
    build(again)
    assert again.repeats_max(str(tmp_path / "checkpoint")) == 1, "a killed run may have written that one"
    assert again.repeats_max(str(tmp_path / "new")) is None
    query = _start(spark, log, build, tmp_path, bad_records="bad")
    found = _await(log, "all", 3)
    query.stop()
    # At least once: what came after the last batch's end may be there again, and in order.
    assert found[-1] == (b"a", {"n": 3, "called": "one"})
    assert [value["n"] for _, value in found][:2] == [1, 2]


def test_a_window_tells_each_record_while_it_is_open(spark: SparkSession, log: LiveLog, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    from millbeck.pipeline.topology.serdes import json
    from millbeck.pipeline.topology.windows import tumbling

    for topic in ("sales", "totals"):
        log.create(topic)

    def build(topology: Topology) -> None:
        sales = topology.stream("sales", value=json("n INT")).group_by_key()
        hours = sales.windowed_by(tumbling("365 days", grace="1 day"))
        hours.aggregate(lambda r: {"total": sf.sum(r.value.n)}).to("totals")

    query = _start(spark, log, build, tmp_path)
    log.put("sales", _numbers(1, 2, 4))
    found = _await(log, "totals", 3)
    query.stop()
    assert [value for _, value in found][:3] == [{"total": 1}, {"total": 3}, {"total": 7}]
