"""Statements, types of columns and parameters of both databases, without a server."""

from __future__ import annotations

import math
from datetime import UTC
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("psycopg")
pytest.importorskip("pymysql")

import psycopg
import pymysql

from millbeck.pipeline.connect.connectors.debezium_types import (
    VARIABLE_SCALE_DECIMAL_SCHEMA,
    ZONED_TIMESTAMP,
    decimal_of_struct,
    variable_scale_struct,
)
from millbeck.pipeline.connect.connectors.jdbc.dialect import NewColumn, RowRefused, TableName
from millbeck.pipeline.connect.connectors.jdbc.mariadb import MariaDb, tls_context
from millbeck.pipeline.connect.connectors.jdbc.postgresql import PostgreSql, libpq_options
from millbeck.pipeline.connect.connectors.jdbc.urls import parsed_url
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue, RetriableError
from millbeck.pipeline.connect.model.logical import Instant, decimal_schema, timestamp_schema
from millbeck.pipeline.connect.model.numbers import Int32
from millbeck.pipeline.connect.model.schema import INT64_SCHEMA, STRING_SCHEMA, Schema, SchemaType, struct_schema

POSTGRESQL = PostgreSql(parsed_url("jdbc:postgresql://h/d"), UTC)
MARIADB = MariaDb(parsed_url("jdbc:mariadb://h/d"), UTC)
TABLE = TableName("s", 'o"d%')


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("orders", TableName(None, "orders")),
        ("shop.orders", TableName("shop", "orders")),
        ("db.shop.orders", TableName("shop", "orders")),
        ('"a.b"."c""d"', TableName("a.b", 'c"d')),
        ("`a.b`", TableName(None, "a.b")),
    ],
)
def test_names_of_tables(text: str, found: TableName) -> None:
    assert TableName.of(text, "table.name.format") == found


@pytest.mark.parametrize("text", ["", ".", "a.", '"a', "a..b"])
def test_what_is_no_name_of_a_table(text: str) -> None:
    with pytest.raises(ConfigError, match=r"table\.name\.format"):
        TableName.of(text, "table.name.format")


def test_statements_quote_names_and_percent_signs() -> None:
    assert POSTGRESQL.upsert(TABLE, ["id"], ["a%", 'b"']) == (
        'INSERT INTO "s"."o""d%%" ("id", "a%%", "b""") VALUES (%s, %s, %s) ON CONFLICT ("id") DO UPDATE SET '
        '"a%%" = EXCLUDED."a%%", "b""" = EXCLUDED."b"""'
    )
    assert POSTGRESQL.upsert(TABLE, ["id"], []).endswith('ON CONFLICT ("id") DO NOTHING')
    assert MARIADB.upsert(TABLE, ["id"], ["a"]) == (
        'INSERT INTO `s`.`o"d%%` (`id`, `a`) VALUES (%s, %s) ON DUPLICATE KEY UPDATE `a` = VALUES(`a`)'
    )
    assert MARIADB.update(TABLE, ["id"], ["a"]) == 'UPDATE `s`.`o"d%%` SET `a` = %s WHERE `id` = %s'
    assert POSTGRESQL.delete(TABLE, ["a", "b"]) == 'DELETE FROM "s"."o""d%%" WHERE "a" = %s AND "b" = %s'


def test_tables_are_defined_with_keys_defaults_and_types() -> None:
    columns = [
        NewColumn("id", STRING_SCHEMA, is_key=True),
        NewColumn("price", decimal_schema(2, optional=True)),
        NewColumn("level", Schema(SchemaType.INT32, default=Int32(7))),
        NewColumn("word", Schema(SchemaType.STRING, default="it's \\")),
        NewColumn("at", timestamp_schema(optional=True)),
    ]
    assert POSTGRESQL.create(TABLE, columns) == (
        'CREATE TABLE "s"."o""d%" ("id" TEXT NOT NULL, "price" DECIMAL(1000,2), "level" INT DEFAULT 7 NOT NULL, '
        '"word" TEXT DEFAULT \'it\'\'s \\\' NOT NULL, "at" TIMESTAMP, PRIMARY KEY ("id"))'
    )
    assert MARIADB.create(TABLE, columns) == (
        'CREATE TABLE `s`.`o"d%` (`id` VARCHAR(255) NOT NULL, `price` DECIMAL(65,2), `level` INT DEFAULT 7 NOT NULL, '
        "`word` LONGTEXT DEFAULT 'it''s \\\\' NOT NULL, `at` DATETIME(6), PRIMARY KEY (`id`))"
    )
    assert MARIADB.extend(TableName(None, "t"), columns[1:2]) == "ALTER TABLE `t` ADD `price` DECIMAL(65,2)"


