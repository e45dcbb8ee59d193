"""The schema and value of each type."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.connect.model.schema import SchemaType
from millbeck.pipeline.connect.postgres.tables import ColumnType, TypeKind
from millbeck.pipeline.connect.postgres.values.codecs import codec_of
from millbeck.pipeline.connect.postgres.values.options import BinaryMode, HstoreMode, ValueOptions
from tests.unit.pipeline.connect.postgres.messages import json_of

CASES: dict[str, tuple[SchemaType, str | None, bytes, Any]] = {
    "bool": (SchemaType.BOOLEAN, None, b"t", True),
    "int2": (SchemaType.INT16, None, b"-32768", -32768),
    "int4": (SchemaType.INT32, None, b"2147483647", 2147483647),
    "int8": (SchemaType.INT64, None, b"-9223372036854775808", -(1 << 63)),
    "oid": (SchemaType.INT64, None, b"4294967295", 4294967295),
    "float4": (SchemaType.FLOAT32, None, b"1.5", 1.5),
    "float8": (SchemaType.FLOAT64, None, b"-Infinity", float("-inf")),
    "text": (SchemaType.STRING, None, "ä\n".encode(), "ä\n"),
    "varchar": (SchemaType.STRING, None, b"", ""),
    "bpchar": (SchemaType.STRING, None, b"a  ", "a  "),
    "inet": (SchemaType.STRING, None, b"10.0.0.1/8", "10.0.0.1/8"),
    "int4range": (SchemaType.STRING, None, b"[1,5)", "[1,5)"),
    "uuid": (
        SchemaType.STRING,
        "io.debezium.data.Uuid",
        b"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "jsonb": (SchemaType.STRING, "io.debezium.data.Json", b'{"a": 1}', '{"a": 1}'),
    "xml": (SchemaType.STRING, "io.debezium.data.Xml", b"<a/>", "<a/>"),
    "bytea": (SchemaType.BYTES, None, b"\\x00ff", b"\0\xff"),
    "hstore": (SchemaType.STRING, "io.debezium.data.Json", b'"a"=>"1", "b"=>NULL', '{"a":"1","b":null}'),
}


@pytest.mark.parametrize(("name", "case"), CASES.items(), ids=CASES.keys())
def test_types(name: str, case: tuple[SchemaType, str | None, bytes, Any]) -> None:
    codec = codec_of(ColumnType(name), -1, ValueOptions())
    assert codec is not None
    assert (codec.schema.type, codec.schema.name, codec.decode(case[2])) == (case[0], case[1], case[3])
    assert not codec.schema.optional


def test_bits() -> None:
    one = codec_of(ColumnType("bit"), 1, ValueOptions())
    assert one is not None
    assert (one.schema.type, one.decode(b"1"), one.decode(b"0")) == (SchemaType.BOOLEAN, True, False)
    many = codec_of(ColumnType("varbit"), 33, ValueOptions())
    assert many is not None
    assert many.schema.parameters == {"length": "33"}
    assert [many.decode(bits) for bits in (b"101", b"100000001", b"", b"000")] == [b"\x05", b"\x01\x01", b"", b""]
    unbound = codec_of(ColumnType("varbit"), -1, ValueOptions())
    assert unbound is not None
    assert unbound.schema.parameters == {"length": "2147483647"}


def test_points() -> None:
    codec = codec_of(ColumnType("point"), -1, ValueOptions())
    assert codec is not None
    made = json_of(codec.decode(b"(1.5,-2)"))
    assert (made["x"], made["y"], made["srid"]) == (1.5, -2.0, None)
    assert made["wkb"].hex() == "0101000000000000000000f83f00000000000000c0"


@pytest.mark.parametrize(
    ("mode", "expected"),
    [(BinaryMode.BASE64, "++8="), (BinaryMode.BASE64_URL_SAFE, "--8="), (BinaryMode.HEX, "fbef")],
)
def test_bytes_as_texts(mode: BinaryMode, expected: str) -> None:
    codec = codec_of(ColumnType("bytea"), -1, ValueOptions(binary=mode))
    assert codec is not None
    assert (codec.schema.type, codec.decode(b"\\xfbef")) == (SchemaType.STRING, expected)


def test_enums_name_their_labels() -> None:
    codec = codec_of(ColumnType("mood", TypeKind.ENUM, ("sad", "ok")), -1, ValueOptions())
    assert codec is not None
    assert (codec.schema.name, codec.schema.parameters) == ("io.debezium.data.Enum", {"allowed": "sad,ok"})
    assert codec.decode(b"ok") == "ok"


def test_arrays_have_the_elements_codec() -> None:
    kind = ColumnType("_numeric", TypeKind.ARRAY, (), ColumnType("numeric"))
    codec = codec_of(kind, (10 << 16 | 2) + 4, ValueOptions())
    assert codec is not None
    element = codec.schema.value_schema
    assert element is not None
    assert element.optional
    assert element.name == "org.apache.kafka.connect.data.Decimal"
    assert [None if each is None else str(each) for each in codec.decode(b"{1.50,NULL}")] == ["1.50", None]
    with pytest.raises(ValueError, match="dimension"):
        codec.decode(b"{{1},{2}}")


def test_hstore_as_a_map() -> None:
    codec = codec_of(ColumnType("hstore"), -1, ValueOptions(hstore=HstoreMode.MAP))
    assert codec is not None
    assert (codec.schema.type, codec.decode(b'"a"=>NULL')) == (SchemaType.MAP, {"a": None})


def test_unknown_types_are_left_out_or_bytes() -> None:
    composite = ColumnType("address", TypeKind.OTHER)
    assert codec_of(composite, -1, ValueOptions()) is None
    assert codec_of(ColumnType("nothing"), -1, ValueOptions()) is None
    codec = codec_of(composite, -1, ValueOptions(includes_unknown=True))
    assert codec is not None
    assert (codec.schema.type, codec.decode(b"(a,b)")) == (SchemaType.BYTES, b"(a,b)")


def test_placeholders_of_large_values() -> None:
    options = ValueOptions(placeholder=b"ab")
    shown = {
        "text": "ab",
        "bytea": b"ab",
        "jsonb": "ab",
        "int4": None,
        "_text": ["ab"],
        "_int4": [97, 98],
        "_int8": [97, 98],
        "_bool": None,
    }
    for name, expected in shown.items():
        is_array = name.startswith("_")
        kind = ColumnType(name, TypeKind.ARRAY, (), ColumnType(name[1:])) if is_array else ColumnType(name)
        codec = codec_of(kind, -1, options)
        assert codec is not None
        assert codec.placeholder == expected, name
