"""Which columns a Protobuf message becomes."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.client.schemas.model import PROTOBUF, Schema
from millbeck.pipeline.errors import SchemaError
from millbeck.pipeline.formats.protobuf_records import message_of
from millbeck.pipeline.formats.protobuf_types import types_of
from millbeck.pipeline.formats.schema_files import compiled_proto

IMPORTS = "".join(f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "duration", "wrappers"))


def _kind(fields: str, more: str = "") -> str:
    text = f'syntax = "proto3"; {IMPORTS} message M {{ {fields} }} {more}'
    kind: str = types_of(message_of(compiled_proto(Schema(PROTOBUF, text)), "M")).spark.simpleString()
    return kind


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("sint32 f = 1;", "int"),
        ("uint32 f = 1;", "bigint"),
        ("fixed64 f = 1;", "decimal(20,0)"),
        ("bytes f = 1;", "binary"),
        ("repeated string f = 1;", "array<string>"),
        ("map<int32, bool> f = 1;", "map<int,boolean>"),
        ("enum E { A = 0; } E f = 1;", "string"),
        ("google.protobuf.Timestamp f = 1;", "timestamp"),
        ("google.protobuf.Duration f = 1;", "bigint"),
        ("google.protobuf.BytesValue f = 1;", "binary"),
        ("oneof o { float f = 1; }", "float"),
    ],
)
def test_types(field: str, kind: str) -> None:
    assert _kind(field) == f"struct<f:{kind}>"


@pytest.mark.parametrize(
    ("fields", "more", "complaint"),
    [
        ("M next = 1;", "", "M is recursive"),
        ("N n = 1;", "message N { repeated M more = 1; }", "M is recursive"),
        ("N n = 1;", "message N {}", "N has no fields"),
    ],
)
def test_what_has_no_columns_is_refused(fields: str, more: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        _kind(fields, more)
