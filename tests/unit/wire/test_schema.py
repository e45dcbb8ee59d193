from __future__ import annotations

import copy
from typing import Any

import pytest

from millbeck.wire.errors import SchemaError
from millbeck.wire.schema import (
    LATEST,
    NONE,
    Kind,
    Versions,
    array,
    bytes_,
    int32,
    message,
    nested,
    parse_versions,
    records,
    schema_of,
    string,
    struct,
    uuid,
)


@struct
class Point:
    x: int = int32()
    y: int = int32(default=-1)


@message(kind=Kind.REQUEST, api_key=7, versions="1-3", flexible="2+")
class Shape:
    """A shape."""

    name: str = string(doc="What it is called.")
    points: list[Point] = array(of=Point)
    tags: list[str] | None = array(of=string, nullable="2+", default=None)
    centre: Point = nested(of=Point, versions="2+", tag=4)
    owner: bytes = uuid(versions="3+", tag=5, tagged="3", ignorable=True)
    content: bytes | None = records(nullable="0+")

    def describe(self) -> str:
        return f"{self.name} of {len(self.points)}"


VERSIONS = {
    "one": ("3", Versions(3, 3)),
    "range": ("2-5", Versions(2, 5)),
    "open": ("2+", Versions(2, LATEST)),
    "none": ("none", NONE),
}


@pytest.mark.parametrize(("text", "expected"), VERSIONS.values(), ids=VERSIONS.keys())
def test_versions_are_parsed(text: str, expected: Versions) -> None:
    assert parse_versions(text) == expected


@pytest.mark.parametrize("text", ["", "x", "1-", "-1", "1-2-3", "+"])
def test_other_texts_are_no_versions(text: str) -> None:
    with pytest.raises(SchemaError, match="version range"):
        parse_versions(text)


def test_membership_in_versions() -> None:
    assert 2 in Versions(2, 3)
    assert 4 not in Versions(2, 3)
    assert 0 not in NONE
    assert "2" not in Versions(2, 3)


def test_constructors_take_defaults_positions_and_names() -> None:
    assert Shape() == Shape("", [], None, Point(0, -1), bytes(16), None)
    shape = Shape("triangle", [Point(1)], content=b"x")
    assert (shape.name, shape.points[0].y, shape.content) == ("triangle", -1, b"x")


def test_mutable_defaults_are_not_shared() -> None:
    first, second = Shape(), Shape()
    first.points.append(Point())
    first.centre.x = 9
    assert (second.points, second.centre.x) == ([], 0)


def test_equality_looks_at_every_field_and_at_the_class() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(1, 3)
    assert Point(1, 2) != (1, 2)
    with pytest.raises(TypeError):
        hash(Point())


def test_representation_names_the_fields() -> None:
    assert repr(Point(1, 2)) == "Point(x=1, y=2)"


def test_classes_are_slotted_and_keep_methods_and_docs() -> None:
    with pytest.raises(AttributeError):
        Point().z = 3  # type: ignore[attr-defined]
    assert Shape("s", [Point()]).describe() == "s of 1"
    assert Shape.__doc__ == "A shape."
    assert copy.deepcopy(Shape("s")) == Shape("s")
    match Point(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)


def test_an_unknown_argument_is_refused() -> None:
    with pytest.raises(TypeError):
        Point(z=1)  # type: ignore[call-arg]


def test_schema_holds_the_declaration() -> None:
    schema = schema_of(Shape)
    assert (schema.name, schema.kind, schema.api_key) == ("Shape", Kind.REQUEST, 7)
    assert (schema.versions, schema.is_flexible(1), schema.is_flexible(2)) == (Versions(1, 3), False, True)
    fields = {field.name: field for field in schema.fields}
    assert fields["name"].doc == "What it is called."
    assert fields["centre"].tagged == Versions(2, LATEST)
    assert fields["owner"].tagged == Versions(3, 3)
    assert fields["owner"].ignorable
    with pytest.raises(SchemaError, match="not a declared"):
        schema_of(dict)


def _wrong_annotation() -> Any:
    @struct
    class Wrong:
        x: str = int32()

    return Wrong


def _missing_null() -> Any:
    @struct
    class Wrong:
        x: str = string(nullable="0+")

    return Wrong


def _null_default() -> Any:
    @struct
    class Wrong:
        x: bytes = bytes_(default=None)

    return Wrong


def _plain_value() -> Any:
    @struct
    class Wrong:
        x: int = 3

    return Wrong


@pytest.mark.parametrize("declare", [_wrong_annotation, _missing_null, _null_default, _plain_value])
def test_a_declaration_that_contradicts_itself_is_refused(declare: Any) -> None:
    with pytest.raises(SchemaError, match=r"Wrong\.x"):
        declare()


def test_tagged_versions_need_a_tag() -> None:
    with pytest.raises(SchemaError, match="without a tag"):
        int32(tagged="1+")
