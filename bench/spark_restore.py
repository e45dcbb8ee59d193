"""`python -m bench.spark_restore`: how long a query takes to have its state again after a restart.

A topic of so many megabytes becomes state, the largest value of each key, in RocksDB with its changelog in the
checkpoint. Then a new process, which has nothing but the checkpoint, is timed from its start to the end of a batch of a
few records; so is one that has the same to do and no state. What the first takes longer is the restore. A run of the
usual size goes into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

VALUE_BYTES = 1024
HASH_BYTES = 64
PARTITIONS = 4
ROWS_PER_BATCH = 250_000
MEGA = 1_000_000
SETTINGS = "BENCH_RESTORE_SETTINGS"
"""The environment variable by which the processes of a run get its settings."""
USUAL_MEGABYTES = 2000
BUSY = ["", "The machine was busy with other things: that the state came back is sure, the times are not."]
STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


def fill(bootstrap: str, topic: str, first: int, count: int) -> None:
    """Keys of their own and values that cannot be made smaller."""
    from pyspark.sql import functions as sf

    from millbeck.pipeline.session import spark_session

    spark = spark_session("fill", master="local[2]", settings=STATE_SETTINGS)
    pieces = [
        sf.unhex(sf.sha2(sf.concat_ws("-", sf.col("id"), sf.lit(number)).cast("binary"), 512))
        for number in range(VALUE_BYTES // HASH_BYTES)
    ]
    rows = spark.range(first, first + count).select(
        sf.col("id").cast("string").alias("key"), sf.concat(*pieces).alias("value")
    )
    options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
    rows.write.format("millbeck").options(**options).mode("append").save()
    spark.stop()


def run(bootstrap: str, topic: str, checkpoint: str) -> None:
    """Take in what is new, and say what it took."""
    from pyspark.sql import functions as sf

    from millbeck.pipeline.session import spark_session

    spark = spark_session("restore", master="local[2]", settings=STATE_SETTINGS)
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    records = spark.readStream.format("millbeck").options(**options, maxOffsetsPerTrigger=str(ROWS_PER_BATCH)).load()
    latest = records.groupBy("key").agg(sf.max("value").alias("value"))
    writer = latest.writeStream.format("noop").outputMode("update").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    last = json.loads(query.recentProgress[-1].json)
    state = last["stateOperators"][0]
    said = {
        "rows": sum(progress.numInputRows for progress in query.recentProgress),
        "state_rows": state["numRowsTotal"],
        "batch_ms": last["durationMs"]["triggerExecution"],
        "load_ms": {
            name: value for name, value in sorted(state.get("customMetrics", {}).items()) if "Load" in name and value
        },
    }
    print(json.dumps(said), flush=True)
    spark.stop()


def child(role: str, *arguments: str) -> tuple[float, dict[str, Any]]:
    """How long a role took in a process of its own, and what it said."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark_restore", role, *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return time.monotonic() - began, json.loads(lines[-1]) if lines else {}


def size_of(directory: Path) -> int:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file())


class Restored(NamedTuple):
    megabytes: int
    rows: int
    build_s: float
    checkpoint_bytes: int
    with_state_s: float
    without_s: float
    with_batch_ms: int
    without_batch_ms: int

    @property
    def restore_s(self) -> float:
        return self.with_state_s - self.without_s

    def table(self) -> list[str]:
        return [
            "| state MB | keys | checkpoint MB | built in s | restart s | restart without state s | restore s | MB/s "
            "| first batch s, with and without |",
            "|---|---|---|---|---|---|---|---|---|",
            f"| {self.megabytes:,} | {self.rows:,} | {self.checkpoint_bytes / MEGA:,.0f} | {self.build_s:.0f} "
            f"| {self.with_state_s:.1f} | {self.without_s:.1f} | {self.restore_s:.1f} "
            f"| {self.megabytes / max(self.restore_s, 0.1):,.0f} "
            f"| {self.with_batch_ms / 1000:.1f}, {self.without_batch_ms / 1000:.1f} |",
        ]


def measure(megabytes: int, directory: Path) -> Restored:
    from millbeck.testing.broker_process import broker

    count = megabytes * MEGA // VALUE_BYTES
    checkpoint, empty = directory / "checkpoint", directory / "empty"
    with broker({"num.partitions": PARTITIONS}, data=directory / "log") as node:
        seconds, _ = child("--fill", node.bootstrap, "in", "0", str(count))
        print(f"{count:,} records of {VALUE_BYTES} B written in {seconds:.0f} s", flush=True)
        build_s, said = child("--run", node.bootstrap, "in", str(checkpoint))
        checkpoint_bytes = size_of(checkpoint / "state")
        print(
            f"state of {said['state_rows']:,} rows built in {build_s:.0f} s;"
            f" the checkpoint has {checkpoint_bytes / MEGA:,.0f} MB of state",
            flush=True,
        )
        child("--fill", node.bootstrap, "in", "0", "100")
        child("--fill", node.bootstrap, "few", "0", "100")
        with_state_s, said = child("--run", node.bootstrap, "in", str(checkpoint))
        without_s, said_without = child("--run", node.bootstrap, "few", str(empty))
        if said["state_rows"] < count or said["rows"] != 100:
            raise RuntimeError(f"the state did not come back: {said}")
    print(f"  what loading took, ms: {said['load_ms']}")
    return Restored(
        megabytes,
        said["state_rows"],
        build_s,
        checkpoint_bytes,
        with_state_s,
        without_s,
        said["batch_ms"],
        said_without["batch_ms"],
    )


def machine_facts() -> list[str]:
    from pyspark import __version__ as spark_version

    from bench import machine

    return [
        f"Spark {spark_version}" if line.startswith("client:") else line for line in machine.facts(with_kafka=False)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_restore", description="Restore of a query's state.")
    parser.add_argument("--megabytes", type=int, default=USUAL_MEGABYTES, help="of state")
    parser.add_argument(
        "--setting", action="append", default=[], metavar="NAME=VALUE", help="of Spark, instead of ours"
    )
    parser.add_argument("--directory", type=Path, help="where log and checkpoint go")
    parser.add_argument("--fill", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.setting:
        os.environ[SETTINGS] = json.dumps(dict(text.split("=", 1) for text in chosen.setting))
    STATE_SETTINGS.update(json.loads(os.environ.get(SETTINGS, "{}")))
    if chosen.fill:
        bootstrap, topic, first, count = chosen.fill
        fill(bootstrap, topic, int(first), int(count))
    elif chosen.run:
        run(*chosen.run)
    else:
        from bench.report import stamp, write_section

        facts, load = machine_facts(), os.getloadavg()[0]
        print(f"{os.cpu_count()} cores, load {load:.1f}")
        with tempfile.TemporaryDirectory(prefix="bench-restore-", dir=chosen.directory) as directory:
            table = measure(chosen.megabytes, Path(directory)).table()
        print("\n".join(table))
        if chosen.megabytes == USUAL_MEGABYTES and not chosen.setting:
            write_section("restore", [*stamp(facts), *table, *(BUSY if load > (os.cpu_count() or 1) else [])])
    return 0


if __name__ == "__main__":
    sys.exit(main())
