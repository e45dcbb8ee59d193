"""Numbers without loss."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.connect.model.logical import decimal_of, unscaled_bytes
from millbeck.pipeline.connect.postgres.values.numeric import money_codec, numeric_codec, precision_and_scale
from millbeck.pipeline.connect.postgres.values.options import DecimalMode, ValueOptions

PRECISE = ValueOptions()


def modifier(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


@pytest.mark.parametrize("declared", [(10, 2), (1000, 0), (5, -2), (3, 1000), (38, 38)])
def test_precision_and_scale_of_a_column(declared: tuple[int, int]) -> None:
    assert precision_and_scale(modifier(*declared)) == declared


def test_a_column_without_a_scale_has_none() -> None:
    assert precision_and_scale(-1) is None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**30), max_value=10**30))
def test_declared_numbers_keep_their_scale(value: Decimal) -> None:
    codec = numeric_codec(modifier(38, 4), PRECISE)
    assert codec.schema.parameters == {"scale": "4", "connect.decimal.precision": "38"}
    made = codec.decode(f"{value:f}".encode())
    assert made == value
    assert decimal_of(codec.schema, unscaled_bytes(codec.schema, made)) == value


def test_a_negative_scale() -> None:
    codec = numeric_codec(modifier(5, -2), PRECISE)
    assert codec.decode(b"12300").as_tuple() == Decimal("1.23E4").as_tuple()


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_numbers_without_a_declared_scale_bring_their_own(value: Decimal) -> None:
    made = numeric_codec(-1, PRECISE).decode(f"{value:f}".encode())
    assert Fraction(int.from_bytes(made["value"], "big", signed=True), 10 ** made["scale"]) == Fraction(value)
    assert made["scale"] >= 0


def test_the_largest_numbers_are_whole() -> None:
    digits = "9" * 131_072 + "." + "1" * 16_383
    made = numeric_codec(-1, PRECISE).decode(digits.encode())
    assert made["scale"] == 16_383
    assert int.from_bytes(made["value"], "big", signed=True) % 10**20 == int("1" * 20)


@pytest.mark.parametrize("text", [b"NaN", b"Infinity", b"-Infinity"])
def test_what_is_no_decimal_is_an_error_in_precise_mode(text: bytes) -> None:
    for declared in (-1, modifier(10, 2)):
        with pytest.raises(ValueError, match=r"decimal\.handling\.mode"):
            numeric_codec(declared, PRECISE).decode(text)


def test_other_modes_take_every_value() -> None:
    double = numeric_codec(-1, ValueOptions(decimal=DecimalMode.DOUBLE))
    assert double.decode(b"1.5") == 1.5
    assert double.decode(b"-Infinity") == float("-inf")
    text = numeric_codec(-1, ValueOptions(decimal=DecimalMode.STRING))
    assert [text.decode(each) for each in (b"1.50", b"NaN", b"-Infinity")] == ["1.50", "NAN", "NEGATIVE_INFINITY"]


def test_money_is_a_number_of_the_smallest_unit() -> None:
    assert money_codec(PRECISE).decode(b"$1,234.56") == Decimal("1234.56")
    assert money_codec(PRECISE).decode(b"-$0.05") == Decimal("-0.05")
    # Yen have no digits after the point; the texts of lc_monetary=C have two all the same.
    assert money_codec(ValueOptions(money_digits=0)).decode(b"$1,234.56") == Decimal(123_456)
    assert money_codec(ValueOptions(decimal=DecimalMode.STRING)).decode(b"$92,233,720,368,547,758.07") == (
        "92233720368547758.07"
    )
    assert money_codec(ValueOptions(decimal=DecimalMode.DOUBLE)).decode(b"$1.50") == 1.5
