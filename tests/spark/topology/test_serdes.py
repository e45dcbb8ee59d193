"""Bytes to columns and back, and which bytes cannot be read."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql import functions as sf

from millbeck.client.schemas.model import AVRO, MemorySchemas, Schema
from millbeck.pipeline.errors import SchemaError, TopologyError
from millbeck.pipeline.topology.serdes import (
    Serde,
    avro,
    from_registry,
    integer,
    json,
    long,
    protobuf,
    raw,
    registry_of,
    serde_for,
    string,
    to_registry,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER_AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "customer", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
    ],
}
ORDER_PROTO = 'syntax = "proto3"; message Order { string customer = 1; repeated uint32 numbers = 2; }'
AT = datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)
AT_BYTES = b"\x9c\xe2\x86\x82\x99c"
MEMORY = MemorySchemas()
MEMORY.register("orders-value", Schema(AVRO, '"long"'))

CASES: list[tuple[Serde, bytes | None, Any, str | None]] = [
    (raw(), b"\x00\xff", b"\x00\xff", None),
    (string(), "süß".encode(), "süß", None),
    (string(), b"\xff\xfe", None, "not a string: it is not UTF-8"),
    (string(), None, None, None),
    *[(long(), struct.pack(">q", number), number, None) for number in (0, 1, -1, 2**63 - 1, -(2**63))],
    (long(), b"short", None, "not a long: it has 5 bytes, not 8"),
    *[(integer(), struct.pack(">i", number), number, None) for number in (0, 7, -7, 2**31 - 1, -(2**31))],
    (integer(), b"12345678", None, "not a integer: it has 8 bytes, not 4"),
    (json("a INT, b STRING"), b'{"a": 1, "b": "x", "more": []}', (1, "x"), None),
    (json("a INT, b STRING"), b'{"a": 1}', (1, None), None),
    (json("a INT, b STRING"), b"{nonsense", None, "no json of struct<a:int,b:string>: it begins with {nonsense"),
    (
        json("a INT, b STRING"),
        b'{"a": "word"}',
        None,
        'no json of struct<a:int,b:string>: it begins with {"a": "word"}',
    ),
    (json("a INT, b STRING"), None, None, None),
    (json("ARRAY<INT>"), b"[1, 2]", [1, 2], None),
    (avro(ORDER_AVRO), b"\2\2c" + AT_BYTES + b"\2\2k\4\0", ("c", AT, {"k": 2}), None),
    (avro(ORDER_AVRO), b"\0" + AT_BYTES + b"\0", (None, AT, {}), None),
    (avro(ORDER_AVRO), None, None, None),
    (avro('"int"'), b"\2\2", None, "1 of its 2 bytes are left over"),
    (protobuf(ORDER_PROTO), b"\x0a\1c\x12\2\5\6", ("c", [5, 6]), None),
    (protobuf(ORDER_PROTO), b"\xff", None, "DecodeError"),
    (json("n INT", registry=MEMORY, subject="orders-value"), b'\0\0\0\0\1{"n": 5}', (5,), None),
    (
        json("n INT", registry=MEMORY, subject="orders-value"),
        b'{"n": 5}',
        None,
        "no id of a schema and json of struct<n:int>: it begins with {",
    ),
    (avro(registry=MEMORY, subject="orders-value"), b"\0\0\0\0\1\x0e", 7, None),
    (avro(registry=MEMORY).bound_to("orders", "value"), b"{...}", None, "begins with 0x7b"),
]


def test_what_is_read_and_what_is_not(spark: SparkSession) -> None:
    """All in one query: each case has a column of its own."""
    frame = spark.createDataFrame(
        [tuple(case[1] for case in CASES)], ", ".join(f"c{n} BINARY" for n in range(len(CASES)))
    )
    columns = []
    for number, (serde, *_) in enumerate(CASES):
        columns.append(serde.read(sf.col(f"c{number}")).alias(f"read{number}"))
    row = frame.select(*columns).collect()[0]
    for number, (serde, given, expected, problem) in enumerate(CASES):
        found, said = row[f"read{number}"]
        plain = tuple(found) if isinstance(expected, tuple) and found is not None else found
        if isinstance(plain, tuple):
            plain = tuple(part.astimezone(UTC) if isinstance(part, datetime) else part for part in plain)
        assert plain == expected, (serde.name, given)
        assert (problem is None and said is None) or (problem or "-") in said, (serde.name, given, said)


def test_what_is_written_is_read_again(spark: SparkSession) -> None:
    readable = [(serde, given) for serde, given, expected, _ in CASES if expected is not None]
    frame = spark.createDataFrame(
        [tuple(given for _, given in readable)], ", ".join(f"c{n} BINARY" for n in range(len(readable)))
    )
    once = frame.select(*[serde.decode(sf.col(f"c{n}")).alias(f"c{n}") for n, (serde, _) in enumerate(readable)])
    twice = once.select(
        *[serde.decode(serde.encode(sf.col(f"c{n}"))).alias(f"c{n}") for n, (serde, _) in enumerate(readable)]
    )
    assert once.collect() == twice.collect()


def test_records_of_a_registry_are_columns_and_back(spark: SparkSession) -> None:
    """Records of three writers, read with the latest schema, and written with it."""
    schemas = MemorySchemas("three versions")
    fields = ['{"name": "a", "type": "int"}']
    added = ['{"name": "b", "type": "int", "default": 5}', '{"name": "c", "type": "string", "default": "-"}']
    for each in (fields, [*fields, added[0]], [*fields, added[1]]):
        schemas.register("orders-value", Schema(AVRO, f'{{"type":"record","name":"R","fields":[{",".join(each)}]}}'))
    records = [b"\0\0\0\0\1\2", b"\0\0\0\0\2\4\6", b"\0\0\0\0\3\6\2x", b"\0\0\0\0\x09\2", b"plain"]
    frame = spark.createDataFrame([(each,) for each in records], "value BINARY")
    decoded = frame.select(from_registry(sf.col("value"), schemas, "orders-value").alias("order"))
    rows = [None if row.order is None else tuple(row.order) for row in decoded.collect()]
    assert rows == [(1, "-"), (2, "-"), (3, "x"), None, None]
    written = decoded.where("order is not null").select(
        to_registry(sf.col("order"), schemas, "orders-value").alias("v")
    )
    assert [bytes(row.v) for row in written.collect()] == [
        b"\0\0\0\0\3" + payload for payload in (b"\2\2-", b"\4\2-", b"\6\2x")
    ]
    schemas.register("text", Schema("JSON", "{}"))
    with pytest.raises(TopologyError, match="is JSON"):
        from_registry(sf.col("value"), schemas, "text")


def test_a_registry_is_an_address_a_directory_or_settings(tmp_path: Path) -> None:
    assert registry_of("http://127.0.0.1:1").name == "http://127.0.0.1:1"
    assert registry_of({"schema.registry.url": "http://127.0.0.1:1"}).name == "http://127.0.0.1:1"
    assert registry_of(str(tmp_path)).name == str(tmp_path)
    with pytest.raises(TopologyError, match=r"schema\.registry\.url"):
        registry_of({})


def test_json_is_for_what_has_parts(spark: SparkSession) -> None:
    with pytest.raises(TopologyError, match="objects, arrays and maps"):
        json("INT").decode(sf.col("c"))


def test_each_type_has_a_way_to_be_written(spark: SparkSession) -> None:
    frame = spark.sql("SELECT struct(1 AS a) AS s, array(1) AS l, map('k', 1) AS m, 1.5D AS d, 'x' AS t, X'00' AS b")
    names = [serde_for(field.dataType).name for field in frame.schema.fields]
    assert names == ["json", "json", "json", "string", "string", "raw"]


def test_a_schema_is_missed_when_the_serde_is_named() -> None:
    with pytest.raises(TopologyError, match="needs a schema, or a registry"):
        avro()
    with pytest.raises(TopologyError, match="needs a schema, or a registry"):
        protobuf()
    with pytest.raises(SchemaError, match="is recursive"):
        avro('{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}')
    with pytest.raises(TopologyError, match="needs subject="):
        json("n INT", registry=MEMORY).decode(sf.lit(None))
    with pytest.raises(TopologyError, match="needs subject="):
        avro(registry=MEMORY).decode(sf.lit(None))
    with pytest.raises(SchemaError, match="no schema is registered for other-key"):
        protobuf(registry=MEMORY).bound_to("other", "key")
