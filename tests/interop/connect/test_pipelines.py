"""Connectors in a worker: generated records go to a database, files and tables, and from there back to the log.

The worker's tasks run in this process. It is stopped and started again on the way, with commits of the group lost, so
what is stored in the targets must tell where to go on.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")
pytest.importorskip("psycopg")

import deltalake
import psycopg
import pyarrow.parquet as pq
from pyiceberg.catalog import load_catalog

from millbeck.client.sync import Consumer
from millbeck.kernel.ids import TopicPartition
from millbeck.testing import broker
from millbeck.testing.topics import create_topic
from tests.interop.connect.databases import PASSWORD, USER
from tests.interop.connect.requests import Request
from tests.interop.connect.served_worker import ask, served

RECORDS = 3000
WITHIN_S = 90


def create(name: str, **settings: str) -> None:
    config = {key.replace("_", "."): text for key, text in settings.items()}
    status, _, body = ask(Request("POST", "/connectors", {"name": name, "config": config}))
    assert status == 201, body


def wait_for(what: str, found: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + WITHIN_S
    while (last := found()) != wanted:
        if time.monotonic() > deadline:
            _, _, states = ask(Request("GET", "/connectors?expand=status", None))
            raise AssertionError(f"{what}: {last}, not {wanted}: {json.dumps(states)[:3000]}")
        time.sleep(0.5)


def values_of(bootstrap: str, topic: str) -> list[Any]:
    settings = {"bootstrap.servers": bootstrap, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    found: list[Any] = []
    with Consumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        misses = 0
        while misses < 3:
            records = consumer.poll(timeout_s=0.3).get(TopicPartition(topic, 0), ())
            misses = 0 if records else misses + 1
            found += [json.loads(record.value)["payload"] for record in records if record.value]
    return found


def test_records_reach_every_target_once(postgresql: str, tmp_path: Path) -> None:
    login = {"connection_url": postgresql, "connection_user": USER, "connection_password": PASSWORD}
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": (tmp_path / "lake").as_uri()}
    (tmp_path / "lake").mkdir()

    def rows(query: str) -> list[tuple[Any, ...]]:
        place = postgresql.removeprefix("jdbc:")
        with psycopg.connect(place, user=USER, password=PASSWORD) as connection:
            found: list[tuple[Any, ...]] = connection.execute(query.encode()).fetchall()
            return found

    def count_rows() -> int:
        try:
            return int(rows("SELECT count(*) FROM users")[0][0])
        except psycopg.errors.UndefinedTable:
            return 0

    def iceberg_rows() -> list[dict[str, Any]]:
        try:
            table = load_catalog("iceberg", **catalog).load_table("shop.users")
        except Exception:
            return []
        found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
        return found

    def delta_rows() -> list[dict[str, Any]]:
        try:
            found: list[dict[str, Any]] = deltalake.DeltaTable(str(tmp_path / "delta")).to_pyarrow_table().to_pylist()
        except Exception:
            return []
        return found

    def parquet_rows() -> list[dict[str, Any]]:
        return [
            row for each in sorted((tmp_path / "files").rglob("*.parquet")) for row in pq.read_table(each).to_pylist()
        ]

    with broker() as log:
        for topic in ("users", "back"):
            create_topic(log.bootstrap, topic)
        with served(log.bootstrap, **{"group.id": "connect"}):
            create("generator", connector_class="Datagen", kafka_topic="users", quickstart="users", max_interval="0",
                   iterations=str(RECORDS))  # fmt: skip
            create("rows", connector_class="JdbcSink", topics="users", auto_create="true", pk_mode="kafka",
                   millbeck_exactly_once="true", **login)  # fmt: skip
            create("files", connector_class="S3Sink", topics="users", format_class="ParquetFormat", flush_size="500",
                   store_url=(tmp_path / "files").as_uri())  # fmt: skip
            create("ice", connector_class="IcebergSink", topics="users", iceberg_tables="shop.users",
                   **{"iceberg.tables.auto-create-enabled": "true"},
                   **{f"iceberg.catalog.{name}": text for name, text in catalog.items()})  # fmt: skip
            create("delta", connector_class="DeltaSink", topics="users", delta_table_auto_create="true",
                   delta_table_uri=(tmp_path / "delta").as_uri())  # fmt: skip
            wait_for("rows", count_rows, RECORDS)
            wait_for("files", lambda: len(parquet_rows()), RECORDS)
            wait_for("iceberg", lambda: len(iceberg_rows()), RECORDS)
            wait_for("delta", lambda: len(delta_rows()), RECORDS)
        written = values_of(log.bootstrap, "users")
        assert len(written) == RECORDS
        wanted = Counter(tuple(sorted(row.items())) for row in written)
        for found in (parquet_rows(), iceberg_rows(), delta_rows()):
            assert Counter(tuple(sorted(row.items())) for row in found) == wanted
        in_rows = rows("SELECT gender, regionid, registertime, userid FROM users ORDER BY __connect_offset")
        assert in_rows == [(row["gender"], row["regionid"], row["registertime"], row["userid"]) for row in written]
        # Started again, nothing is written twice; rows go back to the log, and none is read twice.
        with served(log.bootstrap, **{"group.id": "connect"}):
            reading = {"mode": "incrementing", "incrementing_column_name": "__connect_offset", "topic_prefix": "back"}
            query = {"query": "SELECT * FROM users", "poll_interval_ms": "200", "batch_max_rows": "700"}
            create("back", connector_class="JdbcSource", **reading, **query, **login)
            wait_for("back", lambda: len(values_of(log.bootstrap, "back")), RECORDS)
        assert [row["userid"] for row in values_of(log.bootstrap, "back")] == [row["userid"] for row in written]
        assert count_rows() == len(parquet_rows()) == len(iceberg_rows()) == len(delta_rows()) == RECORDS
