"""Random instances of any declared message, made from its declaration.

An instance follows from one seed, not from a draw for every field: that is some fifty times faster, so that each
message can be tried in each of its versions. The price is that a failing example is not made smaller.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import strategies as st

from millbeck.wire.schema import Array, Field, Kind, Primitive, schema_of

Narrow = Callable[[type[Any], Field], Callable[[Random], Any] | None]
"""Gives a maker of its own for a field, or None."""

_LIMITS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
_CHARACTERS = "az09._-äß∀𝄞\0"
_SIZES = (0, 1, 1, 2, 5, 9, 127, 130, 300)
_COUNTS = (0, 1, 1, 1, 2, 2, 3, 9)


def _no_narrowing(_: type[Any], __: Field) -> None:
    return None


class Maker:
    """Makes messages whose fields are all within ``version``; those it lacks stay at their defaults."""

    def __init__(self, random: Random, version: int, narrow: Narrow = _no_narrowing) -> None:
        self.random = random
        self.version = version
        self.narrow = narrow

    def make(self, cls: type[Any], depth: int = 0) -> Any:
        fields = (field for field in schema_of(cls).fields if self.version in field.versions)
        return cls(**{field.name: self._value(cls, field, depth) for field in fields})

    def _value(self, cls: type[Any], field: Field, depth: int) -> Any:
        if self.version in field.nullable and self.random.random() < 0.25:
            return None
        if self.version in field.tagged and self.random.random() < 0.4:
            return field.make_default()
        maker = self.narrow(cls, field)
        if maker is not None:
            return maker(self.random)
        if isinstance(field.type, Array):
            count = self.random.choice(_COUNTS if depth < 2 else _COUNTS[:4])
            if isinstance(field.type.element, Primitive):
                return [primitive_value(self.random, field.type.element) for _ in range(count)]
            return [self.make(field.type.element, depth + 1) for _ in range(min(count, 3))]
        if isinstance(field.type, Primitive):
            return primitive_value(self.random, field.type)
        return self.make(field.type, depth + 1)


def primitive_value(random: Random, primitive: Primitive) -> Any:
    name = primitive.name
    if name in _LIMITS:
        low, high = _LIMITS[name]
        return random.choice((0, 1, max(low, -1), low, high, random.randint(low, high)))
    if name == "boolean":
        return random.random() < 0.5
    if name == "float64":
        value: float = struct.unpack(">d", random.randbytes(8))[0]
        return value if math.isfinite(value) else 0.5
    if name == "uuid":
        return random.choice((bytes(16), random.randbytes(16)))
    size = random.choice(_SIZES)
    if name == "string":
        return "".join(random.choices(_CHARACTERS, k=size))
    return random.randbytes(size)


def instances(cls: type[Any], version: int, narrow: Narrow = _no_narrowing) -> st.SearchStrategy[Any]:
    return seeds().map(lambda seed: Maker(Random(seed), version, narrow).make(cls))


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 2**64 - 1)


def standalone_versions(cls: type[Any]) -> range:
    schema = schema_of(cls)
    assert schema.kind is not Kind.STRUCT
    return range(schema.versions.low, schema.versions.high + 1)
