"""Requests with one field made strange: for every API and version, one field at a time, from the declarations alone."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from millbeck.wire.schema import Array, Primitive, schema_of

INTEGER_BOUNDS = {
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
STRINGS = ("", "x", "../x", ".", "a" * 300, "\0\n\r", "snow☃man", "__consumer_offsets", "t")


def mutations(request: type[Any], version: int) -> Iterator[tuple[str, Any]]:
    """(what was done, instance) for every field of the version, nested ones included; the first is the plain one."""
    yield "nothing", seeded(request, version)
    for path, values in _places(request, version, ()):
        for value in values:
            instance = seeded(request, version)
            _put(instance, path, deepcopy(value))
            shown = repr(value)
            yield f"{'.'.join(map(str, path))} = {shown[:60]}", instance


def seeded(cls: type[Any], version: int) -> Any:
    """An instance with one element in every array of the version, so that nested fields exist."""
    instance = cls()
    for field in _fields(cls, version):
        if isinstance(field.type, Array):
            setattr(instance, field.name, [_plain(field.type.element, version)])
        elif not isinstance(field.type, Primitive):
            setattr(instance, field.name, seeded(field.type, version))
        elif field.name in ("name", "topic", "topic_name") and field.type.name == "string":
            setattr(instance, field.name, "t")
    return instance


def _fields(cls: type[Any], version: int) -> list[Any]:
    return [field for field in schema_of(cls).fields if version in field.versions]


def _plain(element: Any, version: int) -> Any:
    return element.default if isinstance(element, Primitive) else seeded(element, version)


def _places(cls: type[Any], version: int, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
    for field in _fields(cls, version):
        here = (*path, field.name)
        if isinstance(field.type, Array):
            element = field.type.element
            yield here, [[], None, [_plain(element, version)] * 3]
            if isinstance(element, Primitive):
                yield (*here, 0), _strange(element)
            else:
                yield from _places(element, version, (*here, 0))
        elif isinstance(field.type, Primitive):
            yield here, _strange(field.type)
        else:
            yield here, [None]
            yield from _places(field.type, version, here)


def _strange(primitive: Primitive) -> list[Any]:
    name = primitive.name
    if name in INTEGER_BOUNDS:
        low, high = INTEGER_BOUNDS[name]
        return [low, -1 if low < 0 else 1, 0, 1, 7, high]
    if name == "boolean":
        return [True, False]
    if name == "string":
        return [None, *STRINGS]
    if name == "uuid":
        return [bytes(16), bytes(range(16)), b"\xff" * 16]
    if name == "float64":
        return [0.0, -1.0, float("inf"), float("nan")]
    return [None, b"", b"\0" * 70, b"\xff" * 200]


def _put(instance: Any, path: tuple[Any, ...], value: Any) -> None:
    for step in path[:-1]:
        instance = instance[step] if isinstance(step, int) else getattr(instance, step)
    last = path[-1]
    if isinstance(last, int):
        instance[last] = value
    else:
        setattr(instance, last, value)
