"""A stream of records of three schema versions, decoded through a registry that counts its calls."""

from __future__ import annotations

import json
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sf

from millbeck.pipeline.topology.serdes import from_registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORDS = 1_000_000
FILES = 10
PROCESSES_MAX = 4
"""Spark has two tasks at a time, and may start another process for one of them."""
FIELDS: list[dict[str, Any]] = [{"name": "n", "type": "long"}]
ADDED = [{"name": "b", "type": "long", "default": 5}, {"name": "c", "type": "string", "default": "-"}]
VERSIONS = [
    json.dumps({"type": "record", "name": "R", "fields": fields})
    for fields in (FIELDS, [*FIELDS, ADDED[0]], [*FIELDS, *ADDED])
]


class CountingRegistry:
    """The calls that decoding needs, counted by path."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                registry.calls[path] += 1
                schema_id = int(path.rpartition("/")[2]) if path.startswith("/schemas/ids/") else len(VERSIONS)
                members = {
                    "id": schema_id,
                    "version": schema_id,
                    "subject": "r-value",
                    "schema": VERSIONS[schema_id - 1],
                }
                body = json.dumps(members).encode()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                del arguments

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[CountingRegistry]:
    running = CountingRegistry()
    yield running
    running.stop()


def varint(number: int) -> bytes:
    left, written = number << 1, bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*written, left])


def record(number: int) -> bytes:
    """Record ``number``, of the version that its remainder says."""
    version = number % 3 + 1
    payload = varint(number)
    if version >= 2:
        payload += varint(number % 100)
    if version == 3:
        payload += b"\6abc"
    return struct.pack(">BI", 0, version) + payload


def expected(number: int) -> tuple[int, int, str]:
    """What the latest version reads from it."""
    return number, number % 100 if number % 3 else 5, "abc" if number % 3 == 2 else "-"


def write(spark: SparkSession, folder: Path, count: int) -> None:
    made = sf.udf(record, "BINARY")
    frame = spark.range(0, count, numPartitions=FILES).select(made("id").alias("value"))
    frame.write.mode("append").parquet(str(folder))


def decoded(spark: SparkSession, folder: Path, registry: CountingRegistry) -> Counter[tuple[int, int, str]]:
    """The sums of a stream over the files, two at a time."""
    found: Counter[tuple[int, int, str]] = Counter()

    def keep(batch: DataFrame, number: int) -> None:
        del number
        sums = batch.select(from_registry(sf.col("value"), registry.url, "r-value").alias("r")).groupBy("r.b", "r.c")
        for row in sums.agg(sf.count("*").alias("rows"), sf.sum("r.n").alias("n")).collect():
            found[row.b, row.c, "rows"] += row.rows
            found[row.b, row.c, "sum"] += row.n

    stream = spark.readStream.schema("value BINARY").option("maxFilesPerTrigger", 2).parquet(str(folder))
    stream.writeStream.foreachBatch(keep).trigger(availableNow=True).start().awaitTermination()
    return found


def plain(count: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for number, b, c in map(expected, range(count)):
        found[b, c, "rows"] += 1
        found[b, c, "sum"] += number
    return found


def check_calls(registry: CountingRegistry) -> None:
    for schema_id in range(1, len(VERSIONS) + 1):
        assert 1 <= registry.calls[f"/schemas/ids/{schema_id}"] <= PROCESSES_MAX


@pytest.mark.parametrize("count", [3000, pytest.param(RECORDS, marks=pytest.mark.long)])
def test_three_versions_in_a_stream_are_one(
    spark: SparkSession, registry: CountingRegistry, tmp_path: Path, count: int
) -> None:
    write(spark, tmp_path / "records", count)
    assert decoded(spark, tmp_path / "records", registry) == plain(count)
    check_calls(registry)
