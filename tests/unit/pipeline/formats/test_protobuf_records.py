"""What Protobuf's own library writes is read and written back as the same message."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

import pyarrow as pa
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from millbeck.client.schemas.descriptors import indexes_of
from millbeck.client.schemas.model import PROTOBUF, Schema
from millbeck.pipeline.errors import BadRecord, SchemaError
from millbeck.pipeline.formats.columns import read_column, write_column
from millbeck.pipeline.formats.protobuf_records import (
    ProtobufReader,
    ProtobufWriter,
    message_at,
    message_of,
)
from millbeck.pipeline.formats.protobuf_types import types_of
from millbeck.pipeline.formats.schema_files import compiled_proto
from tests.unit.pipeline.formats.proto_case import PROTO, VALUES

COMPILED = compiled_proto(Schema(PROTOBUF, PROTO))
ORDER = message_of(COMPILED, "Order")
MESSAGE = GetMessageClass(ORDER)


@settings(max_examples=150, deadline=None)
@given(values=st.lists(VALUES, min_size=1, max_size=3))
def test_a_message_through_columns_is_the_same_message(values: list[dict[str, Any]]) -> None:
    made = [MESSAGE(**value) for value in values]
    records = pa.array([*[one.SerializeToString() for one in made], None], pa.binary())
    types = types_of(ORDER)
    wanted = to_arrow_type(types.spark, timezone="UTC")
    column = read_column(records, ProtobufReader(ORDER).read, types.timed, wanted)
    assert column.field("problem").null_count == len(column)
    again = write_column(column.field("value"), ProtobufWriter(ORDER).write, types.timed, types.plain)
    assert [None if one is None else MESSAGE.FromString(one) for one in again.to_pylist()] == [*made, None]
    for row, one in zip(column.field("value").to_pylist(), made, strict=False):
        assert [row[name] for name in "abcdefghijk"] == [getattr(one, name) for name in "abcdefghijk"]


def test_what_was_not_set_is_null_only_where_that_can_be_known() -> None:
    read = ProtobufReader(ORDER).read(b"")
    nothing = {"maybe", "line", "card", "note", "at", "lasts", "wrapped"}
    assert {name for name, value in read.items() if value is None} == nothing
    assert (read["a"], read["state"], read["lines"], read["counts"]) == (0, "NEW", [], {})
    assert ProtobufReader(ORDER).read(MESSAGE(maybe=0, card="", state=77).SerializeToString()) == {
        **read,
        "maybe": 0,
        "card": "",
        "state": "77",
    }


@settings(max_examples=100, deadline=None)
@given(record=st.binary(max_size=30))
def test_any_bytes_are_read_or_refused(record: bytes) -> None:
    try:
        value = ProtobufReader(ORDER).read(record)
    except BadRecord:
        with pytest.raises(DecodeError):
            MESSAGE.FromString(record)
        return
    assert set(value) == {field.name for field in ORDER.fields}


@pytest.mark.parametrize("value", [{"a": "word"}, {"a": 2**40}, {"state": "NONE"}, {"line": 5}])
def test_what_does_not_fit_is_not_written(value: dict[str, Any]) -> None:
    with pytest.raises(BadRecord):
        ProtobufWriter(ORDER).write(value)


def test_a_message_of_nothing_is_there_all_the_same() -> None:
    text = 'syntax = "proto3"; message M { message N { optional int32 n = 1; } N inner = 1; }'
    message = message_of(compiled_proto(Schema(PROTOBUF, text)), "M")
    for inner in (None, {"n": None}, {"n": 0}):
        assert ProtobufReader(message).read(ProtobufWriter(message).write({"inner": inner})) == {"inner": inner}


def test_messages_are_found_by_name_and_by_place() -> None:
    assert message_of(COMPILED, None).full_name == "shop.Line"
    assert message_of(COMPILED, "shop.Order.Note").full_name == "shop.Order.Note"
    for name, indexes in (("Line", [0]), ("Order", [1]), ("Order.Note", [1, 0])):
        message = message_of(COMPILED, name)
        assert indexes_of(message) == indexes
        assert message_at(COMPILED, indexes).full_name == message.full_name
    with pytest.raises(SchemaError, match=r"no message Nothing; there are shop\.Line, shop\.Order, shop\.Order\.Note"):
        message_of(COMPILED, "Nothing")
    for wrong in ([2], [0, 0], [-1]):
        with pytest.raises(SchemaError, match="no message at"):
            message_at(COMPILED, wrong)
    with pytest.raises(SchemaError, match="not a descriptor set"):
        message_of(b"\xff\xff", None)
