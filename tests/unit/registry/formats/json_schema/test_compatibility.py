"""The rules for JSON Schema by case: what accepts what, what does not and under which name."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

from millbeck.registry.compatibility import problems_between
from millbeck.registry.errors import SchemaTooLarge
from millbeck.registry.formats.assumptions import PROBLEMS_MAX
from millbeck.registry.formats.interface import NEW_READS_OLD, Imported, Incompatibility, Policy
from millbeck.registry.formats.json_schema.schema import JsonFormat

JSON = JsonFormat()
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
NULL: dict[str, Any] = {"type": "null"}


def reading(new: Any, old: Any, policy: Policy = Policy.STRICT) -> list[Incompatibility]:
    reader, writer = (JSON.parse(json.dumps(each), ()) for each in (new, old))
    return reader.problems_reading(writer, NEW_READS_OLD, policy)


def opened(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": properties}
    return {**found, "required": list(required)} if required else found


def closed(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {**opened(required, **properties), "additionalProperties": False}


def partly(rest: Any, required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    return {**opened(required, **properties), "additionalProperties": rest}


def tuple_of(*items: Any, rest: Any = True) -> dict[str, Any]:
    return {"type": "array", "items": list(items), "additionalItems": rest}


def latest(schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


NODE = {"type": "object", "properties": {"next": {"$ref": "#"}, "n": INTEGER}}
ACCEPTED: dict[str, tuple[Any, Any]] = {
    "the same": (opened(a=STRING), opened(a=STRING)),
    "anything": ({}, STRING),
    "true": (True, STRING),
    "nothing was written": (STRING, False),
    "titles and defaults": ({"type": "string", "title": "b", "default": "x"}, {"type": "string", "title": "a"}),
    "integer as number": (NUMBER, INTEGER),
    "another type beside": ({"type": ["string", "null"]}, STRING),
    "longer strings": ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}),
    "no bound": (STRING, {"type": "string", "minLength": 1}),
    "no pattern": (STRING, {"type": "string", "pattern": "a"}),
    "a larger range": ({"type": "integer", "minimum": 0}, {"type": "integer", "minimum": 1}),
    "an exclusive bound below": ({"type": "number", "exclusiveMinimum": 0}, {"type": "number", "minimum": 1}),
    "an exclusive bound of draft 4": (
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 5},
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "type": "number",
            "maximum": 5,
            "exclusiveMaximum": True,
        },
    ),
    "a divisor": ({"type": "number", "multipleOf": 0.1}, {"type": "number", "multipleOf": 0.5}),
    "multiples of one are integers": ({"multipleOf": 1}, INTEGER),
    "more values": ({"enum": ["a", "b"]}, {"enum": ["a"]}),
    "values as their type": (STRING, {"enum": ["a", "b"]}),
    "values within bounds": ({"type": "string", "maxLength": 2}, {"enum": ["a", "bb"]}),
    "booleans as their values": ({"enum": [True, False]}, {"type": "boolean"}),
    "const as enum": ({"enum": [1, 2]}, {"const": 1}),
    "an optional property in a closed model": (closed(a=STRING, b=STRING), closed(a=STRING)),
    "a property of any value in an open model": (opened(a=STRING, b={}), opened(a=STRING)),
    "a property removed from an open model": (opened(a=STRING), opened(a=STRING, b=STRING)),
    "a property covered by the rest": (partly(STRING, a=STRING), partly(STRING)),
    "a property that the rest covers": (partly(STRING), partly(STRING, a=STRING)),
    "a closed model opens": (opened(a=STRING), closed(a=STRING)),
    "a partial model widens": (partly({"type": ["string", "null"]}), partly(STRING)),
    "less is required": (opened(a=STRING), opened(("a",), a=STRING)),
    "a property with a default is required": (opened(("a",), a={"type": "string", "default": ""}), opened(a=STRING)),
    "a new property with a default is required": (
        closed(("b",), a=STRING, b={"type": "string", "default": ""}),
        closed(a=STRING),
    ),
    "more properties": ({"maxProperties": 3}, {"type": "object", "maxProperties": 2}),
    "a closed model has no more": ({"type": "object", "maxProperties": 1}, closed(a=STRING)),
    "as many as are required": ({"type": "object", "minProperties": 1}, opened(("a",), a=STRING)),
    "a pattern covers a property": (
        {"type": "object", "patternProperties": {"^x_": STRING}},
        closed(x_a=STRING),
    ),
    "names that all match": ({"propertyNames": {"maxLength": 1}}, closed(a=STRING, b=STRING)),
    "a dependency that is always met": (
        {"dependencies": {"a": ["b"]}},
        opened(("b",), a=STRING, b=STRING),
    ),
    "items are widened": ({"type": "array", "items": NUMBER}, {"type": "array", "items": INTEGER}),
    "an item in a closed tuple": (tuple_of(STRING, STRING, rest=False), tuple_of(STRING, rest=False)),
    "an item removed from an open tuple": (tuple_of(STRING), tuple_of(STRING, STRING)),
    "an item covered by the rest": (tuple_of(STRING, STRING, rest=STRING), tuple_of(STRING, rest=STRING)),
    "a tuple of 2020-12 as one of draft 7": (
        tuple_of(STRING, rest=False),
        latest({"type": "array", "prefixItems": [STRING], "items": False}),
    ),
    "not unique": ({"type": "array"}, {"type": "array", "uniqueItems": True}),
    "an alternative is added": ({"anyOf": [STRING, INTEGER, NULL]}, {"anyOf": [STRING, INTEGER]}),
    "alternatives change places": ({"oneOf": [INTEGER, STRING]}, {"oneOf": [STRING, INTEGER]}),
    "one becomes an alternative": ({"oneOf": [STRING, INTEGER]}, STRING),
    "types as alternatives": ({"anyOf": [STRING, NULL]}, {"type": ["string", "null"]}),
    "alternatives as types": ({"type": ["string", "null"]}, {"anyOf": [STRING, NULL]}),
    "oneOf becomes anyOf": ({"anyOf": [STRING, INTEGER]}, {"oneOf": [STRING, INTEGER]}),
    "fewer conditions": ({"allOf": [STRING]}, {"allOf": [STRING, {"maxLength": 3}]}),
    "allOf as one": (closed(a=STRING), {"allOf": [closed(a=STRING), opened(("a",))]}),
    "less is refused": ({"not": {"type": "string", "maxLength": 1}}, {"not": STRING}),
    "what is refused is of another type": ({"type": "integer", "not": STRING}, INTEGER),
    "the same condition": (
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"if": {"required": ["a"]}, "then": {"required": ["b", "c"]}},
    ),
    "a recursive schema": (NODE, NODE),
    "a definition is moved": (
        {"$ref": "#/definitions/b", "definitions": {"b": NUMBER}},
        {"$ref": "#/definitions/a", "definitions": {"a": INTEGER}},
    ),
    "keywords beside $ref are ignored in draft 7": (
        {"properties": {"a": {"$ref": "#/definitions/a", "maxLength": 1}}, "definitions": {"a": STRING}},
        {"type": "object", "properties": {"a": STRING}},
    ),
    "a condition on another type": ({"type": ["string", "object"], "maxLength": 3}, opened()),
    "unevaluated as additional": (
        latest({"type": "object", "properties": {"a": STRING}, "unevaluatedProperties": False}),
        latest(closed(a=STRING)),
    ),
}


@pytest.mark.parametrize(("new", "old"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_what_is_accepted(new: Any, old: Any) -> None:
    assert reading(new, old) == []


REFUSED: dict[str, tuple[Any, Any, str, str]] = {
    "another type": (INTEGER, STRING, "TYPE_CHANGED", "#/type"),
    "number as integer": (INTEGER, NUMBER, "TYPE_NARROWED", "#/type"),
    "a type is gone": (STRING, {"type": ["string", "null"]}, "TYPE_NARROWED", "#/type"),
    "a type where there was none": (STRING, {}, "TYPE_NARROWED", "#/type"),
    "nothing any more": (False, STRING, "TYPE_NARROWED", "#"),
    "a bound of length": ({"type": "string", "maxLength": 4}, STRING, "MAX_LENGTH_ADDED", "#/maxLength"),
    "shorter": (
        {"type": "string", "maxLength": 3},
        {"type": "string", "maxLength": 4},
        "MAX_LENGTH_DECREASED",
        "#/maxLength",
    ),
    "at least one": ({"type": "string", "minLength": 1}, STRING, "MIN_LENGTH_ADDED", "#/minLength"),
    "a pattern": ({"type": "string", "pattern": "a"}, STRING, "PATTERN_ADDED", "#/pattern"),
    "another pattern": (
        {"type": "string", "pattern": "a"},
        {"type": "string", "pattern": "b"},
        "PATTERN_CHANGED",
        "#/pattern",
    ),
    "a maximum": ({"type": "integer", "maximum": 3}, INTEGER, "MAXIMUM_ADDED", "#/maximum"),
    "a greater minimum": (
        {"type": "integer", "minimum": 3},
        {"type": "integer", "minimum": 2},
        "MINIMUM_INCREASED",
        "#/minimum",
    ),
    "exclusive now": (
        {"type": "number", "exclusiveMaximum": 3},
        {"type": "number", "maximum": 3},
        "EXCLUSIVE_MAXIMUM_DECREASED",
        "#/exclusiveMaximum",
    ),
    "multiples": ({"type": "number", "multipleOf": 2}, NUMBER, "MULTIPLE_OF_ADDED", "#/multipleOf"),
    "greater multiples": (
        {"multipleOf": 4},
        {"type": "number", "multipleOf": 2},
        "MULTIPLE_OF_EXPANDED",
        "#/multipleOf",
    ),
    "other multiples": ({"multipleOf": 3}, {"type": "number", "multipleOf": 2}, "MULTIPLE_OF_CHANGED", "#/multipleOf"),
    "a value is gone": ({"enum": ["a"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_NARROWED", "#/enum"),
    "other values": ({"enum": ["c"]}, {"enum": ["a", "b"]}, "ENUM_ARRAY_CHANGED", "#/enum"),
    "values where there were none": ({"enum": ["a"]}, STRING, "ENUM_ARRAY_NARROWED", "#/enum"),
    "true is not 1": ({"enum": [1]}, {"const": True}, "ENUM_ARRAY_CHANGED", "#/enum"),
    "a property in an open model": (
        opened(a=STRING, b=STRING),
        opened(a=STRING),
        "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/b",
    ),
    "a property that the rest does not cover": (
        partly(INTEGER, a=STRING),
        partly(INTEGER),
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
    ),
    "a property removed from a closed model": (
        closed(),
        closed(a=STRING),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/properties/a",
    ),
    "a property that the rest no longer covers": (
        partly(INTEGER),
        partly(INTEGER, a=STRING),
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
    ),
    "an open model closes": (
        closed(a=STRING),
        opened(a=STRING),
        "ADDITIONAL_PROPERTIES_REMOVED",
        "#/additionalProperties",
    ),
    "an open model closes in part": (
        partly(STRING, a=STRING),
        opened(a=STRING),
        "ADDITIONAL_PROPERTIES_NARROWED",
        "#/additionalProperties",
    ),
    "a partial model narrows": (partly(INTEGER), partly(NUMBER), "TYPE_NARROWED", "#/additionalProperties/type"),
    "more is required": (opened(("a",), a=STRING), opened(a=STRING), "REQUIRED_ATTRIBUTE_ADDED", "#/required"),
    "a new property is required": (
        closed(("b",), a=STRING, b=STRING),
        closed(a=STRING),
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/required",
    ),
    "a property changes": (opened(a=INTEGER), opened(a=STRING), "TYPE_CHANGED", "#/properties/a/type"),
    "at most one property": (
        {"type": "object", "maxProperties": 1},
        opened(),
        "MAX_PROPERTIES_ADDED",
        "#/maxProperties",
    ),
    "more properties are asked for": (
        {"type": "object", "minProperties": 3},
        {"type": "object", "minProperties": 2},
        "MIN_PROPERTIES_INCREASED",
        "#/minProperties",
    ),
    "a pattern in an open model": (
        {"type": "object", "patternProperties": {"^x": STRING}},
        opened(),
        "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/patternProperties/^x",
    ),
    "a pattern beside another": (
        {"type": "object", "patternProperties": {"^y": STRING}},
        {"type": "object", "patternProperties": {"^x": INTEGER}},
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/patternProperties/^y",
    ),
    "names are bounded": (
        {"type": "object", "propertyNames": {"maxLength": 1}},
        opened(),
        "PROPERTY_NAMES_CHANGED",
        "#/propertyNames",
    ),
    "a dependency": (
        {"type": "object", "dependencies": {"a": ["b"]}},
        opened(),
        "DEPENDENCY_ARRAY_ADDED",
        "#/dependencies/a",
    ),
    "a dependency on more": (
        latest({"type": "object", "dependentRequired": {"a": ["b", "c"]}}),
        latest({"type": "object", "dependentRequired": {"a": ["b"]}}),
        "DEPENDENCY_ARRAY_EXTENDED",
        "#/dependentRequired/a",
    ),
    "a schema as a dependency": (
        {"type": "object", "dependencies": {"a": {"required": ["b"]}}},
        opened(),
        "DEPENDENCY_SCHEMA_ADDED",
        "#/dependencies/a",
    ),
    "items change": (
        {"type": "array", "items": INTEGER},
        {"type": "array", "items": STRING},
        "TYPE_CHANGED",
        "#/items/type",
    ),
    "an item in an open tuple": (
        tuple_of(STRING, STRING),
        tuple_of(STRING),
        "ITEM_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/items/1",
    ),
    "an item that the rest does not cover": (
        tuple_of(STRING, INTEGER, rest=STRING),
        tuple_of(STRING, rest=STRING),
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
    ),
    "an item removed from a closed tuple": (
        tuple_of(STRING, rest=False),
        tuple_of(STRING, STRING, rest=False),
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
    ),
    "a tuple closes": (
        tuple_of(STRING, rest=False),
        tuple_of(STRING),
        "ADDITIONAL_ITEMS_REMOVED",
        "#/additionalItems",
    ),
    "unique now": (
        {"type": "array", "uniqueItems": True},
        {"type": "array"},
        "UNIQUE_ITEMS_ADDED",
        "#/uniqueItems",
    ),
    "fewer items": (
        {"type": "array", "maxItems": 2},
        {"type": "array", "maxItems": 3},
        "MAX_ITEMS_DECREASED",
        "#/maxItems",
    ),
    "something must be contained": (
        {"type": "array", "contains": STRING},
        {"type": "array"},
        "CONTAINS_CHANGED",
        "#/contains",
    ),
    "an alternative is gone": (
        {"anyOf": [STRING, INTEGER]},
        {"anyOf": [STRING, INTEGER, NULL]},
        "SUM_TYPE_NARROWED",
        "#/anyOf",
    ),
    "an alternative changes": (
        {"oneOf": [STRING, {"type": "array"}]},
        {"oneOf": [STRING, INTEGER]},
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "#/oneOf",
    ),
    "no alternative fits": ({"anyOf": [STRING, NULL]}, INTEGER, "COMBINED_TYPE_CHANGED", "#/anyOf"),
    "anyOf becomes oneOf": (
        {"oneOf": [opened(a=STRING), opened(b=STRING)]},
        {"anyOf": [opened(a=STRING), opened(b=STRING)]},
        "COMBINED_TYPE_CHANGED",
        "#/oneOf",
    ),
    "two alternatives of oneOf fit": ({"oneOf": [NUMBER, INTEGER]}, INTEGER, "COMBINED_TYPE_CHANGED", "#/oneOf"),
    "another condition in allOf": (
        {"allOf": [STRING, {"maxLength": 3}]},
        {"allOf": [STRING]},
        "MAX_LENGTH_ADDED",
        "#/maxLength",
    ),
    "more is refused": ({"not": STRING}, {"not": {"type": "string", "maxLength": 1}}, "NOT_TYPE_EXTENDED", "#/not"),
    "a condition": (
        {"type": "object", "if": {"required": ["a"]}, "then": {"required": ["b"]}},
        opened(),
        "CONDITION_CHANGED",
        "#/if",
    ),
    "deep in a recursive schema": (
        {"type": "object", "properties": {"next": {"$ref": "#"}, "n": STRING}},
        NODE,
        "TYPE_CHANGED",
        "#/properties/n/type",
    ),
    "behind a reference": (
        {"properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": STRING}},
        {"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}, "definitions": {"a": INTEGER}},
        "TYPE_CHANGED",
        "#/properties/a/type",
    ),
    "keywords beside $ref count since 2019-09": (
        latest({"properties": {"a": {"$ref": "#/$defs/a", "maxLength": 1}}, "$defs": {"a": STRING}}),
        latest({"type": "object", "properties": {"a": STRING}}),
        "MAX_LENGTH_ADDED",
        "#/properties/a/maxLength",
    ),
    "unevaluated properties": (
        latest({"type": "object", "properties": {"a": STRING}, "unevaluatedProperties": False}),
        latest(opened(a=STRING)),
        "UNEVALUATED_PROPERTIES_REMOVED",
        "#/unevaluatedProperties",
    ),
}


@pytest.mark.parametrize(("new", "old", "kind", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_and_why(new: Any, old: Any, kind: str, path: str) -> None:
    assert [(each.kind, each.path) for each in reading(new, old)] == [(kind, path)]


def test_there_are_sixty_cases() -> None:
    assert len(ACCEPTED) + len(REFUSED) >= 60


LENIENT = {
    "a property in an open model": (opened(a=STRING, b=STRING), opened(a=STRING)),
    "a property removed from a closed model": (closed(), closed(a=STRING)),
    "an open model closes": (closed(a=STRING), opened(a=STRING)),
    "an inner property in an open model": (opened(a=opened(b=STRING)), opened(a=opened())),
}


@pytest.mark.parametrize(("new", "old"), LENIENT.values(), ids=LENIENT.keys())
def test_undeclared_properties_do_not_count_under_lenient(new: Any, old: Any) -> None:
    assert reading(new, old) != []
    assert reading(new, old, Policy.LENIENT) == []


@pytest.mark.parametrize(
    ("new", "old"),
    [(opened(a=INTEGER), opened(a=STRING)), (opened(("a",), a=STRING), opened(a=STRING)), (INTEGER, NUMBER)],
)
def test_lenient_lets_nothing_else_pass(new: Any, old: Any) -> None:
    assert reading(new, old, Policy.LENIENT) == reading(new, old) != []


def test_the_message_names_the_rule_the_place_and_the_remedy() -> None:
    (problem,) = reading(opened(a=STRING, b=STRING), opened(a=STRING))
    assert str(problem).startswith("{errorType:'PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL', description:'the property b")
    assert "additionalProperties: false" in problem.sentence
    assert problem.path == "#/properties/b"


def test_what_was_taken_for_compatible_on_the_way_is_looked_at_again() -> None:
    """The first alternative fails on p, and while p was compared q counted as compatible; the second has only q."""

    def root(number: Any, *alternatives: dict[str, Any]) -> dict[str, Any]:
        p, q = {"$ref": "#/definitions/p"}, {"$ref": "#/definitions/q"}
        held = {"p": closed(q=q, n=number), "q": closed(p=p)}
        return {"anyOf": list(alternatives), "definitions": held}

    p, q = {"$ref": "#/definitions/p"}, {"$ref": "#/definitions/q"}
    new = root(STRING, closed(u=p, v={}), closed(u={}, v=q))
    assert [each.kind for each in reading(new, root(INTEGER, closed(u=p, v=q)))] != []
    assert reading(root(INTEGER, closed(u=p, v={}), closed(u={}, v=q)), root(INTEGER, closed(u=p, v=q))) == []


def test_levels_compare_in_their_directions() -> None:
    one, two = (JSON.parse(json.dumps(each), ()) for each in (closed(a=STRING), closed(a=STRING, b=STRING)))
    assert problems_between(two, one, "BACKWARD") == []
    assert [each.kind for each in problems_between(two, one, "FORWARD")] == [
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"
    ]
    both = (JSON.parse(json.dumps(opened(a=STRING, b=INTEGER)), ()), JSON.parse(json.dumps(opened(a=STRING)), ()))
    assert problems_between(*both, "FULL", Policy.LENIENT) == []


def test_references_are_compared_with_what_they_hold() -> None:
    order = json.dumps(opened(customer={"$ref": "customer.json"}))
    old = JSON.parse(order, [Imported("customer.json", json.dumps(STRING))])
    new = JSON.parse(order, [Imported("customer.json", json.dumps(INTEGER))])
    assert [each.kind for each in new.problems_reading(old, NEW_READS_OLD)] == ["TYPE_CHANGED"]


def doubling(depth: int, leaf: Any, combine: str) -> dict[str, Any]:
    """Each definition refers to the next twice: 2^depth leaves when written out."""
    held = {f"d{n}": {combine: [{"$ref": f"#/definitions/d{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/definitions/d0", "definitions": {**held, f"d{depth}": leaf}}


@pytest.mark.parametrize("combine", ["allOf", "anyOf"])
def test_schemas_that_double_with_each_reference_are_compared_soon(combine: str) -> None:
    assert reading(doubling(40, NUMBER, combine), doubling(40, INTEGER, combine)) == []


def test_a_comparison_that_takes_too_long_is_refused() -> None:
    def alternatives(leaf: Any) -> dict[str, Any]:
        held = {
            f"d{n}": {"anyOf": [{"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"maxLength": k}]} for k in (8, 9)]}
            for n in range(40)
        }
        return {"$ref": "#/definitions/d0", "definitions": {**held, "d40": leaf}}

    with pytest.raises(SchemaTooLarge, match="steps"):
        reading(alternatives(STRING), alternatives({"type": "string", "minLength": 1}))


def test_the_problems_of_deep_schemas_do_not_multiply() -> None:
    def chain(leaf: str) -> Any:
        levels = {
            f"d{n}": {"type": "object", "properties": {f"p{k}": {"$ref": f"#/definitions/d{n + 1}"} for k in range(6)}}
            for n in range(60)
        }
        return {"definitions": {**levels, "d60": {"type": leaf}}, "$ref": "#/definitions/d0"}

    new, old = (JSON.parse(json.dumps(chain(leaf)), ()) for leaf in ("string", "number"))
    assert len(new.problems_reading(old, NEW_READS_OLD)) == PROBLEMS_MAX
    assert new.problems_reading(new, NEW_READS_OLD) == []


def test_negations_inside_negations_have_one_budget() -> None:
    def nested(leaf: str) -> Any:
        levels = {
            f"d{n}": {
                "oneOf": [
                    {"$ref": f"#/definitions/d{n + 1}"},
                    {"allOf": [{"$ref": f"#/definitions/d{n + 1}"}, {"not": {"$ref": f"#/definitions/d{n + 1}"}}]},
                ]
            }
            for n in range(25)
        }
        return {"definitions": {**levels, "d25": {"type": leaf}}, "$ref": "#/definitions/d0"}

    new, old = (JSON.parse(json.dumps(nested(leaf)), ()) for leaf in ("string", "number"))
    with pytest.raises(SchemaTooLarge, match="steps"):
        new.problems_reading(old, NEW_READS_OLD)
