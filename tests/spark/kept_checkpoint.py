"""Makes the checkpoints that are kept for each release: ``python -m tests.spark.kept_checkpoint VERSION``.

The checkpoints of two queries, and the data directory of the node that they read and write, go to
``tests/fixtures/checkpoints/VERSION.tar.gz``. Every later release continues them (`test_kept_checkpoints`).
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import functions as sf

from millbeck.pipeline.session import spark_session
from millbeck.pipeline.topology import serdes
from millbeck.pipeline.topology.topology import Topology
from millbeck.pipeline.topology.windows import tumbling
from millbeck.testing import broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
TOPICS = ("numbers", "names", "counts", "windows", "joined", "copies")
BEGIN_MS = 1_700_000_000_000
PLACE = "/the/place/of/checkpoints"
SPARK_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


def put(bootstrap: str, topic: str, records: Sequence[tuple[str, str, int]]) -> None:
    """Records as (key, value, seconds after `BEGIN_MS`)."""
    producer = Producer({"bootstrap.servers": bootstrap})
    for key, value, at_s in records:
        producer.produce(topic, value, key, timestamp=BEGIN_MS + at_s * 1000)
    assert producer.flush(30) == 0


def run_queries(spark: SparkSession, bootstrap: str, checkpoints: Path, *, emit: str = "final") -> None:
    """Process what is there: a topology with three operators with state, and a plain query; both exactly once."""
    topology = Topology("kept", spark, bootstrap_servers=bootstrap)
    numbers = topology.stream("numbers", value=serdes.json("n INT"))
    numbers.group_by_key().count().to("counts")
    numbers.group_by_key().windowed_by(tumbling("10 seconds"), emit=emit).count().to("windows")
    names = topology.table("names", value=serdes.string())
    numbers.join(names, lambda number, name: sf.format_string("%s %d", name, number["n"])).to("joined")
    topology.start(str(checkpoints / "topology"), trigger={"availableNow": True}).awaitTermination()
    rows = spark.readStream.format("millbeck").option("kafka.bootstrap.servers", bootstrap)
    query = (
        rows.option("subscribe", "numbers")
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format("millbeck")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", "copies")
        .option("delivery", "exactly_once")
        .option("checkpointLocation", str(checkpoints / "copy"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()


def move(checkpoints: Path, before: str, after: str) -> None:
    """Rename the directory in the metadata of operators with state: Spark writes absolute paths there."""
    for metadata in checkpoints.glob("*/state/*/_metadata/v2/[0-9]*"):
        metadata.write_text(metadata.read_text().replace(before, after))
        # It has the checksum of the file as it was.
        metadata.with_name(f".{metadata.name}.crc").unlink(missing_ok=True)


def main(version: str) -> None:
    spark = spark_session("kept checkpoints", master="local[2]", settings=SPARK_SETTINGS)
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        with broker(data=root / "data") as node:
            topics = [NewTopic(name, 1, 1, config={"retention.ms": "-1"}) for name in TOPICS]
            admin = AdminClient({"bootstrap.servers": node.bootstrap})
            for made in admin.create_topics(topics).values():
                made.result(30)
            put(node.bootstrap, "names", [("a", "Ada", 0), ("b", "Bob", 0)])
            put(node.bootstrap, "numbers", [("a", '{"n": 1}', 1), ("b", '{"n": 2}', 2), ("a", '{"n": 3}', 3)])
            run_queries(spark, node.bootstrap, root / "checkpoints")
            # Its time ends the window of the first ten seconds, whose counts the next batch gives out.
            put(node.bootstrap, "numbers", [("b", '{"n": 4}', 60)])
            run_queries(spark, node.bootstrap, root / "checkpoints")
        move(root / "checkpoints", str(root / "checkpoints"), PLACE)
        FIXTURES.mkdir(parents=True, exist_ok=True)
        with tarfile.open(FIXTURES / f"{version}.tar.gz", "w:gz") as archive:
            archive.add(root / "data", "data")
            archive.add(root / "checkpoints", "checkpoints")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
