"""The codec of each type, as Debezium maps it."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from millbeck.pipeline.connect.model.numbers import Float32, Int16, Int32
from millbeck.pipeline.connect.model.schema import (
    FLOAT64_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
)
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.postgres.tables import ColumnType, TypeKind
from millbeck.pipeline.connect.postgres.values.literals import array_of, hstore_of
from millbeck.pipeline.connect.postgres.values.numeric import money_codec, numeric_codec
from millbeck.pipeline.connect.postgres.values.options import BinaryMode, Codec, HstoreMode, ValueOptions
from millbeck.pipeline.connect.postgres.values.temporal import temporal_codec

_POINT: Final = re.compile(r"\(([^,()]+),([^,()]+)\)")
_POINT_SCHEMA: Final = Schema(
    SchemaType.STRUCT,
    name="io.debezium.data.geometry.Point",
    version=1,
    doc="Geometry (POINT)",
    fields=(
        Field("x", FLOAT64_SCHEMA),
        Field("y", FLOAT64_SCHEMA),
        Field("wkb", OPTIONAL_BYTES_SCHEMA),
        Field("srid", OPTIONAL_INT32_SCHEMA),
    ),
)
_BITS_MAX: Final = (1 << 31) - 1
_NAMED_TEXTS: Final = {
    "json": "io.debezium.data.Json",
    "jsonb": "io.debezium.data.Json",
    "uuid": "io.debezium.data.Uuid",
    "xml": "io.debezium.data.Xml",
    "ltree": "io.debezium.data.Ltree",
    "tsvector": "io.debezium.data.Tsvector",
}
_PLAIN_TEXTS: Final = frozenset((
    "text", "varchar", "bpchar", "char", "name", "citext", "inet", "cidr", "macaddr", "macaddr8",
    "int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange", "isbn",
))  # fmt: skip
_TEXT_FALLBACKS: Final = {"json": "{}", "jsonb": "{}"}


def _text(data: bytes) -> str:
    return data.decode()


def _boolean(data: bytes) -> bool:
    if data not in (b"t", b"f"):
        raise ValueError("not a boolean")
    return data == b"t"


_NUMBERS: Final = {
    "bool": Codec(Schema(SchemaType.BOOLEAN), _boolean, False),
    "int2": Codec(Schema(SchemaType.INT16), Int16, Int16(0)),
    "int4": Codec(Schema(SchemaType.INT32), Int32, Int32(0)),
    "int8": Codec(Schema(SchemaType.INT64), int, 0),
    "oid": Codec(Schema(SchemaType.INT64), int, 0),
    "float4": Codec(Schema(SchemaType.FLOAT32), lambda data: Float32(float(data)), Float32(0.0)),
    "float8": Codec(Schema(SchemaType.FLOAT64), float, 0.0),
}


def codec_of(kind: ColumnType, modifier: int, options: ValueOptions) -> Codec | None:
    """The codec of a column's type; None for a type that records leave out."""
    if kind.kind is TypeKind.ARRAY and kind.element is not None:
        return _array(kind.element, modifier, options)
    if kind.kind is TypeKind.ENUM:
        schema = Schema(
            SchemaType.STRING, name="io.debezium.data.Enum", version=1, parameters={"allowed": ",".join(kind.labels)}
        )
        return Codec(schema, _text, "", options.placeholder.decode())
    found = None if kind.kind is not TypeKind.BASE else _base(kind.name, modifier, options)
    return _binary(options, is_hex=False) if found is None and options.includes_unknown else found


def _base(name: str, modifier: int, options: ValueOptions) -> Codec | None:
    if name in _NUMBERS:
        return _NUMBERS[name]
    if name in _PLAIN_TEXTS or name in _NAMED_TEXTS:
        version = 1 if name in _NAMED_TEXTS else None
        schema = Schema(SchemaType.STRING, name=_NAMED_TEXTS.get(name), version=version)
        return Codec(schema, _text, _TEXT_FALLBACKS.get(name, ""), options.placeholder.decode())
    match name:
        case "numeric":
            return numeric_codec(modifier, options)
        case "money":
            return money_codec(options)
        case "bytea":
            return _binary(options, is_hex=True)
        case "bit" | "varbit":
            return _bits(_BITS_MAX if modifier < 0 else modifier)
        case "point":
            return Codec(_POINT_SCHEMA, _point, _point(b"(0,0)"))
        case "hstore":
            return _hstore(options)
    return temporal_codec(name, modifier, options)


