"""Structs, schemas, numbers and logical types where no recorded answer shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest

from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.logical import Instant, decimal_of, decimal_schema, unscaled_bytes
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int32, float_of, float_text, whole_part, wrapped
from millbeck.pipeline.connect.model.schema import (
    FLOAT32_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct, checked, type_of
from millbeck.pipeline.connect.model.value_parser import parse_text
from millbeck.pipeline.connect.model.values import inferred_schema, plain_text

POINT = struct_schema([Field("x", INT32_SCHEMA), Field("label", Schema(SchemaType.STRING, optional=True, default="p"))])


def test_a_plain_number_takes_the_width_of_its_field() -> None:
    point = Struct.of(POINT, {"x": 5})
    assert type(point["x"]) is Int32
    assert type(checked(FLOAT32_SCHEMA, 1.1)) is Float32
    assert type_of(checked(INT8_SCHEMA, 5)) is SchemaType.INT8


@pytest.mark.parametrize("value", [1 << 31, "5", 5.0, True, None, [5]])
def test_a_value_that_does_not_fit_is_refused(value: object) -> None:
    with pytest.raises(InvalidValue, match=r"x|INT32"):
        Struct.of(POINT, {"x": value})


def test_a_null_reads_as_the_default_unless_asked_otherwise() -> None:
    point = Struct.of(POINT, {"x": 1})
    assert (point["label"], point.without_default("label")) == ("p", None)
    assert repr(point) == "Struct{x=1}"


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(InvalidValue, match="y is not a valid field name"):
        Struct.of(POINT, {"y": 1})


def test_a_nested_struct_must_have_the_very_schema() -> None:
    outer = struct_schema([Field("point", POINT)])
    other = Struct.of(struct_schema([Field("x", INT32_SCHEMA)]), {"x": 1})
    with pytest.raises(InvalidValue, match="Struct schemas do not match"):
        Struct.of(outer, {"point": other})


def test_elements_of_arrays_and_maps_are_checked() -> None:
    with pytest.raises(InvalidValue, match="element of array"):
        checked(array_schema(INT32_SCHEMA), [1, "x"])
    with pytest.raises(InvalidValue, match="key of map"):
        checked(map_schema(STRING_SCHEMA, INT32_SCHEMA), {5: 1})


def test_a_field_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="duplication x"):
        struct_schema([Field("x", INT32_SCHEMA), Field("x", INT32_SCHEMA)])


def test_numbers_wrap_and_round_as_in_java() -> None:
    assert (wrapped(300, 8), wrapped(-129, 8), wrapped(1 << 63, 64)) == (44, 127, -(1 << 63))
    assert (whole_part(1e300, 32), whole_part(float("nan"), 64), whole_part(-1e300, 64)) == (
        (1 << 31) - 1,
        0,
        -(1 << 63),
    )
    assert (float_text(Float32(0.1)), float_text(1e10), float_text(float("-inf"))) == ("0.1", "1.0E10", "-Infinity")
    assert Float32(1e300) == float("inf")


def test_a_huge_exponent_costs_nothing() -> None:
    assert whole_part(Decimal("1e999999999"), 64) == 0
    assert float_of(Decimal("-1e999999999")) == float("-inf")
    assert parse_text("1e999999999").value == Decimal("1e999999999")


@pytest.mark.parametrize("text", ["0", "1.50", "-1.28", "-1.29", "123456789012345678901234567890.12", "-0.01"])
def test_a_decimal_survives_its_bytes(text: str) -> None:
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    schema = decimal_schema(-exponent)
    assert decimal_of(schema, unscaled_bytes(schema, value)) == value


def test_a_decimal_with_too_many_digits_is_refused_and_not_rounded() -> None:
    longest = Decimal("1" * 140_000 + ".3")
    assert decimal_of(decimal_schema(1), unscaled_bytes(decimal_schema(1), longest)) == longest
    with pytest.raises(InvalidValue, match="more than 200,000 digits"):
        unscaled_bytes(decimal_schema(0), Decimal("1" * 200_001))


def test_an_instant_is_a_datetime_where_python_has_one() -> None:
    moment = datetime(2026, 11, 19, 20, 30, 1, 999_999, tzinfo=UTC)
    assert Instant.of(moment).datetime() == moment.replace(microsecond=999_000)
    with pytest.raises(OverflowError):
        Instant(1 << 60).datetime()


def test_the_schema_of_a_plain_value() -> None:
    assert inferred_schema([Int8(1), None]) == array_schema(Schema(SchemaType.INT8, optional=True))
    assert inferred_schema({"a": 1}) == map_schema(STRING_SCHEMA, Schema(SchemaType.INT64))
    assert inferred_schema([1, "x"]) is None
    assert inferred_schema([]) is None


def test_bytes_have_no_text() -> None:
    with pytest.raises(InvalidValue, match="has no text"):
        plain_text([b"x"])


def test_a_deep_header_is_a_text() -> None:
    deep = "[" * 5000 + "]" * 5000
    assert parse_text(deep).value == deep
