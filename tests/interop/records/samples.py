"""Values for every field of every record, drawn from a seed, and records in Kafka's JSON."""

from __future__ import annotations

import base64
import random
from typing import Any

from millbeck.kernel.ids import uuid_text
from millbeck.wire.schema import Array, Field, Primitive, schema_of

_TEXTS = ("", "a", "orders", "naïve-Größe", "x" * 200, "日本")


def sample(cls: type[Any], version: int, rng: random.Random) -> Any:
    """A record with values where ``version`` has fields and defaults elsewhere."""
    record = cls()
    for field in schema_of(cls).fields:
        if version not in field.versions:
            continue
        # A value at its default is the interesting case of a tagged field.
        if field.tag is not None and rng.random() < 0.3:
            continue
        setattr(record, field.name, _value(field, field.type, version, rng))
    return record


def _value(field: Field, kind: Any, version: int, rng: random.Random) -> Any:
    if version in field.nullable and rng.random() < 0.2:
        return None
    if isinstance(kind, Array):
        return [_element(kind.element, version, rng) for _ in range(rng.choice((0, 1, 2, 5, 130)))]
    return _element(kind, version, rng)


def _element(kind: Any, version: int, rng: random.Random) -> Any:
    if not isinstance(kind, Primitive):
        return sample(kind, version, rng)
    match kind.name:
        case "boolean":
            return rng.random() < 0.5
        case "int8" | "int16" | "int32" | "int64":
            limit = 1 << (kind.size * 8 - 1)
            return rng.choice((0, 1, -1, limit - 1, -limit, rng.randrange(-limit, limit)))
        case "uint16":
            return rng.choice((0, 9092, 65535))
        case "float64":
            return rng.choice((0.0, 1.5, 1e300, -0.25))
        case "uuid":
            return rng.choice((bytes(16), rng.randbytes(16)))
        case "string":
            return rng.choice(_TEXTS)
        case "bytes":
            return rng.randbytes(rng.choice((0, 1, 32, 200)))
        case name:
            raise NotImplementedError(name)


def as_json(value: Any, version: int) -> dict[str, Any]:
    """The form that Kafka's JSON converters read."""
    shaped = {}
    for field in schema_of(type(value)).fields:
        if version in field.versions:
            shaped[_camel(field.name)] = _json(getattr(value, field.name), field.type, version)
    return shaped


def _json(value: Any, kind: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_json(element, kind.element, version) for element in value]
    if not isinstance(kind, Primitive):
        return as_json(value, version)
    if kind.name == "uuid":
        return uuid_text(value)
    if kind.name == "bytes":
        return base64.b64encode(value).decode()
    return value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
