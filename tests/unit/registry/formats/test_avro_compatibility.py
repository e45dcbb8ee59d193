"""Avro's resolution rules: by case, against the Avro project's own checker, and against what a reader really does."""

from __future__ import annotations

import io
import json
import warnings
from typing import Any

import avro.compatibility
import avro.errors
import avro.schema
import fastavro
import pytest
from fastavro.utils import generate_many
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from millbeck.registry.compatibility import messages_of, problems_between
from millbeck.registry.errors import SchemaTooLarge
from millbeck.registry.formats import avro_compatibility
from millbeck.registry.formats.assumptions import PROBLEMS_MAX
from millbeck.registry.formats.avro import AvroFormat
from millbeck.registry.formats.interface import NEW_READS_OLD, Imported, Incompatibility

AVRO = AvroFormat()


def reading(reader: Any, writer: Any) -> list[Incompatibility]:
    return AVRO.parse(json.dumps(reader), ()).problems_reading(AVRO.parse(json.dumps(writer), ()), NEW_READS_OLD)


def record(*fields: dict[str, Any], name: str = "R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def enum(*symbols: str, name: str = "E", **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": list(symbols), **more}


def fixed(size: int, name: str = "F") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


A_INT: dict[str, Any] = {"name": "a", "type": "int"}
NODE = record({"name": "next", "type": ["null", "R"], "default": None})

READABLE = {
    "int as double": ("double", "int"),
    "bytes as string": ("string", "bytes"),
    "a field with a default is new": (record(A_INT, {"name": "b", "type": "int", "default": 0}), record(A_INT)),
    "a field is gone": (record(), record(A_INT)),
    "a field under an alias": (record({"name": "b", "type": "int", "aliases": ["a"]}), record(A_INT)),
    "a record in another namespace": (record(namespace="x"), record(namespace="y")),
    "a record under an alias": (record(name="S", aliases=["R"]), record()),
    "more symbols": (enum("A", "B"), enum("A")),
    "fewer symbols with a default": (enum("A", default="A"), enum("A", "B")),
    "a union for its branch": (["null", "long"], "int"),
    "a branch for a union of it": ("long", ["int", "long"]),
    "a larger union": (["null", "int", "string"], ["int", "null"]),
    "items are widened": ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    "a recursive record": (NODE, NODE),
    "logical types do not matter": ({"type": "int", "logicalType": "date"}, "int"),
}


@pytest.mark.parametrize(("reader", "writer"), READABLE.values(), ids=READABLE.keys())
def test_what_can_be_read(reader: Any, writer: Any) -> None:
    assert reading(reader, writer) == []


UNREADABLE = {
    "long as int": ("int", "long", "TYPE_MISMATCH", "/"),
    "a new field without a default": (record(A_INT), record(), "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0"),
    "a field's type": (
        record({"name": "a", "type": "string"}),
        record(A_INT),
        "TYPE_MISMATCH",
        "/fields/0/type",
    ),
    "another record": (record(name="S"), record(), "NAME_MISMATCH", "/name"),
    "another enum": (enum("A", name="S"), enum("A"), "NAME_MISMATCH", "/name"),
    "another fixed": (fixed(2, "S"), fixed(2), "NAME_MISMATCH", "/name"),
    "fewer symbols": (enum("A"), enum("A", "B"), "MISSING_ENUM_SYMBOLS", "/symbols"),
    "another size": (fixed(2), fixed(3), "FIXED_SIZE_MISMATCH", "/size"),
    "a record for an enum": (record(name="E"), enum("A"), "TYPE_MISMATCH", "/"),
    "no branch": (["null", "string"], "int", "MISSING_UNION_BRANCH", "/"),
    "a branch less": (["null", "string"], ["null", "string", "int"], "MISSING_UNION_BRANCH", "/"),
    "a union for one of its branches": ("int", ["null", "int"], "TYPE_MISMATCH", "/"),
    "an array for a map": (
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        "TYPE_MISMATCH",
        "/",
    ),
    "values": ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, "TYPE_MISMATCH", "/values"),
    "a branch that has the name but is not readable": (
        ["null", record(A_INT)],
        record(),
        "READER_FIELD_MISSING_DEFAULT_VALUE",
        "/1/fields/0",
    ),
}


