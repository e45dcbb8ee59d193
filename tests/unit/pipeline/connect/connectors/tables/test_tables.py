"""The Iceberg and Delta sinks on tables in a local directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyiceberg")
pytest.importorskip("deltalake")
pytest.importorskip("sqlalchemy")

import deltalake
from pyiceberg.catalog import load_catalog

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors.debezium_types import MICRO_TIMESTAMP
from millbeck.pipeline.connect.connectors.interface import OffsetRange, SinkConnector, SinkReport, SinkShare
from millbeck.pipeline.connect.connectors.tables.delta import DeltaSink
from millbeck.pipeline.connect.connectors.tables.iceberg import IcebergSink
from millbeck.pipeline.connect.errors import ConnectError, RetriableError
from millbeck.pipeline.connect.model.logical import (
    MS_PER_DAY,
    Instant,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import (
    INT64_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.pipeline.connect.connectors.listed_records import ListedRecords, made, sink_record

A0 = TopicPartition("orders", 0)
ID = struct_schema([Field("id", INT64_SCHEMA)])
WIDER = struct_schema([*ID.fields, Field("note", Schema(SchemaType.STRING, True))])


class Tables:
    """One kind of table: how to make a sink of it, and how to read it."""

    def __init__(
        self, sink: Callable[..., SinkConnector], rows: Callable[[], list[dict[str, Any]]], evolve: str
    ) -> None:
        self.sink = sink
        self.rows = rows
        self.evolve = evolve

    def ids(self) -> list[int]:
        return sorted(row["id"] for row in self.rows())


def iceberg(folder: Path) -> Tables:
    catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder.as_uri()}
    settings = {f"iceberg.catalog.{name}": text for name, text in catalog.items()} | {"iceberg.tables": "shop.orders"}

    def sink(**more: str) -> SinkConnector:
        given = {"iceberg.tables.auto-create-enabled": "true"} | {
            name.replace("_", "."): text for name, text in more.items()
        }
        found: SinkConnector = made(IcebergSink, settings | given)
        return found

    def rows() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            load_catalog("iceberg", **catalog).load_table("shop.orders").scan().to_arrow().to_pylist()
        )
        return found

    return Tables(sink, rows, "iceberg_tables_evolve-schema-enabled")


def delta(folder: Path) -> Tables:
    uri = (folder / "orders").as_uri()

    def sink(**more: str) -> SinkConnector:
        given = {"delta.table.auto.create": "true"} | {name.replace("_", "."): text for name, text in more.items()}
        found: SinkConnector = made(DeltaSink, {"delta.table.uri": uri} | given)
        return found

    return Tables(sink, lambda: deltalake.DeltaTable(uri).to_pyarrow_table().to_pylist(), "delta_table_evolve")


@pytest.fixture(params=[iceberg, delta], ids=["iceberg", "delta"])
def tables(request: pytest.FixtureRequest, tmp_path: Path) -> Tables:
    found: Tables = request.param(tmp_path)
    return found


def staged(sink: SinkConnector, records: Sequence[SinkRecord], task: int = 0) -> SinkReport:
    listed = ListedRecords(records)
    share = listed.share
    result = sink.write(share, listed)
    positions = {range_.partition: range_.end for range_ in share.ranges}
    return SinkReport(task=task, share=share, positions=positions, result=result)


def numbered(start: int, end: int, partition: int = 0, schema: Schema = ID) -> list[SinkRecord]:
    return [
        sink_record(n, schema, Struct.of(schema, {"id": partition * 1000 + n}), partition=partition)
        for n in range(start, end)
    ]


def committed(sink: SinkConnector, records: Sequence[SinkRecord]) -> None:
    sink.commit([staged(sink, records)])


def test_files_and_positions_are_one_commit(tables: Tables) -> None:
    sink = tables.sink(file_rows_max="2")
    assert sink.positions({A0: 3}) == {A0: 3}
    first = [staged(sink, numbered(0, 5)), staged(sink, numbered(7, 9, partition=1), task=1)]
    assert len(first[0].result) == 3
    assert tables.ids() == []
    sink.commit(first)
    assert tables.ids() == [0, 1, 2, 3, 4, 1007, 1008]
    other = TopicPartition("orders", 1)
    assert tables.sink().positions({A0: 0, other: 7, TopicPartition("new", 0): 2}) == {
        A0: 5, other: 9, TopicPartition("new", 0): 2}  # fmt: skip
    # The worker died before it committed the group's offsets, and another one repeats the turn.
    with pytest.raises(RetriableError, match="another attempt was faster"):
        sink.commit([staged(tables.sink(), numbered(0, 5))])
    # A snapshot of one partition keeps the others' positions.
    committed(sink, numbered(5, 6))
    assert tables.sink().positions({A0: 0, other: 0}) == {A0: 6, other: 9}
    assert tables.ids() == [0, 1, 2, 3, 4, 5, 1007, 1008]


def test_of_two_workers_one_commits(tables: Tables) -> None:
    one, two = tables.sink(), tables.sink()
    committed(one, numbered(0, 1))
    reports = [staged(one, numbered(1, 3)), staged(two, numbered(1, 3))]
    real = two._table  # type: ignore[attr-defined]
    seen = real()

    def stale() -> Any:
        # The other worker commits between the look at the positions and the commit.
        if reports:
            one.commit([reports.pop(0)])
        return seen

    report = reports[1]
    two._table = stale  # type: ignore[attr-defined]
    with pytest.raises(RetriableError):
        two.commit([report])
    assert tables.ids() == [0, 1, 2]


def test_positions_are_altered_and_reset(tables: Tables) -> None:
    sink = tables.sink()
    sink.alter_positions({A0: 1})  # there is no table yet
    committed(sink, numbered(0, 4))
    sink.alter_positions({A0: 2})
    assert sink.positions({A0: 4}) == {A0: 2}
    sink.alter_positions({A0: None})
    assert sink.positions({A0: 1}) == {A0: 1}
    assert tables.ids() == [0, 1, 2, 3]


def test_tables_are_created_and_extended_only_when_allowed(tables: Tables) -> None:
    off = "iceberg_tables_auto-create-enabled" if "iceberg" in tables.evolve else "delta_table_auto_create"
    careful = tables.sink(**{off: "false"})
    assert list(careful.check())
    with pytest.raises(ConnectError) as caught:
        staged(careful, numbered(0, 1))
    assert not isinstance(caught.value, RetriableError)
    assert not list(tables.sink().check())
    committed(tables.sink(), numbered(0, 1))
    assert not list(careful.check())
    with pytest.raises(ConnectError, match="has no columns note"):
        staged(tables.sink(), numbered(1, 2, schema=WIDER))
    committed(tables.sink(**{tables.evolve: "true"}), numbered(1, 2, schema=WIDER))
    committed(tables.sink(), numbered(2, 3))
    assert [row["note"] for row in tables.rows()] == [None, None, None]
    assert tables.ids() == [0, 1, 2]


def test_values_are_kept(tables: Tables) -> None:
    schema = struct_schema(
        [
            Field("i8", Schema(SchemaType.INT8)),
            Field("f32", Schema(SchemaType.FLOAT32)),
            Field("price", decimal_schema(3, optional=True)),
            Field("day", date_schema()),
            Field("at", time_schema()),
            Field("moment", timestamp_schema()),
            Field("micros", Schema(SchemaType.INT64, name=MICRO_TIMESTAMP)),
            Field("raw", Schema(SchemaType.BYTES, True)),
            Field("many", array_schema(Schema(SchemaType.STRING, True))),
            Field("named", map_schema(STRING_SCHEMA, INT64_SCHEMA)),
            Field("inner", struct_schema([Field("x", Schema(SchemaType.INT8, True))], optional=True)),
        ]
    )
    inner = schema.fields[-1].schema
    value: Mapping[str, Any] = {
        "i8": Int8(-128),
        "f32": Float32(1.1),
        "price": Decimal("-12345678901234567890.001"),
        "day": Instant(-MS_PER_DAY),
        "at": Instant(MS_PER_DAY - 1),
        "moment": Instant(-1),
        "micros": 1_700_000_000_123_456,
        "raw": bytes(range(256)),
        "many": ["a", None],
        "named": {"k": 2**63 - 1},
        "inner": Struct.of(inner, {"x": 7}),
    }
    bad = sink_record(1, None, {"i8": 1})
    listed = ListedRecords([sink_record(0, schema, Struct.of(schema, value)), bad, sink_record(2, None, None)])
    sink = tables.sink()
    share = listed.share
    result = sink.write(share, listed)
    sink.commit([SinkReport(task=0, share=share, positions={A0: 3}, result=result)])
    assert [offset for offset, _ in listed.rejected] == [1, 2]
    [row] = tables.rows()
    assert (row["i8"], row["f32"], row["price"]) == (-128, Float32(1.1), Decimal("-12345678901234567890.001"))
    assert (row["day"].isoformat(), row["raw"], row["many"]) == ("1969-12-31", bytes(range(256)), ["a", None])
    assert row["moment"].isoformat() == "1969-12-31T23:59:59.999000+00:00"
    assert row["micros"].isoformat() == "2023-11-14T22:13:20.123456+00:00"
    assert dict(row["named"]) == {"k": 2**63 - 1}
    assert row["inner"] == {"x": 7}
    assert str(row["at"]) in ("23:59:59.999000", "86399999000")


def test_a_turn_without_files_commits_nothing(tables: Tables) -> None:
    sink = tables.sink()
    share = SinkShare(ranges=(OffsetRange(A0, 0, 3),))
    sink.commit([SinkReport(task=0, share=share, positions={A0: 3}, result=sink.write(share, ListedRecords([])))])
    assert sink.positions({A0: 3}) == {A0: 3}


def test_one_table_is_named() -> None:
    settings: dict[str, str | None] = {
        "name": "n",
        "connector.class": "IcebergSink",
        "topics": "t",
        "iceberg.tables": "a,b",
    }
    assert "name one table" in validated(settings).entry("iceberg.tables").value.errors[0]
