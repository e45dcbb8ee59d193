"""Run a topology on lists of records, without a broker and without a log: for tests of topologies.

    def test_words_are_counted(topology_driver):
        driver = topology_driver(build)
        driver.pipe("lines", "to be or not to be", at=0)
        driver.advance()
        assert dict(driver.read("counts")) == {b"to": b"2", b"be": b"2", b"or": b"1", b"not": b"1"}

`advance` processes the records piped since the last call as one batch, and then closes the windows whose time has
passed. So a test knows which records share a batch, and event time advances by the records it pipes. State is kept
between batches as in a run: each advance continues from a checkpoint in a temporary directory. `spark_session` or the
fixture ``topology_driver`` of pytest provides the Spark session; the first test waits for it to start.
"""

from __future__ import annotations

import json
import tempfile
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.stateful import ROCKSDB
from millbeck.pipeline.topology.topology import Topology

_RECORD: Final = (
    "key STRING, value STRING, topic STRING, partition INT, offset BIGINT, at BIGINT,"
    " headers ARRAY<STRUCT<key: STRING, value: STRING>>"
)
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
}

Content = bytes | str | Mapping[str, Any] | list[Any] | None
"""Text is written as UTF-8, dictionaries and lists as JSON, and None as null."""


class WrittenRecord(NamedTuple):
    """A record that the topology wrote."""

    key: bytes | None
    value: bytes | None


class TopologyTestDriver:
    """``settings`` are those of `Topology`, such as ``bad_records``; close it, or use it with `with`."""

    def __init__(self, spark: SparkSession, build: Callable[[Topology], None], **settings: Any) -> None:
        self._spark = spark.newSession()
        for name, value in _SETTINGS.items():
            self._spark.conf.set(name, value)
        self._build = build
        self._settings = settings
        self._directory = tempfile.TemporaryDirectory(prefix="millbeck-driver-")
        self._topology: _MemoryTopology | None = None
        self._piped: dict[str, list[str]] = {}
        self._ends: dict[str, int] = {}
        self._written: dict[str, list[WrittenRecord]] = {}

    def __enter__(self) -> TopologyTestDriver:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self._directory.cleanup()

    def pipe(
        self,
        topic: str,
        value: Content,
        *,
        key: Content = None,
        at: int | datetime = 0,
        headers: Iterable[tuple[str, bytes]] = (),
    ) -> None:
        """Put a record at the end of a topic of one partition; ``at`` is its timestamp, a number in milliseconds."""
        if self._topology is not None and topic in self._topology.whole:
            raise TopologyError(
                f"{topic} is a global table, which is read when the first batch begins: pipe its records before that"
            )
        offset = self._ends.get(topic, 0)
        self._ends[topic] = offset + 1
        record = {
            "key": _encoded(key),
            "value": _encoded(value),
            "topic": topic,
            "partition": 0,
            "offset": offset,
            "at": _milliseconds(at),
            "headers": [{"key": name, "value": _encoded(each)} for name, each in headers] or None,
        }
        self._piped.setdefault(topic, []).append(json.dumps(record))

    def advance(self, *, idle_at: int | datetime | None = None) -> None:
        """Process the records piped since the last call as one batch, and close windows whose time has passed.

        ``idle_at`` is the event time that all sources have reached without records, if the topology has the option
        ``idleAfter`` (the setting ``idle_after`` of a pipeline).
        """
        if self._topology is None:
            self._topology = _MemoryTopology("driver", self._spark, self._piped, **self._settings)
            self._build(self._topology)
        topology = self._topology
        unread = sorted(set(self._piped) - set(topology.inputs) - topology.whole)
        if unread:
            raise TopologyError(f"the topology does not read {unread[0]}; it reads {', '.join(topology.inputs)}")
        for topic, records in self._piped.items():
            for source in topology.inputs.get(topic, ()):
                source.add(records)
        self._piped.clear()
        if idle_at is not None:
            for source in [source for sources in topology.inputs.values() for source in sources]:
                source.add([json.dumps({"at": _milliseconds(idle_at)})])
        query = (
            topology.outgoing()
            .writeStream.outputMode("append")
            .option("checkpointLocation", f"{self._directory.name}/checkpoint")
            .trigger(availableNow=True)
            .foreachBatch(self._wrote)
            .start()
        )
        query.awaitTermination()

    def read(self, topic: str) -> list[WrittenRecord]:
        """The records written to the topic since the last read."""
        return self._written.pop(topic, [])

    def _wrote(self, rows: DataFrame, batch: int) -> None:
        for row in rows.select("topic", "key", "value").collect():
            key, value = (None if part is None else bytes(part) for part in (row.key, row.value))
            self._written.setdefault(row.topic, []).append(WrittenRecord(key, value))


class _MemoryTopology(Topology):
    """A topology whose topics are in memory."""

    copies_tables: ClassVar[bool] = False

    def __init__(self, name: str, spark: SparkSession, piped: Mapping[str, list[str]], **settings: Any) -> None:
        super().__init__(name, spark, bootstrap_servers="nowhere:0", **settings)
        self.inputs: dict[str, list[_MemorySource]] = {}
        self.whole: set[str] = set()
        self._piped = piped

    def _open_stream(self, names: list[str], *, starting: str, headers: bool) -> DataFrame:
        source = _MemorySource(self.spark)
        for name in names:
            self.inputs.setdefault(name, []).append(source)
        return _records(source.frame, headers=headers)

    def _open_table(self, topic: str) -> DataFrame:
        self.whole.add(topic)
        rows = [(text,) for text in self._piped.get(topic, [])]
        return _records(self.spark.createDataFrame(rows, "value STRING"), headers=False)


class _MemorySource:
    """Spark's in-memory source of records, which PySpark does not expose."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        session: Any = spark._jsparkSession
        self._jvm = jvm
        runtime = jvm.org.apache.spark.sql.execution.streaming.runtime
        self._stream = runtime.MemoryStream.apply(jvm.org.apache.spark.sql.Encoders.STRING(), session)
        self.frame = DataFrame(self._stream.toDF(), spark)

    def add(self, records: Iterable[str]) -> None:
        values = self._jvm.java.util.ArrayList()
        for record in records:
            values.add(record)
        self._stream.addData(self._jvm.scala.jdk.javaapi.CollectionConverters.asScala(values).toSeq())


def _records(texts: DataFrame, *, headers: bool) -> DataFrame:
    """The columns of ``format("millbeck")``, from records as JSON."""
    record = sf.from_json("value", _RECORD)
    rows = texts.select(record.alias("record")).select("record.*")
    columns = [
        sf.unbase64("key").alias("key"),
        sf.unbase64("value").alias("value"),
        sf.col("topic"),
        sf.col("partition"),
        sf.col("offset"),
        sf.timestamp_millis(sf.col("at")).alias("timestamp"),
        sf.lit(0).alias("timestampType"),
    ]
    if headers:
        named = sf.transform(
            "headers", lambda each: sf.struct(each["key"].alias("key"), sf.unbase64(each["value"]).alias("value"))
        )
        columns.append(named.alias("headers"))
    return rows.select(*columns)


def _milliseconds(at: int | datetime) -> int:
    return round(at.timestamp() * 1000) if isinstance(at, datetime) else at


def _encoded(content: Content) -> str | None:
    if content is None:
        return None
    if isinstance(content, str):
        content = content.encode()
    elif not isinstance(content, bytes):
        content = json.dumps(content).encode()
    return b64encode(content).decode()
