"""What real-time mode does not do is refused by name, before anything runs; tests/interop runs the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from millbeck.pipeline.errors import CheckpointMismatch, TopologyError
from millbeck.pipeline.topology.checkpoints import OffsetLog, sources_of
from millbeck.pipeline.topology.real_time import RealTimeTopology
from millbeck.pipeline.topology.serdes import avro, json, string
from millbeck.pipeline.topology.streams import Stream
from millbeck.pipeline.topology.topology import Topology
from millbeck.pipeline.topology.windows import session, sliding_join, tumbling

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NUMBERS = json("n INT")


class WithoutConnector(RealTimeTopology):
    """Its sources have the columns of Spark's connector, whose jars are not here."""

    def _open_stream(self, names: list[str], *, starting: str, headers: bool) -> DataFrame:
        rows = self.spark.readStream.format("rate").load()
        return rows.select(
            sf.lit(b"k").alias("key"),
            sf.lit(b"v").alias("value"),
            sf.lit(names[0]).alias("topic"),
            sf.lit(0).alias("partition"),
            sf.col("value").alias("offset"),
            "timestamp",
        )

    def _open_table(self, topic: str) -> DataFrame:
        schema = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
        return self.spark.createDataFrame([], schema)


def _refuse(spark: SparkSession, build: Callable[[Topology, Stream], Any], complaint: str, **settings: Any) -> None:
    def plan() -> None:
        topology = WithoutConnector("refused", spark, bootstrap_servers="nowhere:0", **settings)
        build(topology, topology.stream("numbers", value=NUMBERS))
        topology.outgoing()

    with pytest.raises(TopologyError, match=complaint):
        plan()


def test_what_needs_batches_says_so(spark: SparkSession) -> None:
    remedy = 'not possible in real-time mode; give a trigger of batches, such as trigger = "1 second"'
    _refuse(
        spark,
        lambda topology, numbers: numbers.join(topology.table("t"), lambda one, other: other),
        "join of a stream with a table: not possible in real-time mode; use topology.global_table, or give a trigger",
    )
    processor: Any = object()
    _refuse(spark, lambda _, it: it.process(processor, key="INT", value="INT"), f"process: {remedy}")
    within = sliding_join("1 minute")
    _refuse(
        spark, lambda topology, it: it.join(topology.stream("o"), lambda a, b: b, window=within), "two streams: not"
    )
    _refuse(spark, lambda _, it: it.group_by_key().reduce(max), "reduce of Python values: .*; use aggregate_columns")
    _refuse(spark, lambda _, it: it.group_by_key().windowed_by(session("1 minute")).count(), "use tumbling or hopping")
    _refuse(
        spark,
        lambda _, it: it.group_by_key().windowed_by(tumbling("1 minute"), emit="final").count(),
        'windowed count: emit="final": not possible',
    )
    _refuse(spark, lambda _, it: it.group_by_key().count(emit="every"), 'count with emit="every": not possible')


def test_each_topic_is_read_once_and_state_is_alone(spark: SparkSession) -> None:
    def count_and_copy(topology: Topology, numbers: Stream) -> None:
        numbers.group_by_key().count().to("counts")
        numbers.to("copy")

    _refuse(spark, count_and_copy, "an operator with state is the only one, and all outputs come from its results")
    _refuse(spark, lambda _, it: it.group_by_key().count().to("counts"), 'bad_records = "fail" here', bad_records="bad")
    _refuse(spark, lambda t, it: it.merge(t.stream("numbers", value=NUMBERS)).to("o"), "numbers is read twice")


def test_python_on_values_is_refused(spark: SparkSession) -> None:
    twice = sf.udf(lambda n: n * 2, "int")
    _refuse(spark, lambda _, it: it.map_values(lambda value: twice(value.n)).to("o"), "runs in Python: not possible")
    schema = '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'
    _refuse(spark, lambda _, it: it.to("o", value=avro(schema)), "an Avro or a Protobuf serde that runs in Python")


def test_what_real_time_does_is_planned(spark: SparkSession) -> None:
    def build(topology: Topology) -> None:
        numbers = topology.stream("numbers", value=NUMBERS)
        named = numbers.left_join(topology.global_table("names", value=string()), lambda one, name: {"called": name})
        low, high = named.branch(lambda r: r.value.called == "a", lambda r: sf.lit(True))
        low.to("low")
        high.to("high")

    topology = WithoutConnector("planned", spark, bootstrap_servers="nowhere:0", bad_records="bad")
    build(topology)
    assert len(sources_of(topology.outgoing()) or []) == 1, "the topic is read once"
    assert topology.outline.outputs == ["bad (bad records)", "low", "high"]
    with pytest.raises(TopologyError, match="delivery = 'exactly_once': real-time mode delivers at least once"):
        topology.start("/nowhere", delivery="exactly_once")


def test_options_without_effect_are_named(spark: SparkSession) -> None:
    options = {"maxOffsetsPerTrigger": "5", "kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "u"}
    topology = RealTimeTopology("options", spark, bootstrap_servers="nowhere:0", options=options)
    with pytest.raises(TopologyError, match="the option maxOffsetsPerTrigger has no effect in real-time mode"):
        topology.stream("numbers")
    del options["maxOffsetsPerTrigger"]
    topology = RealTimeTopology("options", spark, bootstrap_servers="nowhere:0", options=options)
    assert topology._connector_options()["kafka.isolation.level"] == "read_committed"
    assert 'username="u"' in topology._connector_options()["kafka.sasl.jaas.config"]


def test_a_checkpoint_belongs_to_one_kind_of_trigger(spark: SparkSession, tmp_path: Path) -> None:
    batches, real_time = tmp_path / "batches", tmp_path / "real-time"
    (batches / "offsets").mkdir(parents=True)
    (batches / "offsets" / "0").write_text('v1\n{}\n{"numbers": {"0": 1}}')
    OffsetLog(spark, str(real_time)).mark_real_time()
    topology = WithoutConnector("checkpoint", spark, bootstrap_servers="nowhere:0")
    topology.stream("numbers", value=NUMBERS).to("o")
    with pytest.raises(CheckpointMismatch, match="with a trigger of batches: real-time mode needs a new one"):
        topology.start(str(batches))
    plain = Topology("checkpoint", spark, bootstrap_servers="nowhere:0")
    plain.stream_of(topology.stream("others", value=NUMBERS).frame).to("o")
    with pytest.raises(CheckpointMismatch, match="in real-time mode: a trigger of batches needs a new one"):
        plain.start(str(real_time), delivery="at_least_once")
