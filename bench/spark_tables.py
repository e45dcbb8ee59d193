"""`python -m bench.spark_tables`: what changes of a global table cost the batches that look rows up in it.

A table of a million rows, and batches of a hundred records that look rows up; every second batch comes with ten changes
of the table. ``--whole`` reads the table for each batch, as tables with keys in JSON, Avro or Protobuf do.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

from bench.spark_restore import STATE_SETTINGS, machine_facts

RECORDS = 100
CHANGES = 10
USUAL_ROWS = 1_000_000
USUAL_BATCHES = 50
WAIT_SECONDS = 300.0


def measure(rows: int, batches: int, *, is_whole: bool) -> list[str]:
    from pyspark.sql import functions as sf

    from millbeck.client.blocking import Blocking
    from millbeck.client.producer import Producer
    from millbeck.pipeline.session import spark_session
    from millbeck.pipeline.topology.serdes import string
    from millbeck.pipeline.topology.topology import Topology
    from millbeck.testing.broker_process import broker

    class Whole(Topology):
        copies_tables = not is_whole

    with (
        broker({"num.partitions": "1"}) as node,
        Blocking() as blocking,
        tempfile.TemporaryDirectory(prefix="bench-tables-") as checkpoint,
    ):
        spark = spark_session(
            "tables", master="local[2]", settings={**STATE_SETTINGS, "spark.sql.shuffle.partitions": "2"}
        )
        producer = blocking.make(
            lambda environment: Producer({"bootstrap.servers": node.bootstrap}, environment=environment)
        )

        def put(topic: str, keys: list[int], value: str) -> None:
            async def send() -> None:
                for key in keys:
                    await producer.send(topic, key=str(key).encode(), value=value.encode())
                await producer.flush()

            blocking.run(send())

        put("asks", [0], "none")
        put("found", [0], "none")
        table = spark.range(rows).select(
            sf.col("id").cast("string").alias("key"),
            sf.repeat(sf.sha2(sf.col("id").cast("string").cast("binary"), 256), 2).alias("value"),
        )
        options = {"kafka.bootstrap.servers": node.bootstrap, "topic": "table"}
        table.coalesce(1).write.format("millbeck").options(**options).mode("append").save()
        topology = Whole("tables", spark, bootstrap_servers=node.bootstrap)
        found = topology.global_table("table", value=string())
        asks = topology.stream("asks", value=string())
        asks.left_join(found, lambda ask, row: {"ask": ask, "row": row}).to("found")
        query = topology.start(checkpoint, delivery="at_least_once")
        taken: dict[bool, list[int]] = {False: [], True: []}
        first_ms = 0
        for number in range(-2, 2 * batches):
            is_changed = number % 2 == 1
            if is_changed:
                put("table", [(number * 7919 + step) % rows for step in range(CHANGES)], f"changed {number}")
            before = _last_batch(query)
            put("asks", [(number * 104_729 + step * 31) % rows for step in range(RECORDS)], "ask")
            batch_ms = _next(query, before)
            if number == -2:
                first_ms = batch_ms
            elif number >= 0:
                taken[is_changed].append(batch_ms)
        query.stop()
        spark.stop()
    plain, changed = (statistics.median(taken[is_changed]) for is_changed in (False, True))
    return [
        "| rows | first batch ms | batch without changes ms | batch with ten changes ms | ratio |",
        "|---|---|---|---|---|",
        f"| {rows:,} | {first_ms:,} | {plain:,.0f} | {changed:,.0f} | {changed / plain:.2f} |",
    ]


def _last_batch(query: Any) -> int:
    return max((int(progress.batchId) for progress in query.recentProgress), default=-1)


def _next(query: Any, before: int) -> int:
    """The time of the batches with records that came after this one, in milliseconds."""
    ends_at = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < ends_at:
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        reported = [json.loads(each.json) for each in query.recentProgress]
        found = [each for each in reported if each["batchId"] > before and each["numInputRows"]]
        if sum(each["numInputRows"] for each in found) >= RECORDS:
            return sum(int(each["durationMs"]["triggerExecution"]) for each in found)
        time.sleep(0.02)
    raise TimeoutError("no batch was done")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_tables", description="Changes of a global table.")
    parser.add_argument("--rows", type=int, default=USUAL_ROWS)
    parser.add_argument("--batches", type=int, default=USUAL_BATCHES, help="with changes, and as many without")
    parser.add_argument("--whole", action="store_true", help="read the whole table for each batch")
    chosen = parser.parse_args()
    facts, load = machine_facts(), os.getloadavg()[0]
    table = measure(chosen.rows, chosen.batches, is_whole=chosen.whole)
    print("\n".join([*facts, f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after", *table]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
