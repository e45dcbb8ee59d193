"""What fastavro writes we read as it does, and the other way round; what it cannot read is a bad record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from itertools import count
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytest.importorskip("fastavro", reason="the extra spark is not installed")

import fastavro
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from millbeck.client.schemas.model import AVRO, Schema
from millbeck.pipeline.errors import BadRecord, SchemaError
from millbeck.pipeline.formats.avro_records import AvroReader, AvroWriter, branches, parsed
from millbeck.pipeline.formats.avro_types import types_of
from millbeck.pipeline.formats.columns import read_column, write_column

LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("string", st.text(st.characters(exclude_categories=["Cs"]), max_size=5)),
    ("bytes", st.binary(max_size=5)),
    ({"type": "fixed", "name": "F", "size": 2}, st.binary(min_size=2, max_size=2)),
    ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, st.sampled_from(["A", "B"])),
    ({"type": "int", "logicalType": "date"}, st.dates(date(1, 1, 2), date(9999, 1, 1))),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    ),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(
            lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)
        ),
    ),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)),
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        st.integers(-(10**9) + 1, 10**9 - 1).map(lambda cents: Decimal(cents).scaleb(-2)),
    ),
]


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema and what its values are."""
    kind = draw(st.sampled_from(["leaf", "leaf", "optional", "record", "array", "map"] if depth else ["leaf"]))
    if kind == "leaf":
        leaf: tuple[Any, st.SearchStrategy[Any]] = draw(st.sampled_from(LEAVES))
        return leaf
    if kind == "record":
        fields = [draw(schemas(depth=depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return (
            {
                "type": "record",
                "name": "R",
                "fields": [{"name": f"f{place}", "type": schema} for place, (schema, _) in enumerate(fields)],
            },
            st.fixed_dictionaries({f"f{place}": values for place, (_, values) in enumerate(fields)}),
        )
    schema, values = draw(schemas(depth=depth - 1))
    if kind == "optional":
        return (schema, values) if isinstance(schema, list) else (["null", schema], st.none() | values)
    if kind == "array":
        return {"type": "array", "items": schema}, st.lists(values, max_size=3)
    return {"type": "map", "values": schema}, st.dictionaries(st.text("ab", max_size=2), values, max_size=3)


def _named(schema: Any, numbers: Iterator[int]) -> Any:
    """The same schema with a name of its own for everything that has one."""
    if isinstance(schema, list):
        return [_named(each, numbers) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {part: _named(schema[part], numbers) for part in ("type", "items", "values", "fields") if part in schema}
    named = {"name": f"N{next(numbers)}"} if schema["type"] in ("record", "enum", "fixed") else {}
    return {**schema, **parts, **named}


def _written(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_columns_hold_what_fastavro_reads_and_are_written_as_it_writes(data: st.DataObject) -> None:
    drawn, values = data.draw(schemas())
    schema = _named(drawn, count())
    chosen = data.draw(st.lists(values, min_size=1, max_size=3))
    whole = fastavro.parse_schema(json.loads(json.dumps(schema)))
    records = [_written(whole, value) for value in chosen]
    ours = parsed(Schema(AVRO, json.dumps(schema)))
    types = types_of(ours.shape)
    wanted = to_arrow_type(types.spark, timezone="UTC")
    column = read_column(pa.array([*records, None], pa.binary()), AvroReader(ours).read, types.timed, wanted)
    assert column.field("problem").null_count == len(column)
    oracle = [fastavro.schemaless_reader(BytesIO(record), whole, whole) for record in records]
    assert column.field("value").to_pylist(maps_as_pydicts="strict") == [*oracle, None]
    again = write_column(column.field("value"), AvroWriter(ours).write, types.timed, types.plain)
    expected = [None if value is None else record for value, record in zip(oracle, records, strict=True)]
    assert again.to_pylist() == [*expected, None]


@settings(max_examples=100, deadline=None)
@given(record=st.binary(max_size=30))
def test_any_bytes_are_read_or_refused(record: bytes) -> None:
    schema = parsed(
        Schema(
            AVRO,
            '{"type": "record", "name": "R", "fields": [{"name": "a", "type": {"type": "array", "items": "string"}},'
            ' {"name": "m", "type": {"type": "map", "values": ["null", "long", "bytes"]}},'
            ' {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["X"]}}]}',
        )
    )
    try:
        value = AvroReader(schema).read(record)
    except BadRecord:
        return
    assert set(value) == {"a", "m", "e"}


def test_bytes_that_are_left_over_are_no_record() -> None:
    reader = AvroReader(parsed(Schema(AVRO, '"int"')))
    assert reader.read(b"\2") == 1
    with pytest.raises(BadRecord, match="1 of its 2 bytes are left over"):
        reader.read(b"\2\2")


UNION = parsed(Schema(AVRO, '["null", "string", "int", "long", "float", "double", {"type": "array", "items": "int"}]'))


@pytest.mark.parametrize(
    ("value", "member"), [("x", "member0"), (2**40, "member1"), (0.1, "member2"), ([1, 2], "member3")]
)
def test_a_union_of_several_is_a_struct_of_members(value: Any, member: str) -> None:
    written = AvroWriter(UNION).write({f"member{place}": None for place in range(4)} | {member: value})
    assert AvroReader(UNION).read(written) == {member: value}
    assert fastavro.schemaless_reader(BytesIO(written), UNION.plain, UNION.plain) == value


def test_two_widths_of_a_number_are_the_wider_one() -> None:
    assert branches(["int", "null", "long"]) == ["long"]
    for text in ('["null", "float", "double"]', '["double", "float", "null"]'):
        both = parsed(Schema(AVRO, text))
        assert AvroReader(both).read(AvroWriter(both).write(0.1)) == 0.1
        assert AvroReader(both).read(AvroWriter(both).write(None)) is None


def test_an_older_writer_is_read_as_the_reader_has_it() -> None:
    old = parsed(Schema(AVRO, '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}'))
    new = parsed(
        Schema(
            AVRO,
            '{"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"},'
            ' {"name": "s", "type": "string", "default": "-"}]}',
        )
    )
    assert AvroReader(new, old).read(AvroWriter(old).write({"n": 7})) == {"n": 7, "s": "-"}


def test_names_and_references_are_written_out() -> None:
    money = '{"type": "record", "name": "shop.Money", "fields": [{"name": "cents", "type": "long"}]}'
    order = (
        '{"type": "record", "name": "shop.Order", "fields": [{"name": "price", "type": "shop.Money"},'
        ' {"name": "tip", "type": ["null", "Money"]}]}'
    )
    schema = parsed(Schema(AVRO, order, (("shop.Money", money),)))
    value = {"price": {"cents": 5}, "tip": {"cents": 1}}
    assert AvroReader(schema).read(AvroWriter(schema).write(value)) == value
    assert types_of(schema.shape).spark.simpleString() == "struct<price:struct<cents:bigint>,tip:struct<cents:bigint>>"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not valid Avro"),
        ('{"type": "recrod", "name": "R", "fields": []}', "not valid Avro"),
        ('{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}', "R is recursive"),
        ('{"type": "array", "items": "null"}', "without content"),
        ('{"type": "map", "values": {"type": "record", "name": "R", "fields": []}}', "without content"),
    ],
)
def test_a_schema_without_columns_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        parsed(Schema(AVRO, text))


def test_a_union_that_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(SchemaError, match="cannot be distinguished"):
        branches(["string", {"type": "enum", "name": "E", "symbols": ["A"]}])


def test_what_does_not_fit_is_not_written() -> None:
    with pytest.raises(BadRecord):
        AvroWriter(parsed(Schema(AVRO, '"int"'))).write("word")
