"""`python -m bench.spark`: Spark's ways to and from one node, each in rows and megabytes per second.

In one Spark session on one node: Spark's own Kafka connector, ``format("millbeck")``, and the ceiling of a Python
source, which makes the same rows out of nothing and decodes nothing. Reading is from one topic into Spark's noop
sink; writing is of rows that the same ceiling makes. Every figure is the best of several runs, after one that warms up.
A stream's figure is of a whole query, from start to end; most of a second of that is the start of the Python process in
which a source plans, so there is a line without it.
Goals: batch source at least 0.8 of the connector; streaming source and sink at least 0.8 of the smaller of connector
and ceiling. Then how long a record takes through a pipeline at the highest rate it keeps up with (`spark_latency`), and
how long a session and a whole pipeline take to start beyond what Spark itself takes (`spark_start`).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from bench import spark_latency, spark_start
from tools import peers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MEGA = 1_000_000
PARTITIONS = 2
ROWS_PER_BATCH = 20_000


class Piece(InputPartition):
    def __init__(self, first: int, count: int) -> None:
        super().__init__((first, count))
        self.first = first
        self.count = count


def made_of_nothing(piece: Piece, value_bytes: int) -> Iterator[Any]:
    """Rows of the source's schema whose payloads are the same bytes again and again."""
    import numpy as np
    import pyarrow as pa

    from millbeck.client.columns.arrow import schema

    full: Any = None
    for begin in range(0, piece.count, ROWS_PER_BATCH):
        count = min(ROWS_PER_BATCH, piece.count - begin)
        if full is None:
            values = pa.array([b"x" * value_bytes] * ROWS_PER_BATCH, pa.binary())
            keys = pa.array([b"key-%06d" % number for number in range(ROWS_PER_BATCH)], pa.binary())
            zeros = pa.array(np.zeros(ROWS_PER_BATCH, dtype=np.int64))
            small = pa.array(np.zeros(ROWS_PER_BATCH, dtype=np.int32))
            topics = pa.array(["topic"] * ROWS_PER_BATCH)
            times = zeros.cast(pa.timestamp("us", tz="UTC"))
            full = pa.RecordBatch.from_arrays([keys, values, topics, small, zeros, times, small], schema=schema(False))
        yield full.slice(0, count)


class Ceiling(DataSource):
    """A Python source that does nothing but hand rows over."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> StructType:
        from millbeck.pipeline.source_schema import source_schema

        return source_schema(False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return CeilingReader(int(self.options["rows"]), int(self.options["bytes"]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return CeilingStream(int(self.options["rows"]), int(self.options["bytes"]))


class CeilingReader(DataSourceReader):
    def __init__(self, rows: int, value_bytes: int) -> None:
        self.rows = rows
        self.value_bytes = value_bytes

    def partitions(self) -> Sequence[InputPartition]:
        share = self.rows // PARTITIONS
        return [Piece(number * share, share) for number in range(PARTITIONS)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Piece)
        return made_of_nothing(partition, self.value_bytes)


class CeilingStream(DataSourceStreamReader):
    def __init__(self, rows: int, value_bytes: int) -> None:
        self.rows = rows
        self.value_bytes = value_bytes

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        return {"at": self.rows}

    def partitions(self, start: Any, end: Any) -> Sequence[InputPartition]:
        share = (end["at"] - start["at"]) // PARTITIONS
        return [Piece(number * share, share) for number in range(PARTITIONS)] if share else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Piece)
        return made_of_nothing(partition, self.value_bytes)


class Runs:
    """One node, one session, and what is timed in it."""

    def __init__(self, spark: SparkSession, bootstrap: str, rows: int, value_bytes: int, repeats: int) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.rows = rows
        self.value_bytes = value_bytes
        self.repeats = repeats
        self.topic = f"in-{value_bytes}"
        self.in_batches: dict[str, float] = {}
        """Rows per second of each way's best stream, its start and end left out."""

    def fill(self) -> None:
        self._write("millbeck", self.topic, self._made())

    def best(self, run: Callable[[], None]) -> float:
        """Rows per second of the best run."""
        seconds: list[float] = []
        for _ in range(self.repeats + 1):
            begun = time.monotonic()
            run()
            seconds.append(time.monotonic() - begun)
        return self.rows / min(seconds[1:])

    def batch_read(self, by: str) -> None:
        self._frame(by).write.format("noop").mode("overwrite").save()

    def stream_read(self, by: str) -> None:
        seconds = self._run_stream(self._stream(by), "noop", {})
        self.in_batches[by] = max(self.in_batches.get(by, 0.0), self.rows / seconds)

    def batch_write(self, by: str) -> None:
        self._write(by, f"out-{by}-{self.value_bytes}", self._made())

    def stream_write(self, by: str, delivery: str = "at_least_once") -> None:
        rows = self._stream("ceiling").select("key", "value")
        options = {"kafka.bootstrap.servers": self.bootstrap, "topic": f"out-{by}-{self.value_bytes}"}
        if delivery != "at_least_once":
            from millbeck.pipeline.log_partitions import to_log_partitions

            options |= {"delivery": delivery, "kafka.transactional.id": "bench"}
            rows = to_log_partitions(rows, partitions=PARTITIONS)
        self._run_stream(rows, by, options)

    def _made(self) -> DataFrame:
        return self._frame("ceiling").select("key", "value")

    def _frame(self, by: str) -> DataFrame:
        return self.spark.read.format(by).options(**self._options(by)).load()

    def _stream(self, by: str) -> DataFrame:
        reader = self.spark.readStream.format(by).options(**self._options(by))
        return reader.option("startingOffsets", "earliest").load()

    def _options(self, by: str) -> dict[str, str]:
        if by == "ceiling":
            return {"rows": str(self.rows), "bytes": str(self.value_bytes)}
        return {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.topic}

    def _write(self, by: str, topic: str, frame: DataFrame) -> None:
        options = {"kafka.bootstrap.servers": self.bootstrap, "topic": topic}
        frame.write.format(by).options(**options).mode("append").save()

    def _run_stream(self, frame: DataFrame, sink: str, options: dict[str, str]) -> float:
        """Run it to its end; how many seconds its batches took."""
        with tempfile.TemporaryDirectory(prefix="bench-spark-") as checkpoint:
            writer = frame.writeStream.format(sink).options(**options).option("checkpointLocation", checkpoint)
            query = writer.trigger(availableNow=True).start()
            query.awaitTermination()
            batches_ms: int = sum(progress.durationMs["triggerExecution"] for progress in query.recentProgress)
            return batches_ms / 1000


