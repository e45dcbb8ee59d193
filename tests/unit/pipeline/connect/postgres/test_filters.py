"""Which tables and columns are captured."""

from __future__ import annotations

import pytest

from millbeck.pipeline.connect.postgres.filters import key_columns_of, patterns_of
from millbeck.pipeline.connect.postgres.tables import TableId
from tests.unit.pipeline.connect.postgres.messages import settings_of

ORDERS = TableId("public", "orders")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, True),
        ({"table_include_list": "public.orders"}, True),
        ({"table_include_list": "PUBLIC.Orders"}, True),
        ({"table_include_list": "public.order"}, False),
        ({"table_include_list": r"x\.y, public\.ord.*"}, True),
        ({"table_include_list": r"public.o\w{1\,9}s"}, True),
        ({"table_exclude_list": "public.orders"}, False),
        ({"schema_include_list": "shop"}, False),
        ({"schema_exclude_list": "public"}, False),
    ],
)
def test_tables_by_their_whole_names_in_any_case(settings: dict[str, str], expected: bool) -> None:
    assert settings_of(**settings).capture.has_table(ORDERS) is expected


def test_the_systems_tables_are_never_captured() -> None:
    capture = settings_of().capture
    assert not capture.has_table(TableId("pg_catalog", "pg_class"))
    assert not capture.has_table(TableId("information_schema", "x"))


def test_the_table_of_signals_is_read_and_not_captured() -> None:
    capture = settings_of(table_include_list="public.orders", signal_data_collection="public.signals").capture
    assert capture.needs_table(TableId("public", "signals"))
    assert not capture.has_table(TableId("public", "signals"))


def test_columns() -> None:
    assert not settings_of(column_exclude_list="public.orders.note").capture.has_column(ORDERS, "note")
    included = settings_of(column_include_list=r"public\.orders\.(id|note)").capture
    assert [included.has_column(ORDERS, name) for name in ("id", "note", "price")] == [True, True, False]


def test_columns_of_keys() -> None:
    found = key_columns_of("public.orders:a,b; (.*).items:c")
    assert [(pattern.pattern, columns) for pattern, columns in found] == [
        ("public.orders", ("a", "b")),
        ("(.*).items", ("c",)),
    ]
    for wrong in ("public.orders", "public.orders:", "a;b:"):
        with pytest.raises(ValueError, match="form"):
            key_columns_of(wrong)


def test_a_wrong_expression_is_an_error() -> None:
    with pytest.raises(ValueError):
        patterns_of("public.(")
