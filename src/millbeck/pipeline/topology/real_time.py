"""Needs pyspark: a topology in Spark's real-time mode, where a record comes out milliseconds after it came in.

Real-time mode refuses sources and sinks in Python, so records are read and written by Spark's own ``format("kafka")``.
It also limits what a query may do: each topic is read once, at most one operator has state, which is one of Spark's own
aggregates, and nothing runs in Python. Delivery is at least once: after a restart the records since the last batch's
end are processed again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import CheckpointMismatch, TopologyError
from millbeck.pipeline.java_settings import java_settings
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.offsets import Offsets
from millbeck.pipeline.sink_options import AT_LEAST_ONCE, EXACTLY_ONCE
from millbeck.pipeline.source_options import parse_source_options
from millbeck.pipeline.topology.checkpoints import OffsetLog, runs_python, stateful_count
from millbeck.pipeline.topology.stateful import ROCKSDB
from millbeck.pipeline.topology.topology import Topology

_SPARK: Final = "kafka."
_BATCHES: Final = 'give a trigger of batches, such as trigger = "1 second"'
_KEPT_OPTIONS: Final = ("failOnDataLoss", "groupIdPrefix")
SESSION_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # Passwords are part of an option that Spark does not take for a secret.
    "spark.redaction.regex": r"(?i)secret|password|token|access[.]?key|jaas|ssl\.keystore\.key",
}


class Slots(NamedTuple):
    """The tasks of a query, which run all at once."""

    sources: int
    shuffles: int

    @property
    def total(self) -> int:
        return self.sources + self.shuffles


class RealTimeTopology(Topology):
    is_real_time: ClassVar[bool] = True
    copies_tables: ClassVar[bool] = False

    def needs_batches(self, what: str, instead: str = "") -> None:
        remedy = f"use {instead}, or {_BATCHES}" if instead else _BATCHES
        raise TopologyError(f"{what}: not possible in real-time mode; {remedy}")

    def _connector_options(self) -> dict[str, str]:
        """The options of ``format("kafka")``: Java's names, and no record of a transaction that was not committed."""
        own = {name.lower(): value for name, value in self._options.items()}
        client = {name.removeprefix(_SPARK): value for name, value in own.items() if name.startswith(_SPARK)}
        others = {name: value for name, value in self._options.items() if not name.lower().startswith(_SPARK)}
        refused = [name for name in others if name.lower() not in [kept.lower() for kept in _KEPT_OPTIONS]]
        if refused:
            raise TopologyError(f"the option {refused[0]} has no effect in real-time mode; remove it, or {_BATCHES}")
        translated = java_settings({"isolation.level": "read_committed", **client})
        return {**others, **{f"{_SPARK}{name}": value for name, value in translated.items()}}

    def _open_stream(self, names: list[str], *, starting: str, headers: bool) -> DataFrame:
        # The same checks, and the same errors, as for batches.
        parse_source_options({**self._options, "subscribe": ",".join(names)}, is_streaming=True)
        return (
            self.spark.readStream.format("kafka")
            .options(**self._connector_options(), startingOffsets=starting, includeHeaders=str(headers).lower())
            .option("subscribe", ",".join(names))
            .load()
        )

    def _open_table(self, topic: str) -> DataFrame:
        return self.spark.read.format("kafka").options(**self._connector_options()).option("subscribe", topic).load()

    def outgoing(self, partition_counts: Mapping[str, int] | None = None, *, is_apart: bool = False) -> DataFrame:
        rows = super().outgoing()
        if self.late_records is not None:
            self.needs_batches("late_records")
        if self._has_markers:
            self.needs_batches("idle_after")
        twice = [topic for topic, count in Counter(self._sources).items() if count > 1]
        if twice:
            raise TopologyError(
                f"real-time mode reads each topic once, and {twice[0]} is read twice: call topology.stream once and "
                f"use the stream for both, or {_BATCHES}"
            )
        if stateful_count(rows) > 1 or (stateful_count(rows) and self._has_outputs_beside_state()):
            raise TopologyError(
                "in real-time mode an operator with state is the only one, and all outputs come from its results: "
                'write others, and bad records (bad_records = "fail" here), in a pipeline of their own, or ' + _BATCHES
            )
        if runs_python(rows):
            self.needs_batches("a function, an Avro or a Protobuf serde that runs in Python")
        return rows

    def _has_outputs_beside_state(self) -> bool:
        roots = {id(path.root): path.root for _, records in self._outputs for path in records.paths}
        return len(roots) > 1

    def slots(self) -> Slots:
        """How many tasks the query runs at once: one per partition of a source and of a shuffle."""
        rows = self.outgoing()
        shuffles = stateful_count(rows) * int(self.spark.conf.get("spark.sql.shuffle.partitions") or 0)
        return Slots(sum(self.partition_counts(self._sources).values()), shuffles)

    def repeats_max(self, checkpoint: str) -> int | None:
        """The records since the end of the last batch, all of which are written again if an earlier run was killed
        after it had written them; None for a new checkpoint.
        """
        offsets = OffsetLog(self.spark, checkpoint)
        batches = offsets.last_batches()
        if not batches:
            return None
        _, lines = offsets.read(batches[-1])
        read: dict[TopicPartition, int] = {}
        for line in lines:
            if line.startswith("{"):
                read |= Offsets.from_json(json.loads(line)).by_partition
        view = LogView(parse_source_options({**self._options, "subscribe": ",".join(self.sources)}, is_streaming=True))
        try:
            ends = view.latest(view.partitions(view.topics()))
        finally:
            view.close()
        return sum(max(0, end - read.get(partition, 0)) for partition, end in ends.items())

    def start(
        self,
        checkpoint: str,
        *,
        delivery: str = AT_LEAST_ONCE,
        trigger: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        if delivery == EXACTLY_ONCE:
            raise TopologyError(f"delivery = {EXACTLY_ONCE!r}: real-time mode delivers at least once; {_BATCHES}")
        for name, value in SESSION_SETTINGS.items():
            if name.startswith("spark.sql."):
                self.spark.conf.set(name, value)
        rows = self.outgoing()
        offsets = OffsetLog(self.spark, checkpoint)
        if offsets.last_batches() and not offsets.is_real_time():
            raise CheckpointMismatch(
                f"the checkpoint {checkpoint} was written with a trigger of batches: real-time mode needs a new one "
                "(--checkpoint)"
            )
        offsets.mark_real_time()
        self._make_changelogs()
        writer = rows.writeStream.format("kafka").queryName(self.name).outputMode("update")
        writer = writer.options(**self._connector_options(), **(options or {}), checkpointLocation=checkpoint)
        return writer.trigger(**(trigger or {"realTime": "60 seconds"})).start()
