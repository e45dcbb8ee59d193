"""Numbers with digits after the point, and money."""

from __future__ import annotations

from dataclasses import replace
from decimal import MAX_PREC, Context, Decimal
from typing import Any, Final

from millbeck.pipeline.connect.model.logical import decimal_schema
from millbeck.pipeline.connect.model.numbers import Int32
from millbeck.pipeline.connect.model.schema import BYTES_SCHEMA, INT32_SCHEMA, Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.postgres.values.options import Codec, DecimalMode, ValueOptions

_HEADER: Final = 4
_EXACT: Final = Context(prec=min(MAX_PREC, 200_000))
"""PostgreSQL's largest numbers have 131,072 digits before the point and 16,383 behind it."""

VARIABLE_SCALE: Final = Schema(
    SchemaType.STRUCT,
    name="io.debezium.data.VariableScaleDecimal",
    version=1,
    doc="Variable scaled decimal",
    fields=(Field("scale", INT32_SCHEMA), Field("value", BYTES_SCHEMA)),
)


def precision_and_scale(modifier: int) -> tuple[int, int] | None:
    """What a column of type numeric declares; None when it takes any number. The scale may be negative."""
    if modifier < _HEADER:
        return None
    declared = modifier - _HEADER
    scale = declared & 0x7FF
    return declared >> 16 & 0xFFFF, scale - 2048 if scale & 0x400 else scale


def number_of(data: bytes) -> Decimal:
    """A finite number. Raises ValueError for NaN and the infinities, which no decimal of Connect can be."""
    value = Decimal(data.decode("ascii"))
    if not value.is_finite():
        raise ValueError(f"{value} is no decimal: set decimal.handling.mode=string or double")
    return value


def twos_complement(value: int) -> bytes:
    return value.to_bytes((value + (value < 0)).bit_length() // 8 + 1, "big", signed=True)


def variable_scale(value: Decimal, schema: Schema = VARIABLE_SCALE) -> Struct:
    """A number with its own scale, without zeros at the end."""
    shortest = value.normalize(_EXACT)
    _, _, exponent = shortest.as_tuple()
    assert isinstance(exponent, int)
    if exponent > 0:
        shortest, exponent = shortest.quantize(Decimal(1), context=_EXACT), 0
    made = Struct(schema)
    made.values = [Int32(-exponent), twos_complement(int(shortest.scaleb(-exponent, _EXACT)))]
    return made


def _double(data: bytes) -> float:
    return float(data)


def _text(data: bytes) -> str:
    text = data.decode("ascii")
    return {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}.get(text, text)


def numeric_codec(modifier: int, options: ValueOptions) -> Codec:
    if options.decimal is DecimalMode.DOUBLE:
        return Codec(Schema(SchemaType.FLOAT64), _double, 0.0)
    if options.decimal is DecimalMode.STRING:
        return Codec(Schema(SchemaType.STRING), _text, "0")
    declared = precision_and_scale(modifier)
    if declared is None:
        return Codec(VARIABLE_SCALE, lambda data: variable_scale(number_of(data)), variable_scale(Decimal(0)))
    precision, scale = declared
    plain = decimal_schema(scale)
    schema = replace(plain, parameters={**(plain.parameters or {}), "connect.decimal.precision": str(precision)})
    unit = Decimal((0, (1,), -scale))

    def decode(data: bytes) -> Decimal:
        return number_of(data).quantize(unit, context=_EXACT)

    return Codec(schema, decode, Decimal(0).quantize(unit))


def money_codec(options: ValueOptions) -> Codec:
    """Money is a whole number of the currency's smallest unit. The session's lc_monetary is C, whose texts have two
    digits after the point whatever the currency has: its digits are that number.
    """
    digits = options.money_digits

    def amount(data: bytes) -> Decimal:
        text = data.decode("ascii")
        units = int("".join(character for character in text if character.isdigit()))
        is_negative = text.startswith(("-", "("))
        return Decimal(-units if is_negative else units).scaleb(-digits)

    decode: Any = amount
    zero = Decimal(0).scaleb(-digits)
    if options.decimal is DecimalMode.DOUBLE:
        decode = lambda data: float(amount(data))  # noqa: E731
        return Codec(Schema(SchemaType.FLOAT64), decode, 0.0)
    if options.decimal is DecimalMode.STRING:
        decode = lambda data: f"{amount(data):f}"  # noqa: E731
        return Codec(Schema(SchemaType.STRING), decode, f"{zero:f}")
    return Codec(decimal_schema(digits), decode, zero)
