"""Which columns a record has, what they are called, and what is wrong with settings."""

from __future__ import annotations

from datetime import UTC

import pytest

pytest.importorskip("psycopg")

from millbeck.pipeline.connect.config.validation import validated
from millbeck.pipeline.connect.connectors.jdbc.postgresql import PostgreSql
from millbeck.pipeline.connect.connectors.jdbc.ranges import Conditions, Place
from millbeck.pipeline.connect.connectors.jdbc.rows import RowShapes
from millbeck.pipeline.connect.connectors.jdbc.settings import JDBC_SINK_CONFIG
from millbeck.pipeline.connect.connectors.jdbc.urls import parsed_url
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.schema import INT64_SCHEMA, STRING_SCHEMA, Field, Schema, SchemaType, struct_schema
from millbeck.pipeline.connect.model.struct import Struct
from tests.unit.pipeline.connect.connectors.listed_records import sink_record

DIALECT = PostgreSql(parsed_url("jdbc:postgresql://h/d"), UTC)
KEY = struct_schema([Field("id", INT64_SCHEMA), Field("part", STRING_SCHEMA)])
VALUE = struct_schema([Field("id", INT64_SCHEMA), Field("note", Schema(SchemaType.STRING, True, "none"))])
RECORD = sink_record(
    7, VALUE, Struct.of(VALUE, {"id": 1}), key=(KEY, Struct.of(KEY, {"id": 1, "part": "a"})), partition=3
)


def shapes(**settings: str) -> RowShapes:
    given = {"connection.url": "jdbc:postgresql://h/d"} | {
        name.replace("_", "."): text for name, text in settings.items()
    }
    return RowShapes(JDBC_SINK_CONFIG.parse(given), DIALECT)


CASES = {
    "none": ({}, [], ["id", "note"], [1, "none"]),
    "kafka": (
        {"pk_mode": "kafka"},
        ["__connect_topic", "__connect_partition", "__connect_offset"],
        ["id", "note"],
        ["orders", 3, 7, 1, "none"],
    ),
    "names": ({"pk_mode": "kafka", "pk_fields": "t,p,o"}, ["t", "p", "o"], ["id", "note"], ["orders", 3, 7, 1, "none"]),
    "whole key": ({"pk_mode": "record_key"}, ["id", "part"], ["note"], [1, "a", "none"]),
    "part of the key": ({"pk_mode": "RECORD_KEY", "pk_fields": "part"}, ["part"], ["id", "note"], ["a", 1, "none"]),
    "value": ({"pk_mode": "record_value", "pk_fields": "id"}, ["id"], ["note"], [1, "none"]),
    "chosen": ({"pk_mode": "record_value", "pk_fields": "id", "fields_whitelist": "id"}, ["id"], [], [1]),
    "no defaults": ({"replace_null_with_default": "false"}, [], ["id", "note"], [1, None]),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "keys", "others", "row"), CASES.values(), ids=CASES.keys())
def test_the_columns_of_a_record(
    settings: dict[str, str], keys: list[str], others: list[str], row: list[object]
) -> None:
    known = shapes(**settings)
    shape = known.of(RECORD)
    assert ([each.name for each in shape.keys], [each.name for each in shape.others]) == (keys, others)
    assert known.parameters(shape.columns, RECORD) == row
    assert known.of(RECORD) is shape


def test_a_plain_key_goes_to_the_one_column_that_is_named() -> None:
    record = RECORD.with_(key_schema=STRING_SCHEMA, key="k")
    known = shapes(pk_mode="record_key", pk_fields="name")
    assert known.parameters(known.of(record).columns, record) == ["k", 1, "none"]
    with pytest.raises(ConfigError, match="name the one column"):
        shapes(pk_mode="record_key").of(record)
    with pytest.raises(ConfigError, match="no field other"):
        shapes(pk_mode="record_key", pk_fields="other").of(RECORD)
    with pytest.raises(InvalidValue, match="needs: use a converter with schemas"):
        shapes(pk_mode="record_key").of(RECORD.with_(key_schema=None, key=None))
    with pytest.raises(InvalidValue, match="of the primary key is null"):
        known.parameters(known.of(record).columns, record.with_(key=None))


def test_settings_that_contradict_each_other() -> None:
    settings: dict[str, str | None] = {
        "name": "n",
        "connector.class": "JdbcSink",
        "topics": "t",
        "connection.url": "jdbc:postgresql://h/d",
        "insert.mode": "upsert",
        "delete.enabled": "true",
    }
    found = validated(settings)
    assert "insert.mode=upsert needs a key" in found.entry("pk.mode").value.errors[0]
    assert found.entry("delete.enabled").value.errors
    hidden = validated(settings | {"connection.url": "jdbc:postgresql://h?password=secret"})
    assert "name the database" in hidden.entry("connection.url").value.errors[0]
    assert "secret" not in str(hidden.entry("connection.url").value.errors)
    source: dict[str, str | None] = {
        "name": "n",
        "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector",
        "topic.prefix": "p",
        "connection.url": "jdbc:mysql://h/d",
        "mode": "timestamp",
        "query": "SELECT 1",
        "table.whitelist": "t",
    }
    found = validated(source)
    assert found.entry("timestamp.column.name").value.errors
    assert found.entry("query").value.errors


def test_places_are_offsets_of_confluents_connector() -> None:
    offset = {"incrementing": 5, "timestamp": -1, "timestamp_nanos": 999_001_000}
    assert Place.of_offset(offset) == Place(5, -999)
    for moment in (-1, -1_000_000, 0, 1_700_000_000_123_456):
        assert Place.of_offset(Place(None, moment).offset()) == Place(None, moment)
    assert Place.of_offset({"timestamp": 1500}) == Place(None, 1_500_000)
    assert Place.of_offset(None).offset() == {}


def test_conditions_have_both_ends() -> None:
    both = Conditions(DIALECT, '"id"', '"at"')
    query, parameters = both.rows("*", "t", Place(4, 1_000_000), Place(9, 2_000_000), "FOR SHARE")
    start, end = "1970-01-01 00:00:01+00:00", "1970-01-01 00:00:02+00:00"
    assert query == (
        'SELECT * FROM t WHERE ("at" > %s OR ("at" = %s AND "id" > %s)) AND ("at" < %s OR ("at" = %s AND "id" <= %s))'
        ' ORDER BY "at", "id" FOR SHARE'
    )
    assert parameters == [start, start, 4, end, end, 9]
    query, parameters = Conditions(DIALECT, '"id"', None).last_of("t", Place(), 0, 10)
    assert query == (
        'SELECT * FROM (SELECT "id" AS n FROM t WHERE "id" IS NOT NULL ORDER BY "id" LIMIT 10) AS p'
        " ORDER BY n DESC LIMIT 1"
    )
    assert parameters == []
