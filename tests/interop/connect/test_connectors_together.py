"""Made-up records go through a served worker to files and tables, and are counted there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from millbeck.testing.broker_process import broker
from tests.interop.connect.requests import Request
from tests.interop.connect.served_worker import ask, served

pytest.importorskip("obstore", reason="the extra objects is not installed")
deltalake = pytest.importorskip("deltalake", reason="the extra delta is not installed")
catalogs = pytest.importorskip("pyiceberg.catalog.sql", reason="the extra iceberg is not installed")

COUNT = 1000
SECONDS_MAX = 60.0


def _until(reached: Callable[[], bool], say: Callable[[], object]) -> None:
    ends_s = time.monotonic() + SECONDS_MAX
    while not reached():
        assert time.monotonic() < ends_s, say()
        time.sleep(0.2)


def _states() -> dict[str, list[str]]:
    found = ask(Request("GET", "/connectors?expand=status"))[2]
    return {
        name: [each["status"]["connector"]["state"], *(task["state"] for task in each["status"]["tasks"])]
        for name, each in found.items()
        if "status" in each
    }


@pytest.mark.timeout(200)
def test_records_are_counted_in_every_target(tmp_path: Path) -> None:
    catalog, warehouse = f"sqlite:///{tmp_path}/catalog.db", f"file://{tmp_path}/warehouse"
    connectors = {
        "made-up": {
            "connector.class": "DatagenConnector",
            "kafka.topic": "users",
            "quickstart": "users",
            "max.interval": "1",
            "iterations": str(COUNT),
        },
        "files": {
            "connector.class": "S3Sink",
            "topics": "users",
            "store.url": f"file://{tmp_path}/store",
            "format.class": "JsonFormat",
            "flush.size": "100",
        },
        "delta": {
            "connector.class": "DeltaSink",
            "topics": "users",
            "delta.table.uri": f"file://{tmp_path}/delta",
            "delta.table.auto.create": "true",
        },
        "iceberg": {
            "connector.class": "IcebergSink",
            "topics": "users",
            "iceberg.tables": "db.users",
            "iceberg.catalog.type": "sql",
            "iceberg.catalog.uri": catalog,
            "iceberg.catalog.warehouse": warehouse,
            "iceberg.tables.auto-create-enabled": "true",
        },
    }

    def rows() -> tuple[int, int]:
        known = catalogs.SqlCatalog("iceberg", uri=catalog, warehouse=warehouse)
        if not known.table_exists("db.users") or not deltalake.DeltaTable.is_deltatable(f"file://{tmp_path}/delta"):
            return 0, 0
        found = deltalake.DeltaTable(f"file://{tmp_path}/delta").to_pyarrow_table()
        return found.num_rows, known.load_table("db.users").scan().to_arrow().num_rows

    with broker({"num.partitions": "1"}) as node, served(node.bootstrap, **{"key.converter": "StringConverter"}):
        for name, settings in connectors.items():
            status, _, body = ask(Request("PUT", f"/connectors/{name}/config", settings))
            assert status == 201, body
        _until(lambda: len(list((tmp_path / "store").rglob("*.json"))) == COUNT // 100, _states)
        _until(lambda: rows() == (COUNT, COUNT), lambda: (_states(), rows()))
        assert {state for states in _states().values() for state in states} == {"RUNNING"}
    lines = [line for path in (tmp_path / "store").rglob("*.json") for line in path.read_text().splitlines()]
    assert len(lines) == COUNT
    assert rows() == (COUNT, COUNT)
