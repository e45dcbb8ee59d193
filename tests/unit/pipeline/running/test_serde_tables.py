"""Serdes in TOML: what is wrong is named before Spark starts, and files are found beside the pipeline's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millbeck.client.schemas.model import AVRO, Schema
from millbeck.pipeline.errors import DefinitionError
from millbeck.pipeline.formats.schema_files import DirectorySchemas
from millbeck.pipeline.running.serde_tables import check_serde, serde_of

PROTO = 'syntax = "proto3"; message A { int32 n = 1; } message Order { int64 cents = 1; }'


@pytest.mark.parametrize(
    "given",
    [
        "n INT",
        {"format": "long"},
        {"format": "json", "schema": "n INT"},
        {"format": "json", "schema": "n INT", "registry": "schemas"},
        {"format": "avro", "schema": "a.avsc"},
        {"format": "avro", "registry": "schemas", "subject": "orders"},
        {"format": "protobuf", "schema": "a.proto", "message": "A"},
    ],
)
def test_what_is_right_passes(given: Any) -> None:
    assert check_serde(given, "[source] value") is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (5, "a table with a format: string, long"),
        ({"schema": "a.avsc"}, "a table with a format"),
        ({"format": "xml"}, "a table with a format"),
        ({"format": "long", "schema": "x"}, "the format long has no 'schema'; allowed: none"),
        ({"format": "avro", "message": "A"}, "the format avro has no 'message'; allowed: schema, registry, subject"),
        ({"format": "avro", "schema": 5}, "schema must be a text, not 5"),
        ({"format": "protobuf"}, "needs a schema"),
        ({"format": "json", "registry": "schemas"}, "needs a schema"),
    ],
)
def test_what_is_wrong_is_named(given: Any, complaint: str) -> None:
    with pytest.raises(DefinitionError) as raised:
        check_serde(given, "[source] value")
    assert complaint in str(raised.value)


def test_files_lie_beside_the_pipeline(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    (tmp_path / "order.avsc").write_text('{"type": "array", "items": "long"}')
    (tmp_path / "order.proto").write_text(PROTO)
    DirectorySchemas(tmp_path / "schemas").register("orders-value", Schema(AVRO, '"int"'))
    kinds = [
        serde_of(given, tmp_path).bound_to("orders", "value").kind.simpleString()  # type: ignore[union-attr]
        for given in (
            {"format": "avro", "schema": "order.avsc"},
            {"format": "avro", "schema": '"string"'},
            {"format": "protobuf", "schema": "order.proto", "message": "Order"},
            {"format": "avro", "registry": "schemas"},
        )
    ]
    assert kinds == ["array<bigint>", "string", "struct<cents:bigint>", "int"]
    assert serde_of("n INT", tmp_path).name == "json"
    assert serde_of({"format": "json", "schema": "n INT"}, tmp_path).name == "json"
    assert serde_of({"format": "integer"}, tmp_path).name == "integer"
    assert serde_of({"format": "avro", "registry": "http://127.0.0.1:1"}, tmp_path).name == "avro"
