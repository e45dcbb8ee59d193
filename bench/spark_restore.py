"""`python -m bench.spark_restore`: how long a query takes to have its state again after a restart.

A topic of so many megabytes becomes state, the largest value of each key, in RocksDB with its changelog in the
checkpoint. Then a new process, which has nothing but the checkpoint, is timed from its start to the end of a batch of a
few records; so is one that has the same to do and no state. What the first takes longer is the restore.
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
from typing import Any

VALUE_BYTES = 1024
HASH_BYTES = 64
PARTITIONS = 4
ROWS_PER_BATCH = 250_000
MEGA = 1_000_000
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


def measure(megabytes: int, directory: Path) -> None:
    from millbeck.testing.broker_process import broker

    count = megabytes * MEGA // VALUE_BYTES
    checkpoint, empty = directory / "checkpoint", directory / "empty"
    with broker({"num.partitions": PARTITIONS}, data=directory / "log") as node:
        seconds, _ = child("--fill", node.bootstrap, "in", "0", str(count))
        print(f"{count:,} records of {VALUE_BYTES} B written in {seconds:.0f} s", flush=True)
        seconds, said = child("--run", node.bootstrap, "in", str(checkpoint))
        print(
            f"state of {said['state_rows']:,} rows built in {seconds:.0f} s;"
            f" the checkpoint has {size_of(checkpoint / 'state') / MEGA:,.0f} MB of state",
            flush=True,
        )
        child("--fill", node.bootstrap, "in", "0", "100")
        child("--fill", node.bootstrap, "few", "0", "100")
        with_state, said = child("--run", node.bootstrap, "in", str(checkpoint))
        without, said_without = child("--run", node.bootstrap, "few", str(empty))
        if said["state_rows"] < count or said["rows"] != 100:
            raise RuntimeError(f"the state did not come back: {said}")
    restore_s = with_state - without
    print(
        f"a restart with this state takes {with_state:.1f} s, without any {without:.1f} s:"
        f" {restore_s:.1f} s for the restore, {megabytes / max(restore_s, 0.1):,.0f} MB/s",
        flush=True,
    )
    print(f"  first batch: {said['batch_ms']} ms with, {said_without['batch_ms']} ms without; {said['load_ms']}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_restore", description="Restore of a query's state.")
    parser.add_argument("--megabytes", type=int, default=2000, help="of state")
    parser.add_argument("--directory", type=Path, help="where log and checkpoint go")
    parser.add_argument("--fill", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.fill:
        bootstrap, topic, first, count = chosen.fill
        fill(bootstrap, topic, int(first), int(count))
    elif chosen.run:
        run(*chosen.run)
    else:
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        with tempfile.TemporaryDirectory(prefix="bench-restore-", dir=chosen.directory) as directory:
            measure(chosen.megabytes, Path(directory))
    return 0


if __name__ == "__main__":
    sys.exit(main())
