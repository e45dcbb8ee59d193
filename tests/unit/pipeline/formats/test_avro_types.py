"""Which columns an Avro schema becomes."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytest.importorskip("fastavro", reason="the extra spark is not installed")

from millbeck.client.schemas.model import AVRO, Schema
from millbeck.pipeline.errors import SchemaError
from millbeck.pipeline.formats.avro_records import parsed
from millbeck.pipeline.formats.avro_types import types_of


def _kind(schema: Any) -> str:
    kind: str = types_of(parsed(Schema(AVRO, json.dumps(schema))).shape).spark.simpleString()
    return kind


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ("null", "void"),
        (["null"], "void"),
        (["null", "int"], "int"),
        (["int", "long"], "bigint"),
        (["float", "null", "double"], "double"),
        (["null", "string", "int"], "struct<member0:string,member1:int>"),
        ({"type": "array", "items": ["null", "string"]}, "array<string>"),
        ({"type": "map", "values": "bytes"}, "map<string,binary>"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "string"),
        ({"type": "fixed", "name": "F", "size": 16}, "binary"),
        ({"type": "int", "logicalType": "date"}, "date"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, "timestamp_ntz"),
        ({"type": "long", "logicalType": "timestamp-nanos"}, "bigint"),
        ({"type": "int", "logicalType": "time-millis"}, "int"),
        ({"type": "string", "logicalType": "uuid"}, "string"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 3}, "decimal(10,3)"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "decimal(4,0)"),
    ],
)
def test_types_are_those_of_sparks_own_avro(schema: Any, kind: str) -> None:
    assert _kind(schema) == kind


def test_a_decimal_that_spark_has_not_is_refused() -> None:
    with pytest.raises(SchemaError, match="39 digits"):
        _kind({"type": "bytes", "logicalType": "decimal", "precision": 39})
