"""Schemas given as text and as files, a directory as a registry, and protoc."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("google.protobuf", reason="the extra spark is not installed")

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from millbeck.client.schemas.model import AVRO, PROTOBUF, RegisteredSchema, Schema
from millbeck.pipeline.errors import SchemaError, UnknownSchema
from millbeck.pipeline.formats.schema_files import DirectorySchemas, compiled_proto, read_schema

PROTO = 'syntax = "proto3";\nmessage Order { int64 cents = 1; }'


def test_a_schema_is_its_text_a_dictionary_or_a_file(tmp_path: Path) -> None:
    file = tmp_path / "order.avsc"
    file.write_text('"int"')
    expected = Schema(AVRO, '"int"')
    assert read_schema(AVRO, '"int"') == read_schema(AVRO, file) == read_schema(AVRO, str(file)) == expected
    assert read_schema(AVRO, {"type": "int"}) == Schema(AVRO, '{"type": "int"}')
    assert read_schema(AVRO, expected) == expected
    assert read_schema(PROTOBUF, PROTO) == Schema(PROTOBUF, PROTO)
    with pytest.raises(SchemaError, match="is PROTOBUF, not AVRO"):
        read_schema(AVRO, Schema(PROTOBUF, PROTO))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SchemaError, match=r"missing\.avsc cannot be read"):
        read_schema(AVRO, str(tmp_path / "missing.avsc"))


def test_a_proto_finds_what_it_imports_beside_it(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "money.proto").write_text('syntax = "proto3";\nmessage Money { int64 cents = 1; }')
    order = tmp_path / "order.proto"
    order.write_text(
        'syntax = "proto3";\nimport "common/money.proto";\nimport "google/protobuf/timestamp.proto";\n'
        "message Order { Money price = 1; google.protobuf.Timestamp at = 2; }"
    )
    files = FileDescriptorSet()
    files.ParseFromString(compiled_proto(read_schema(PROTOBUF, order)))
    names = [file.name for file in files.file]
    assert names[-1] == "schema.proto"
    assert {"common/money.proto", "google/protobuf/timestamp.proto"} < set(names)


def test_a_descriptor_set_is_taken_as_it_is(tmp_path: Path) -> None:
    compiled = compiled_proto(Schema(PROTOBUF, PROTO))
    (tmp_path / "order.desc").write_bytes(compiled)
    assert compiled_proto(read_schema(PROTOBUF, tmp_path / "order.desc")) == compiled


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        (Schema(PROTOBUF, "message {"), "not valid Protobuf: schema.proto:1"),
        (Schema(AVRO, '"int"'), "is AVRO, not PROTOBUF"),
        (Schema(PROTOBUF, 'import "../evil.proto";', (("../evil.proto", ""),)), "is not a valid name"),
    ],
)
def test_what_does_not_compile_is_named(schema: Schema, complaint: str) -> None:
    with pytest.raises(SchemaError, match=complaint):
        compiled_proto(schema)


def test_a_directory_is_a_registry(tmp_path: Path) -> None:
    schemas = DirectorySchemas(tmp_path / "schemas")
    first, second = Schema(AVRO, '"int"'), Schema(PROTOBUF, PROTO, (("a.proto", "x"),))
    assert [schemas.register("a", first), schemas.register("a", second), schemas.register("b", first)] == [1, 2, 1]
    again = DirectorySchemas(tmp_path / "schemas")
    assert again.register("a", first) == 1
    assert again.latest("a") == RegisteredSchema(2, second)
    assert again.by_id(1) == first
    assert again.lookup("b", first) == RegisteredSchema(1, first)
    with pytest.raises(UnknownSchema, match=r"subject b in .* does not have this schema"):
        again.lookup("b", second)
    assert again.name == schemas.name
    with pytest.raises(UnknownSchema, match="id 9"):
        again.by_id(9)
    with pytest.raises(UnknownSchema, match="no schema for c"):
        again.latest("c")
    (tmp_path / "schemas" / "1.json").write_text("{")
    with pytest.raises(SchemaError, match=r"1\.json cannot be read"):
        again.by_id(1)
