"""Kafka's own schema files as the judge of our declarations, also of what bytes do not show: defaults and ignorable.

`differences` compares one declared class with the JSON that Kafka generates the same class from: api key, valid and
flexible versions, and of every field its name, order, type, versions, nullable versions, tag, tagged versions, default
and whether it is ignorable. Only versions that we declare count: a range that goes on past the last one is the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from millbeck.wire.schema import Array, Field, Primitive, Versions, parse_versions, schema_of

Json = dict[str, Any]

_KEYED = ("request", "response", "metadata")
"""The kinds of file whose api key is declared with the message; the coordinators' records have theirs in a table."""


def parse(text: str) -> Json:
    """A schema file: JSON with comment lines."""
    loaded: Json = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return loaded


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def differences(cls: type[Any], theirs: Json) -> list[str]:
    """What is declared otherwise than the file says, one line each; the file's value comes second."""
    schema = schema_of(cls)
    valid = parse_versions(theirs["validVersions"])
    found = [
        f"{schema.name}: {what} {ours}, not {expected}"
        for what, ours, expected in (
            ("versions", schema.versions, valid),
            ("api key", schema.api_key, theirs.get("apiKey") if theirs["type"] in _KEYED else None),
            ("flexible", _within(schema.flexible, valid), _within(parse_versions(theirs["flexibleVersions"]), valid)),
        )
        if ours != expected
    ]
    structs = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", ())}
    return found + list(_of_fields(schema.name, cls, theirs["fields"], structs, schema.versions))


def paths(cls: type[Any], above: str = "") -> Iterator[tuple[str, Field]]:
    """Every field of a class, with the names of the fields it is inside."""
    for field in schema_of(cls).fields:
        yield above + field.name, field
        element = field.type.element if isinstance(field.type, Array) else field.type
        if not isinstance(element, Primitive):
            yield from paths(element, f"{above}{field.name}.")


def _of_fields(
    owner: str, cls: type[Any], theirs: list[Json], structs: dict[str, list[Json]], versions: Versions
) -> Iterator[str]:
    ours = {field.name: field for field in schema_of(cls).fields}
    expected = {snake(field["name"]): field for field in theirs if _within(_versions_of(field), versions)}
    if sorted(ours) != sorted(expected):
        yield f"{owner}: fields {sorted(ours)}, not {sorted(expected)}"
    # The tagged section is ordered by tag, wherever its fields are declared.
    own_order = [field.name for field in ours.values() if field.tag is None]
    order = [name for name, field in expected.items() if "tag" not in field]
    if own_order != order:
        yield f"{owner}: order {own_order}, not {order}"
    for name in (name for name in ours if name in expected):
        yield from _of_field(f"{owner}.{name}", ours[name], expected[name], structs, versions)


def _of_field(where: str, ours: Field, theirs: Json, structs: dict[str, list[Json]], around: Versions) -> Iterator[str]:
    present = _versions_of(theirs)
    inside = Versions(max(around.low, present.low), min(around.high, present.high))
    facts = {
        "type": (_type_name(ours), _their_type_name(theirs)),
        "versions": (_within(ours.versions, around), _within(present, around)),
        "nullable versions": _both(ours.nullable, theirs.get("nullableVersions"), inside),
        "tagged versions": _both(ours.tagged, theirs.get("taggedVersions"), inside),
        "tag": (ours.tag, theirs.get("tag")),
        "flexible versions": (ours.flexible, _optional_versions(theirs.get("flexibleVersions"))),
        "default": (ours.make_default(), _default(theirs, ours, inside)),
        "ignorable": (ours.ignorable, bool(theirs.get("ignorable"))),
    }
    for what, (own, expected) in facts.items():
        if own != expected:
            yield f"{where}: {what} {own!r}, not {expected!r}"
    element = ours.type.element if isinstance(ours.type, Array) else ours.type
    if not isinstance(element, Primitive):
        name = theirs["type"].removeprefix("[]")
        yield from _of_fields(where, element, theirs.get("fields") or structs[name], structs, inside)


def _versions_of(theirs: Json) -> Versions:
    """Where a field says nothing else, it exists where it is tagged, or everywhere."""
    return parse_versions(theirs.get("versions", theirs.get("taggedVersions", "0+")))


def _within(versions: Versions, bounds: Versions) -> list[int]:
    return list(range(max(versions.low, bounds.low), min(versions.high, bounds.high) + 1))


def _both(ours: Versions, theirs: str | None, bounds: Versions) -> tuple[list[int], list[int]]:
    return _within(ours, bounds), _within(parse_versions(theirs or "none"), bounds)


def _optional_versions(text: str | None) -> Versions | None:
    return None if text is None else parse_versions(text)


def _type_name(field: Field) -> str:
    element = field.type.element if isinstance(field.type, Array) else field.type
    name = element.name if isinstance(element, Primitive) else "struct"
    return ("[]" if isinstance(field.type, Array) else "") + name


def _their_type_name(theirs: Json) -> str:
    element = theirs["type"].removeprefix("[]")
    name = "struct" if element[0].isupper() else {"bool": "boolean"}.get(element, element)
    return ("[]" if theirs["type"].startswith("[]") else "") + name


def _default(theirs: Json, ours: Field, inside: Versions) -> Any:
    """What Kafka's generator makes of the default, written or not."""
    text = theirs.get("default")
    if text == "null":
        return None
    if text is None or isinstance(ours.type, Array) or not isinstance(ours.type, Primitive):
        return _implied_default(theirs, ours, inside)
    if ours.type.name == "boolean":
        return str(text).lower() == "true"
    if ours.type.name == "string":
        return text
    if ours.type.name == "float64":
        return float(text)
    return int(str(text), 0) if text != "" else ours.type.default


def _implied_default(theirs: Json, ours: Field, inside: Versions) -> Any:
    """Of a field without a default: zero or empty, and null for records alone, where they may be."""
    if isinstance(ours.type, Array):
        return []
    if isinstance(ours.type, Primitive):
        if ours.type.name == "records":
            return None if _within(parse_versions(theirs.get("nullableVersions", "none")), inside) else b""
        return ours.type.default
    return ours.type()
