"""Random instances of any declared message, made from its declaration."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hypothesis import strategies as st

from millbeck.wire.schema import Array, Field, Kind, Primitive, schema_of

Narrow = Callable[[type[Any], Field], st.SearchStrategy[Any] | None]
"""Gives a strategy of its own for a field, or None."""

_LIMITS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.just("x" * 130)


def _integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, -1 if low else 2, low, high]) | st.integers(low, high)


@cache
def primitive_values(primitive: Primitive) -> st.SearchStrategy[Any]:
    name = primitive.name
    if name in _LIMITS:
        return _integers(-(2 ** _LIMITS[name]), 2 ** _LIMITS[name] - 1)
    if name in ("uint16", "uint32"):
        return _integers(0, 2 ** int(name.removeprefix("uint")) - 1)
    if name == "boolean":
        return st.booleans()
    if name == "float64":
        return st.floats(allow_nan=False, allow_infinity=False)
    if name == "uuid":
        return st.just(bytes(16)) | st.binary(min_size=16, max_size=16)
    if name == "string":
        return _TEXTS
    return st.binary(max_size=12) | st.just(bytes(200))


def _lists(elements: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    """Seldom empty, since what is inside would then go untested."""
    return st.lists(elements, min_size=1, max_size=2) | st.lists(elements, max_size=3)


def _no_narrowing(_: type[Any], __: Field) -> None:
    return None


def instances(cls: type[Any], version: int, narrow: Narrow = _no_narrowing) -> st.SearchStrategy[Any]:
    """Messages whose fields are all within ``version``; those it lacks stay at their defaults."""
    return st.builds(
        cls,
        **{
            field.name: _field_values(cls, field, version, narrow)
            for field in schema_of(cls).fields
            if version in field.versions
        },
    )


def _field_values(cls: type[Any], field: Field, version: int, narrow: Narrow) -> st.SearchStrategy[Any]:
    values = narrow(cls, field)
    if values is None:
        values = _plain_values(field, version, narrow)
    if version in field.nullable:
        values = st.none() | values
    if version in field.tagged:
        values = st.builds(field.make_default) | values
    return values


def _plain_values(field: Field, version: int, narrow: Narrow) -> st.SearchStrategy[Any]:
    if isinstance(field.type, Array):
        element = field.type.element
        if isinstance(element, Primitive):
            return _lists(primitive_values(element))
        return _lists(instances(element, version, narrow))
    if isinstance(field.type, Primitive):
        return primitive_values(field.type)
    return instances(field.type, version, narrow)


def standalone_versions(cls: type[Any]) -> range:
    schema = schema_of(cls)
    assert schema.kind is not Kind.STRUCT
    return range(schema.versions.low, schema.versions.high + 1)
