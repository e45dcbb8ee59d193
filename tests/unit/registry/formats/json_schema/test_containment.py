"""Verdicts against what validators do: documents generated under the old schema are validated by the new one.

jsonschema-rs has an opinion of its own on containment, which is the second voice here: it says yes, or that it does not
know.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

pytest.importorskip("jsonschema_rs")

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.registry.formats.interface import NEW_READS_OLD
from millbeck.registry.formats.json_schema.schema import JsonFormat
from tests.unit.registry.formats.json_schema.test_compatibility import ACCEPTED, REFUSED, reading

JSON = JsonFormat()
DOCUMENTS = 100
NAMES = ("a", "b", "c")

DIFFERENT_BY_RULE = (
    "a property with a default is required",
    "a new property with a default is required",
)
"""Accepted by Confluent's rules, though a document without it is not valid: who reads fills in the default."""


def scalars() -> st.SearchStrategy[dict[str, Any]]:
    bounds = st.integers(0, 4)
    return st.one_of(
        st.sampled_from(["null", "boolean", "string", "integer", "number"]).map(lambda kind: {"type": kind}),
        st.builds(lambda low, high: {"type": "integer", "minimum": low, "maximum": low + high}, bounds, bounds),
        st.builds(lambda low, high: {"type": "string", "minLength": low, "maxLength": low + high}, bounds, bounds),
        st.lists(st.sampled_from(["x", "y", 1, 2, None, True]), min_size=1, max_size=3, unique_by=repr).map(
            lambda values: {"enum": values}
        ),
        st.just({"type": ["string", "null"]}),
    )


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda properties, required: {
            "type": "object",
            "properties": properties,
            "required": [name for name in required if name in properties],
            "additionalProperties": False,
        },
        st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
        st.lists(st.sampled_from(NAMES), unique=True, max_size=2),
    )


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Closed models with scalars, arrays, alternatives."""
    return st.recursive(
        scalars(),
        lambda inner: st.one_of(
            objects(inner),
            inner.map(lambda items: {"type": "array", "items": items, "maxItems": 2}),
            st.lists(inner, min_size=1, max_size=2).map(lambda branches: {"anyOf": branches}),
        ),
        max_leaves=6,
    )


@st.composite
def changed(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a change somewhere, as people make them."""
    node = copy.deepcopy(schema)
    inner = node
    while draw(st.booleans()) and isinstance(inner.get("properties"), dict) and inner["properties"]:
        inner = inner["properties"][draw(st.sampled_from(sorted(inner["properties"])))]
    match draw(st.sampled_from(["property", "optional", "widen", "alternative", "other", "none"])):
        case "property" if "properties" in inner:
            inner["properties"][draw(st.sampled_from(NAMES))] = draw(scalars())
        case "optional" if inner.get("required"):
            inner["required"] = inner["required"][1:]
        case "widen" if inner.get("type") not in (None, "null") and isinstance(inner["type"], str):
            inner["type"] = ["null", inner["type"]]
        case "alternative" if "anyOf" in inner:
            inner["anyOf"].append(draw(scalars()))
        case "other":
            return draw(schemas())
    return node


def documents(schema: Any) -> st.SearchStrategy[Any]:
    """Documents that are valid under one of the schemas above."""
    if "anyOf" in schema:
        return st.one_of([documents(branch) for branch in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return st.one_of([_of_kind(kind, schema) for kind in kinds])


def _of_kind(kind: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    match kind:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "string":
            return st.text("ab", min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 6))
        case "integer":
            return st.integers(schema.get("minimum", -5), schema.get("maximum", 9))
        case "number":
            return st.one_of(st.integers(-3, 3), st.sampled_from([0.5, -1.25]))
        case "array":
            return st.lists(documents(schema["items"]), max_size=schema["maxItems"])
    held = {name: documents(inner) for name, inner in schema["properties"].items()}
    needed = {name: each for name, each in held.items() if name in schema["required"]}
    return st.fixed_dictionaries(needed, optional={name: held[name] for name in held if name not in needed})


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_documents_of_a_compatible_schema_are_valid_under_the_new_one(data: st.DataObject) -> None:
    old = data.draw(schemas())
    new = data.draw(changed(old))
    if reading(new, old):
        return
    accepts = jsonschema_rs.Draft7Validator(new)
    written = jsonschema_rs.Draft7Validator(old)
    for document in data.draw(st.lists(documents(old), min_size=DOCUMENTS // 20, max_size=DOCUMENTS)):
        assert written.is_valid(document)
        assert accepts.is_valid(document), (old, new, document)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_schema_accepts_its_own_documents(data: st.DataObject) -> None:
    old = data.draw(schemas())
    assert reading(old, old) == []


def draft_of(*schemas: Any) -> int:
    text = json.dumps(schemas)
    drafts = {"draft-04": jsonschema_rs.Draft4, "2020-12": jsonschema_rs.Draft202012}
    return int(next((draft for name, draft in drafts.items() if name in text), jsonschema_rs.Draft7))


def covers(new: Any, old: Any) -> bool:
    """Whether the second voice is sure that the new schema contains the old one."""
    try:
        one, other = (jsonschema_rs.canonicalize(each, draft=draft_of(new, old), offline=True) for each in (new, old))
        return bool(one.covers(other) == jsonschema_rs.canonical.Containment.YES)
    except (jsonschema_rs.ValidationError, jsonschema_rs.canonical.IncompatibleOperands):
        return False  # two drafts, or references with the same name in both


@pytest.mark.parametrize(("new", "old", "kind", "path"), REFUSED.values(), ids=REFUSED.keys())
def test_the_second_voice_is_sure_of_nothing_that_is_refused(new: Any, old: Any, kind: str, path: str) -> None:
    assert not covers(new, old)


def test_the_second_voice_agrees_with_most_of_what_is_accepted() -> None:
    """It does not know the rest; of one it is sure that it does not hold, by the rule on defaults."""
    decided = [name for name, (new, old) in ACCEPTED.items() if covers(new, old)]
    assert not any(name in DIFFERENT_BY_RULE for name in decided)
    assert len(decided) > len(ACCEPTED) * 2 // 3, sorted(ACCEPTED.keys() - decided)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_what_the_second_voice_is_sure_of_is_accepted(data: st.DataObject) -> None:
    """Except where alternatives together accept what none of them accepts alone, which is not looked for here."""
    old = data.draw(scalars() | objects(scalars()))
    new = data.draw(changed(old))
    if covers(new, old):
        reader, writer = (JSON.parse(json.dumps(each), ()) for each in (new, old))
        assert reader.problems_reading(writer, NEW_READS_OLD) == [], (new, old)