@pytest.mark.parametrize(("reader", "writer", "kind", "path"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_cannot_be_read(reader: Any, writer: Any, kind: str, path: str) -> None:
    assert [(each.kind, each.path) for each in reading(reader, writer)] == [(kind, path)]


def test_what_was_assumed_of_a_recursive_pair_is_looked_at_again() -> None:
    """The pair (R, R) is assumed readable inside the union's first branch, and it is not: B must not count either."""

    def schema(added: list[dict[str, Any]]) -> Any:
        inner = record({"name": "r", "type": ["null", "R"]}, name="B")
        return record({"name": "x", "type": ["null", inner, "string"]}, {"name": "y", "type": ["null", "B"]}, *added)

    found = reading(["null", schema([A_INT])], ["null", schema([])])
    assert [each.kind for each in found] == ["READER_FIELD_MISSING_DEFAULT_VALUE"]


def test_comparing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = [Imported("", json.dumps(record(name="R0")))]
    links = (record({"name": "f", "type": f"R{index}"}, name=f"R{index + 1}") for index in range(900))
    chain += [Imported("", json.dumps(each)) for each in links]
    reader, writer = (AVRO.parse('"R900"', chain) for _ in range(2))
    with pytest.raises(SchemaTooLarge, match="chain"):
        reader.problems_reading(writer, NEW_READS_OLD)
    monkeypatch.setattr(avro_compatibility, "STEPS_MAX", 3)
    with pytest.raises(SchemaTooLarge, match="steps"):
        reading(["int", "string", "bytes"], ["int", "string", "bytes"])


def test_messages_name_rule_path_piece_and_remedy() -> None:
    new, old = (AVRO.parse(json.dumps(each), ()) for each in (record(A_INT), record()))
    messages = messages_of(problems_between(new, old, "FULL"), version=1, old_text="{}", level="FULL")
    assert messages == [
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'the field a of the new schema has no default "
        "value and is missing in the old schema; give it a default value', additionalInfo:'a', path:'/fields/0'}",
        "{oldSchemaVersion: 1}",
        "{oldSchema: '{}'}",
        "{compatibility: 'FULL'}",
    ]


ORDER_V1 = record(
    {"name": "orderId", "type": "string"},
    {"name": "customerId", "type": "string"},
    {"name": "amount", "type": "double"},
)
COUPON = {"name": "couponCode", "type": ["null", "string"], "default": None}
CHANGES = {
    "an optional field is new": ([*ORDER_V1["fields"], COUPON], {"BACKWARD", "FORWARD", "FULL"}),
    "a required field is new": ([*ORDER_V1["fields"], A_INT], {"FORWARD"}),
    "a required field is gone": (ORDER_V1["fields"][:2], {"BACKWARD"}),
}


@pytest.mark.parametrize("level", ["BACKWARD", "FORWARD", "FULL", "NONE"])
@pytest.mark.parametrize(("fields", "allowed"), CHANGES.values(), ids=CHANGES.keys())
def test_each_level_allows_its_changes(fields: list[dict[str, Any]], allowed: set[str], level: str) -> None:
    new, old = (AVRO.parse(json.dumps(each), ()) for each in (record(*fields), ORDER_V1))
    assert (problems_between(new, old, level) == []) == (level in {*allowed, "NONE"})
    assert problems_between(old, old, level) == []


# Against other implementations.

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """Schemas from few names, so that pairs of them have much in common."""
    count = [0]

    def named(kind: str) -> str:
        count[0] += 1
        return f"{kind}{count[0]}" if draw(st.booleans()) else f"{kind}{count[0]}x"

    def some(depth: int, *, in_union: bool = False) -> Any:
        kinds = ["primitive"] * 3 + (["enum", "fixed"] if depth < 3 else [])
        if depth > 0:
            kinds += ["record"] * 3 + ["array", "map"] + ([] if in_union else ["union"] * 2)
        match draw(st.sampled_from(kinds)):
            case "primitive":
                return draw(st.sampled_from(PRIMITIVES))
            case "array":
                return {"type": "array", "items": some(depth - 1)}
            case "map":
                return {"type": "map", "values": some(depth - 1)}
            case "enum":
                symbols = draw(st.lists(st.sampled_from("ABC"), min_size=1, max_size=3, unique=True))
                return enum(*symbols, name=named("E"), **({"default": symbols[0]} if draw(st.booleans()) else {}))
            case "fixed":
                return fixed(draw(st.integers(1, 2)), named("F"))
            case "union":
                found: dict[str, Any] = {}
                for _ in range(draw(st.integers(1, 3))):
                    branch = some(depth - 1, in_union=True)
                    found.setdefault(branch if isinstance(branch, str) else branch.get("name", branch["type"]), branch)
                return list(found.values())
        name = named("R")
        fields: list[dict[str, Any]] = []
        for field in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
            made: dict[str, Any] = {"name": field, "type": some(depth - 1)}
            if draw(st.integers(0, 3)) == 0:
                made = {"name": field, "type": ["null", name], "default": None}
            elif draw(st.booleans()) and made["type"] == "int":
                made["default"] = 0
            if draw(st.integers(0, 5)) == 0:
                made["aliases"] = [draw(st.sampled_from("abc"))]
            fields.append(made)
        return record(*fields, name=name)

    return some(depth)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """A schema, and either another one or the same with one place changed."""
    first = draw(schemas())
    if draw(st.integers(0, 3)) == 0:
        return first, draw(schemas())
    second = json.loads(json.dumps(first))
    places: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for place in range(len(node)) if isinstance(node, list) else list(node):
            if place in ("type", "items", "values", "fields") or isinstance(node, list):
                places.append((node, place))
            if isinstance(node[place], dict | list):
                collect(node[place])

    if isinstance(second, dict | list):
        collect(second)
    if places:
        node, place = draw(st.sampled_from(places))
        if node[place] in PRIMITIVES:
            node[place] = draw(st.sampled_from(PRIMITIVES))
        elif isinstance(node[place], list) and node[place]:
            del node[place][draw(st.integers(0, len(node[place]) - 1))]
    return (first, second) if draw(st.booleans()) else (second, first)


def is_schema(node: Any) -> bool:
    try:
        avro.schema.parse(json.dumps(node))
        AVRO.parse(json.dumps(node), ())
    except Exception:
        return False
    return True


@settings(max_examples=300, deadline=None)
@given(pairs())
def test_verdicts_are_those_of_avros_own_checker_and_readable_is_readable(pair: tuple[Any, Any]) -> None:
    reader, writer = pair
    assume(is_schema(reader) and is_schema(writer))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checker: Any = avro.compatibility.ReaderWriterCompatibilityChecker
        theirs = checker().get_compatibility(
            avro.schema.parse(json.dumps(reader)), avro.schema.parse(json.dumps(writer))
        )
    is_readable = reading(reader, writer) == []
    assert is_readable == (theirs.compatibility is avro.compatibility.SchemaCompatibilityType.compatible)
    if is_readable and "aliases" not in json.dumps(reader):  # fastavro prefers an alias to the field's own name
        _read_what_was_written(reader, writer)


def _read_what_was_written(reader: Any, writer: Any) -> None:
    written = fastavro.parse_schema(writer)
    try:
        values = list(generate_many(written, 3))
    except (RecursionError, ValueError):
        return  # a type that has no finite value, or an empty union, which has none at all
    for value in values:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, written, value)
        buffer.seek(0)
        try:
            fastavro.schemaless_reader(buffer, written, fastavro.parse_schema(reader))
        except UnicodeDecodeError:
            continue  # random bytes that are read as a string


def test_the_problems_of_deep_records_do_not_multiply() -> None:
    """Each record refers to the next one six times, so the last one is reached in 6**60 ways."""

    def chain(leaf: str) -> str:
        inner: Any = leaf
        for depth in range(59, -1, -1):
            name = f"N{depth + 1}"
            again = [{"name": f"b{n}", "type": ["null", name] if depth < 59 else "null"} for n in range(5)]
            inner = {"type": "record", "name": f"N{depth}", "fields": [{"name": "a", "type": inner}, *again]}
        return json.dumps(inner)

    new, old = (AVRO.parse(chain(leaf), ()) for leaf in ("string", "int"))
    assert len(new.problems_reading(old, NEW_READS_OLD)) == PROBLEMS_MAX
    assert new.problems_reading(new, NEW_READS_OLD) == []
