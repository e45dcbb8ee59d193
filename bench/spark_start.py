"""How long a pipeline takes to start, beside a plain Spark program that does as much: `python -m bench.spark_start`.

Each is a process of its own, timed from its start to its end. The plain one makes a session, and a streaming query
whose source and sink are the smallest that Python can have; the other one is ``millbeck pipeline run --once`` of a file
of a few lines, with a record in its topic. What it takes beyond is ours: the command, finding Java, building the
topology, asking the brokers, a transaction.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

BAR_S = 1.0
REPEATS = 3

SESSION = """
import os, sys, time
sys.path[:0] = {path!r}
begun = time.monotonic()
if {with_format}:
    from millbeck.pipeline.session import spark_session
    spark = spark_session("start", master="local[2]", settings={{"spark.ui.enabled": "false"}})
else:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
print(time.monotonic() - begun)
spark.stop()
"""

PLAIN = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable
from pyspark.sql import SparkSession
from pyspark.sql.datasource import *

class Reader(DataSourceStreamReader):
    def initialOffset(self):
        return {"at": 0}
    def latestOffset(self, start=None, limit=None):
        return {"at": 1}
    def partitions(self, start, end):
        return [InputPartition(0)]
    def read(self, partition):
        yield (b"x",)

class Writer(DataSourceStreamArrowWriter):
    def write(self, batches):
        for _ in batches:
            pass
        return WriterCommitMessage()
    def commit(self, messages, batchId):
        pass
    def abort(self, messages, batchId):
        pass

class Small(DataSource):
    @classmethod
    def name(cls):
        return "small"
    def schema(self):
        return "value binary"
    def streamReader(self, schema):
        return Reader()
    def streamWriter(self, schema, overwrite):
        return Writer()

settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "4", "spark.driver.host": "127.0.0.1"}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.dataSource.register(Small)
rows = spark.readStream.format("small").load().repartition(1)
writer = rows.writeStream.format("small").option("checkpointLocation", sys.argv[1])
writer.trigger(availableNow=True).start().awaitTermination()
spark.stop()
"""

PIPELINE = """
name = "start"
master = "local[2]"
[source]
topic = "start-in"
[sink]
topic = "start-out"
[spark]
"spark.ui.enabled" = "false"
"""


def session_seconds(with_format: bool) -> float:
    script = SESSION.format(path=[path for path in sys.path if path], with_format=with_format)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1])


def plain_seconds(directory: Path) -> float:
    return _seconds([sys.executable, "-c", PLAIN, str(directory / "checkpoint")], {})


def pipeline_seconds(directory: Path, bootstrap: str) -> float:
    file = directory / "start.toml"
    file.write_text(PIPELINE)
    command = ("pipeline", "run", str(file), "--once", "--bootstrap-server", bootstrap)
    return _seconds([sys.executable, "-m", "millbeck.cli.main", *command], {"MILLBECK_PIPELINES": str(directory)})


def _seconds(arguments: list[str], environment: dict[str, str]) -> float:
    from millbeck.pipeline.java import find_java

    environment = {**os.environ, "JAVA_HOME": str(find_java()), **environment}
    began = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise RuntimeError(f"it did not run:\n{done.stderr[-2000:]}")
    return time.monotonic() - began


def measure(bootstrap: str) -> None:
    plain, ours = session_seconds(False), session_seconds(True)
    print(f"\na session starts in {plain:.1f} s, with the format in {ours:.1f} s: {ours - plain:+.1f} s", flush=True)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in ("start-in", "start-out")]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce("start-in", b"x")
    producer.flush()
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory(prefix="bench-start-") as directory:
            found[0].append(plain_seconds(Path(directory)))
        with tempfile.TemporaryDirectory(prefix="bench-start-") as directory:
            found[1].append(pipeline_seconds(Path(directory), bootstrap))
    plain, ours = min(found[0]), min(found[1])
    verdict = "within" if ours - plain <= BAR_S else "beyond"
    print(
        f"a query of one batch from start to end takes {plain:.1f} s, as a pipeline {ours:.1f} s:"
        f" {ours - plain:+.1f} s, {verdict} {BAR_S:.0f} s",
        flush=True,
    )


def main() -> int:
    from millbeck.testing.broker_process import broker

    with broker() as node:
        measure(node.bootstrap)
    return 0


if __name__ == "__main__":
    sys.exit(main())