def _binary(options: ValueOptions, *, is_hex: bool) -> Codec:
    """Bytes in one of four forms. Values of unknown types are the bytes of their texts."""

    def raw(data: bytes) -> bytes:
        if not is_hex:
            return data
        if not data.startswith(b"\\x"):
            raise ValueError("not the hexadecimal form of bytes")
        return bytes.fromhex(data[2:].decode("ascii"))

    if options.binary is BinaryMode.BYTES:
        return Codec(Schema(SchemaType.BYTES), raw, b"", options.placeholder)
    writes: dict[BinaryMode, Callable[[bytes], str]] = {
        BinaryMode.BASE64: lambda value: base64.b64encode(value).decode(),
        BinaryMode.BASE64_URL_SAFE: lambda value: base64.urlsafe_b64encode(value).decode(),
        BinaryMode.HEX: bytes.hex,
    }
    write = writes[options.binary]
    is_shown = options.binary is BinaryMode.HEX
    placeholder = options.placeholder.decode() if is_shown else write(options.placeholder)
    return Codec(STRING_SCHEMA, lambda data: write(raw(data)), "", placeholder)


def _bits(length: int) -> Codec:
    """Up to one bit is a boolean; more are bytes, the last bit first, without empty bytes at the end."""

    def number(data: bytes) -> int:
        return int(data, 2) if data else 0

    if length <= 1:
        return Codec(Schema(SchemaType.BOOLEAN), lambda data: number(data) != 0, False)

    def decode(data: bytes) -> bytes:
        value = number(data)
        return value.to_bytes((value.bit_length() + 7) // 8, "little")

    schema = Schema(SchemaType.BYTES, name="io.debezium.data.Bits", version=1, parameters={"length": str(length)})
    return Codec(schema, decode, b"")


def _point(data: bytes) -> Struct:
    found = _POINT.fullmatch(data.decode("ascii"))
    if found is None:
        raise ValueError("not a point")
    x, y = float(found[1]), float(found[2])
    made = Struct(_POINT_SCHEMA)
    made.values = [x, y, struct.pack("<BIdd", 1, 1, x, y), None]
    return made


def _hstore(options: ValueOptions) -> Codec:
    shown = options.placeholder.decode()
    if options.hstore is HstoreMode.MAP:
        schema = map_schema(STRING_SCHEMA, OPTIONAL_STRING_SCHEMA)
        return Codec(schema, lambda data: hstore_of(data.decode()), {}, {shown: shown})
    schema = Schema(SchemaType.STRING, name="io.debezium.data.Json", version=1)

    def decode(data: bytes) -> str:
        return json.dumps(hstore_of(data.decode()), ensure_ascii=False, separators=(",", ":"))

    return Codec(schema, decode, "{}", shown)


def _array(element: ColumnType, modifier: int, options: ValueOptions) -> Codec | None:
    inner = codec_of(element, modifier, options)
    if inner is None:
        return None
    inner = inner.with_schema(replace(inner.schema, optional=True))
    decode_one = inner.decode

    def decode(data: bytes) -> list[Any]:
        found = array_of(data.decode())
        if any(isinstance(each, list) for each in found):
            raise ValueError("an array of more than one dimension, for which Connect has no type")
        return [None if each is None else decode_one(each.encode()) for each in found]

    return Codec(array_schema(inner.schema), decode, [], _array_placeholder(inner, options))


def _array_placeholder(inner: Codec, options: ValueOptions) -> Any:
    if inner.placeholder is not None:
        return [inner.placeholder]
    if inner.schema.type is SchemaType.INT32 and inner.schema.name is None:
        return [Int32(byte) for byte in options.placeholder]
    return list(options.placeholder) if inner.schema.type is SchemaType.INT64 and inner.schema.name is None else None