def measure(runs: Runs) -> Iterator[tuple[str, dict[str, float]]]:
    """What was measured, and each way's rows per second."""
    steps: dict[str, tuple[Callable[[str], None], tuple[str, ...]]] = {
        "batch source": (runs.batch_read, ("kafka", "millbeck", "ceiling")),
        "stream source": (runs.stream_read, ("kafka", "millbeck", "ceiling")),
        "batch sink": (runs.batch_write, ("kafka", "millbeck")),
        "stream sink": (runs.stream_write, ("kafka", "millbeck")),
    }
    for name, (run, ways) in steps.items():
        yield name, {way: runs.best(partial(run, way)) for way in ways}
        if name == "stream source":
            yield "  without start and end", runs.in_batches
    yield "stream sink, exactly once", {"millbeck": runs.best(partial(runs.stream_write, "millbeck", "exactly_once"))}


def show(value_bytes: int, name: str, ways: dict[str, float]) -> None:
    parts = [f"{way} {rate:,.0f} ({rate * value_bytes / MEGA:,.0f})" for way, rate in ways.items()]
    others = [rate for way, rate in ways.items() if way != "millbeck"]
    bar = ways["kafka"] if name == "batch source" else min(others, default=0.0)
    ratio = f"  -> {ways['millbeck'] / bar:.2f} of the bar" if bar else ""
    print(f"  {name:26} {'  '.join(parts)}{ratio}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description="Spark's ways to and from a node.")
    parser.add_argument("--megabytes", type=int, default=200, help="of values, for each size of record")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--no-start", action="store_true", help="leave out how long sessions and pipelines take to start"
    )
    parser.add_argument(
        "--no-latency", action="store_true", help="leave out how long a record takes through a pipeline"
    )
    chosen = parser.parse_args()
    from millbeck.pipeline.session import spark_session
    from millbeck.records.columns import COMPILED
    from millbeck.testing.broker_process import broker

    jars = ",".join(str(jar) for jar in sorted(peers.install("spark-connector").glob("*.jar")))
    settings = {"spark.jars": jars, "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, columns {'compiled' if COMPILED else 'in Python'}")
    with broker({"num.partitions": str(PARTITIONS)}) as node:
        spark = spark_session("bench", master="local[2]", settings=settings)
        spark.dataSource.register(Ceiling)
        for value_bytes in (100, 1000):
            rows = chosen.megabytes * MEGA // value_bytes // PARTITIONS * PARTITIONS
            runs = Runs(spark, node.bootstrap, rows, value_bytes, chosen.repeats)
            runs.fill()
            print(f"\n{value_bytes} B values, rows/s (MB/s)", flush=True)
            for name, ways in measure(runs):
                show(value_bytes, name, ways)
        if not chosen.no_latency:
            spark_latency.measure(spark, node.bootstrap, 100)
        spark.stop()
        if not chosen.no_start:
            spark_start.measure(node.bootstrap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
