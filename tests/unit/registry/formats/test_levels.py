"""What may be changed under which level, for each format: the table of docs/registry.md, and the seed's table.

Teams are told that BACKWARD lets them add optional fields and remove fields, FORWARD add fields and remove optional
ones, FULL only optional ones. One often repeated sentence is wrong: removing a field is BACKWARD compatible.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("google.protobuf")
pytest.importorskip("jsonschema_rs")

from millbeck.registry.compatibility import problems_between
from millbeck.registry.formats.every import every_format
from millbeck.registry.settings import LEVELS

FORMATS = {each.name: each for each in every_format()}
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
SUM = {"name": "sum", "type": "double"}


def avro(*fields: Any) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}, *fields]})


def proto(*fields: str) -> str:
    return f'syntax = "proto3"; message Order {{ string id = 1; {" ".join(fields)} }}'


def model(required: tuple[str, ...] = (), **properties: str) -> str:
    held = {name: {"type": kind} for name, kind in properties.items()}
    return json.dumps({"type": "object", "properties": held, "required": list(required), "additionalProperties": False})


CHANGES: dict[str, tuple[str, str, str, str]] = {
    "Avro: add note": ("AVRO", avro(), avro(NOTE), "FULL"),
    "Avro: remove note": ("AVRO", avro(NOTE), avro(), "FULL"),
    "Avro: add sum": ("AVRO", avro(), avro(SUM), "FORWARD"),
    "Avro: remove sum": ("AVRO", avro(SUM), avro(), "BACKWARD"),
    "Avro: int as long": ("AVRO", '"int"', '"long"', "BACKWARD"),
    "Avro: another type": ("AVRO", '"int"', '"string"', "NONE"),
    "Protobuf: add note": ("PROTOBUF", proto(), proto("string note = 2;"), "FULL"),
    "Protobuf: remove note": ("PROTOBUF", proto("string note = 2;"), proto(), "FULL"),
    "Protobuf: int32 as int64": ("PROTOBUF", proto("int32 n = 2;"), proto("int64 n = 2;"), "FULL"),
    "Protobuf: add a message": ("PROTOBUF", proto(), proto() + " message Other {}", "BACKWARD"),
    "Protobuf: another type": ("PROTOBUF", proto("int32 n = 2;"), proto("string n = 2;"), "NONE"),
    "JSON: add note": ("JSON", model(id="string"), model(id="string", note="string"), "BACKWARD"),
    "JSON: remove note": ("JSON", model(id="string", note="string"), model(id="string"), "FORWARD"),
    "JSON: add sum": ("JSON", model(), model(("sum",), sum="number"), "NONE"),
    "JSON: remove sum": ("JSON", model(("sum",), sum="number"), model(), "NONE"),
    "JSON: integer as number": ("JSON", '{"type": "integer"}', '{"type": "number"}', "BACKWARD"),
    "JSON: another type": ("JSON", '{"type": "integer"}', '{"type": "string"}', "NONE"),
}
ALLOWING = {
    "NONE": ("NONE",),
    "BACKWARD": ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE"),
    "FORWARD": ("NONE", "FORWARD", "FORWARD_TRANSITIVE"),
    "FULL": tuple(LEVELS),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("schema_type", "old", "new", "strongest"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_is_allowed_under_the_levels_that_the_table_says(
    schema_type: str, old: str, new: str, strongest: str, level: str
) -> None:
    before, after = (FORMATS[schema_type].parse(text, ()) for text in (old, new))
    assert (problems_between(after, before, level) == []) == (level in ALLOWING[strongest])


def test_the_coupon_code_may_be_added() -> None:
    fields = [{"name": "orderId", "type": "string"}, {"name": "customerId", "type": "string"}]
    fields.append({"name": "amount", "type": "double"})
    coupon = {"name": "couponCode", "type": ["null", "string"], "default": None}
    one, two = (
        FORMATS["AVRO"].parse(json.dumps({"type": "record", "name": "Order", "fields": each}), ())
        for each in (fields, [*fields, coupon])
    )
    assert problems_between(two, one, "BACKWARD") == []


def test_removing_a_field_is_backward_compatible_and_not_forward() -> None:
    one, two = (FORMATS["AVRO"].parse(text, ()) for text in (avro(SUM), avro()))
    assert problems_between(two, one, "BACKWARD") == []
    assert [each.kind for each in problems_between(two, one, "FORWARD")] == ["READER_FIELD_MISSING_DEFAULT_VALUE"]
