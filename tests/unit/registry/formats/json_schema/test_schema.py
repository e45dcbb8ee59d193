"""JSON Schemas: drafts, references, the forms of their text, and hostile texts, which are refused soon."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from millbeck.registry.errors import InvalidSchema, RegistryError, SchemaTooLarge
from millbeck.registry.formats.interface import Form, Imported, Limits
from millbeck.registry.formats.json_schema.schema import JsonFormat

JSON = JsonFormat()
REFUSED_SECONDS_MAX = 5.0
"""On an idle machine it is less than one; this one may be loaded."""
DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
]


def parse(schema: Any, **references: Any) -> Any:
    imported = [Imported(name, json.dumps(each)) for name, each in references.items()]
    return JSON.parse(json.dumps(schema), imported)


@pytest.mark.parametrize(
    "draft", [*DRAFTS, "http://json-schema.org/schema#", "https://json-schema.org/draft-07/schema"]
)
def test_drafts_are_known_however_they_are_spelled(draft: str) -> None:
    schema = {"$schema": draft, "type": "object", "properties": {"a": {"type": "string"}}}
    assert json.loads(parse(schema).text(Form.CANONICAL)) == schema


def test_each_draft_has_rules_of_its_own() -> None:
    four = {"$schema": DRAFTS[0], "maximum": 1, "exclusiveMaximum": True}
    assert parse(four).text(Form.CANONICAL)
    with pytest.raises(InvalidSchema):
        parse({**four, "$schema": DRAFTS[1]})


def test_an_unknown_draft_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(InvalidSchema, match="draft-07"):
        parse({"$schema": "http://example.com/my-draft"})


def test_the_text_is_without_spaces_and_in_its_order() -> None:
    parsed = JSON.parse('{ "type": "object",\n "required": ["b", "a"],  "properties": {"b": {}, "a": true}}', ())
    assert parsed.text(Form.CANONICAL) == '{"type":"object","required":["b","a"],"properties":{"b":{},"a":true}}'
    assert parsed.text(Form.NORMALIZED) == '{"properties":{"a":true,"b":{}},"required":["a","b"],"type":"object"}'


FOUND = {
    "a pointer": {"$ref": "#/definitions/a", "definitions": {"a": {}}},
    "an escaped pointer": {"$ref": "#/definitions/a~1b%25", "definitions": {"a/b%": {}}},
    "itself": {"properties": {"next": {"$ref": "#"}}},
    "an old anchor": {"$ref": "#here", "definitions": {"a": {"$id": "#here"}}},
    "an anchor": {"$schema": DRAFTS[4], "$ref": "#here", "$defs": {"a": {"$anchor": "here"}}},
    "a dynamic anchor": {"$schema": DRAFTS[4], "$dynamicRef": "#here", "$defs": {"a": {"$dynamicAnchor": "here"}}},
    "an id inside": {
        "$id": "http://example.com/root.json",
        "$ref": "inner.json",
        "definitions": {"a": {"$id": "inner.json"}},
    },
    "an id of draft 4": {"$schema": DRAFTS[0], "$ref": "x.json", "definitions": {"a": {"id": "x.json"}}},
    "a metaschema": {"properties": {"schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}},
    "an index": {"$ref": "#/anyOf/1", "anyOf": [{"$ref": "#/definitions/a"}, {}], "definitions": {"a": {}}},
}


@pytest.mark.parametrize("schema", FOUND.values(), ids=FOUND.keys())
def test_references_inside_are_found(schema: Any) -> None:
    assert parse(schema).text(Form.CANONICAL)


NAMES = {
    "relative": ("customer.json", {"$ref": "customer.json#/definitions/name"}),
    "whole": ("http://example.com/customer.json", {"$ref": "http://example.com/customer.json#/definitions/name"}),
    "relative to the id": (
        "http://example.com/customer.json",
        {"$id": "http://example.com/order.json", "$ref": "customer.json#/definitions/name"},
    ),
    "by its own id": ("anything", {"$ref": "http://ids.example.com/customer#/definitions/name"}),
}


@pytest.mark.parametrize(("name", "schema"), NAMES.values(), ids=NAMES.keys())
def test_references_to_others_are_found_by_name_and_by_id(name: str, schema: dict[str, Any]) -> None:
    other = {"$id": "http://ids.example.com/customer", "definitions": {"name": {"type": "string"}}}
    if name != "anything":
        del other["$id"]
    own = {key: value for key, value in schema.items() if key == "$id"}
    parsed = parse({**own, "properties": {"name": {"$ref": schema["$ref"]}}}, **{name: other})
    assert '"definitions":{"name":{"type":"string"}}' in parsed.text(Form.RESOLVED)


def test_nothing_is_loaded_from_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket, "socket", refuse)
    for uri in ("http://127.0.0.1:1/x.json", "https://example.com/x.json", "file:///etc/passwd", "//host/x", "x.json"):
        with pytest.raises(InvalidSchema, match="nothing is loaded from elsewhere"):
            parse({"properties": {"a": {"$ref": uri}}})


HOSTILE = {
    "too long": '"' + "a" * 2_000_000 + '"',
    "a name of a megabyte": json.dumps({"properties": {"a" * 1_000_000: {}}}),
    "10,000 deep": '{"not":' * 10_000 + "{}" + "}" * 10_000,
    "lists 10,000 deep": '{"enum":' + "[" * 10_000 + "]" * 10_000 + "}",
    "many parts": json.dumps({"enum": list(range(150_000))}),
    "itself at once": '{"$ref": "#"}',
    "a circle": json.dumps({"$ref": "#/not/not", "not": {"not": {"$ref": "#/not"}}}),
    "a circle through allOf": json.dumps({"allOf": [{"anyOf": [{"not": {"$ref": "#"}}]}]}),
    "nowhere": json.dumps({"$ref": "#/definitions/a"}),
    "a pattern that is none": json.dumps({"pattern": "["}),
    "a pattern that explodes": json.dumps({"pattern": "((((a{0,999}){0,999}){0,999}){0,999}){0,999}"}),
    "patterns that explode": json.dumps({"patternProperties": {"(a{1000}){1000}" + str(n): {} for n in range(500)}}),
    "a number without end": '{"minimum": 1' + "0" * 10_000 + "}",
    "not a number": '{"minimum": NaN}',
    "not a schema": "[]",
    "not JSON": "{",
    "another type": json.dumps({"type": "strin"}),
    "a URI that is none": json.dumps({"$id": "http://[", "$ref": "x"}),
}  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_are_refused_soon(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(RegistryError):
        JSON.parse(text, ())
    assert time.perf_counter() - start < REFUSED_SECONDS_MAX


def test_the_bounds_are_those_of_the_format() -> None:
    with pytest.raises(SchemaTooLarge):
        JsonFormat(Limits(depth_max=3)).parse('{"not":{"not":{"not":{}}}}', ())
    with pytest.raises(SchemaTooLarge):
        JsonFormat(Limits(reference_count_max=1)).parse("{}", [Imported(name, "{}") for name in "ab"])


def test_schemas_that_double_with_each_reference_are_accepted_soon() -> None:
    held: dict[str, Any] = {
        f"d{n}": {"properties": {key: {"$ref": f"#/definitions/d{n + 1}"} for key in "ab"}} for n in range(40)
    }
    start = time.perf_counter()
    parsed = parse({"$ref": "#/definitions/d0", "definitions": {**held, "d40": {}}})
    assert parsed.text(Form.NORMALIZED)
    assert time.perf_counter() - start < REFUSED_SECONDS_MAX