def test_a_struct_needs_to_be_flattened() -> None:
    inner = struct_schema([])
    for dialect in (POSTGRESQL, MARIADB):
        with pytest.raises(InvalidValue, match="Flatten"):
            dialect.bind(inner)
        with pytest.raises(InvalidValue, match="Flatten"):
            dialect.column_type(inner, is_key=False)


def test_parameters_that_a_database_cannot_hold() -> None:
    zoned = Schema(SchemaType.STRING, name=ZONED_TIMESTAMP)
    assert MARIADB.bind(zoned)("2024-01-01T01:00:00.5+01:00") == "2024-01-01 00:00:00.500000"
    assert POSTGRESQL.bind(zoned)("2024-01-01T01:00:00.5+01:00") == "2024-01-01T01:00:00.5+01:00"
    berlin = PostgreSql(parsed_url("jdbc:postgresql://h/d"), ZoneInfo("Europe/Berlin"))
    assert berlin.bind(timestamp_schema())(Instant(0)) == "1970-01-01 01:00:00+01:00"
    for value in (math.nan, math.inf, -math.inf):
        assert math.isnan(value) or POSTGRESQL.bind(Schema(SchemaType.FLOAT64))(value) == value
        with pytest.raises(InvalidValue, match="NaN and infinite"):
            MARIADB.bind(Schema(SchemaType.FLOAT64))(value)
    with pytest.raises(InvalidValue, match="no year 10000"):
        MARIADB.bind(timestamp_schema())(Instant(253_402_300_800_000))
    with pytest.raises(InvalidValue, match="scale 40"):
        MARIADB.column_type(decimal_schema(40), is_key=False)
    with pytest.raises(RowRefused, match="UTF-16"):
        POSTGRESQL.ensure_text("\ud800")


@pytest.mark.parametrize("text", ["0", "-0.00100", "1E+40", "123456789012345678901234567890.5", "-1"])
def test_decimals_that_bring_their_scale(text: str) -> None:
    struct = variable_scale_struct(VARIABLE_SCALE_DECIMAL_SCHEMA, Decimal(text))
    assert decimal_of_struct(struct).as_tuple() == Decimal(text).as_tuple()


def test_errors_say_what_lasts_and_what_passes() -> None:
    states = {"22001": RowRefused, "23505": RowRefused, "42P01": ConnectError, "42501": ConnectError,
              "40001": RetriableError, "53100": RetriableError, "57P01": RetriableError, "25006": RetriableError,
              "42P07": RetriableError, "28P01": ConnectError}  # fmt: skip
    for state, kind in states.items():
        assert type(POSTGRESQL.failure(psycopg.errors.lookup(state)("text"))) is kind, state
    assert (
        type(POSTGRESQL.failure(psycopg.OperationalError('password authentication failed for user "u"')))
        is ConnectError
    )
    assert type(POSTGRESQL.failure(psycopg.OperationalError("connection refused"))) is RetriableError
    numbers = {1062: RowRefused, 1406: RowRefused, 1146: ConnectError, 1045: ConnectError, 1205: RetriableError,
               2013: RetriableError, 1114: RetriableError}  # fmt: skip
    for number, kind in numbers.items():
        assert type(MARIADB.failure(pymysql.err.Error(number, "text"))) is kind, number


def test_tls_is_what_the_url_asks_for() -> None:
    options = libpq_options(parsed_url("jdbc:postgresql://h/d?ssl=true&currentSchema=a b&ApplicationName=x"), "u", "p")
    assert options["sslmode"] == "verify-full"
    assert options["sslrootcert"] == "system"
    assert options["options"] == "-c search_path=a\\ b"
    assert (options["user"], options["password"], options["application_name"]) == ("u", "p", "x")
    assert "rewriteBatchedInserts" not in libpq_options(
        parsed_url("jdbc:postgresql://h/d?reWriteBatchedInserts=true"), None, None
    )
    with pytest.raises(ConfigError, match="sslfactory is of Java alone"):
        libpq_options(parsed_url("jdbc:postgresql://h/d?sslfactory=org.x.NonValidating"), None, None)
    assert tls_context(parsed_url("jdbc:mariadb://h/d")) is None
    full = tls_context(parsed_url("jdbc:mariadb://h/d?sslMode=verify-full"))
    assert full is not None
    assert full.check_hostname
    trusting = tls_context(parsed_url("jdbc:mariadb://h/d?sslMode=trust"))
    assert trusting is not None
    assert not trusting.check_hostname
    assert INT64_SCHEMA.type is SchemaType.INT64
