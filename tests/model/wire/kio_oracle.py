"""kio, an independent implementation of Kafka's schemas, as the judge of our bytes.

Its entities correspond to our classes field by field, apart from names (it drops units) and types (it has enums for
error codes, datetimes, timedeltas and UUIDs). This module translates, and says where kio cannot take every value.
"""

from __future__ import annotations

import datetime
import io
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from dataclasses import fields as dataclass_fields
from functools import cache
from random import Random
from typing import Any, get_args, get_type_hints

from kio.index import load_entity_schema, load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.constants import EntityType

from millbeck.wire.schema import Array, Field, Kind, Primitive, schema_of

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_DATETIME_MS_MAX = 253402300799000
_TIMEDELTA_MS_MAX = 86_400_000 * 999_999
_CODES = sorted(code.value for code in ErrorCode)


def header(api_key: int, version: int, kind: Kind, **values: Any) -> bytes:
    """The header of a request or response as kio writes it."""
    load: Any = load_request_schema if kind is Kind.REQUEST else load_response_schema
    return write(load(api_key, version).__header_schema__(**values))


def is_flexible(api_key: int, version: int) -> bool:
    load: Any = load_request_schema
    return bool(load(api_key, version).__flexible__)


def entity_of(cls: Any, version: int) -> Any:
    """kio's class for one of ours."""
    schema = schema_of(cls)
    load: Any
    if schema.kind is Kind.REQUEST:
        load = load_request_schema
        return load(schema.api_key, version)
    if schema.kind is Kind.RESPONSE:
        load = load_response_schema
        return load(schema.api_key, version)
    name = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", schema.name).lower()
    return load_entity_schema(name, version, EntityType.data)


class Counterpart:
    """One of our classes at a version, next to kio's: how names, values and nested classes correspond."""

    def __init__(self, cls: type[Any], entity: type[Any], version: int) -> None:
        self.cls = cls
        self.entity = entity
        theirs = {field.name: field for field in dataclass_fields(entity)}
        hints = get_type_hints(entity)
        ours = [field for field in schema_of(cls).fields if version in field.versions]
        self.names = {field.name: _match(field.name, theirs) for field in ours}
        assert set(self.names.values()) == set(theirs), f"{cls.__name__} v{version}: {set(theirs)} is what kio has"
        self.types = {field.name: theirs[self.names[field.name]].metadata.get("kafka_type", "") for field in ours}
        self.tags = {field.name: theirs[self.names[field.name]].metadata.get("tag") for field in ours}
        self.nested = {
            field.name: counterpart(_element(field), _nested_entity(hints[self.names[field.name]]), version)
            for field in ours
            if not isinstance(_element(field), Primitive)
        }

    def all(self) -> list[Counterpart]:
        return [self] + [inner for nested in self.nested.values() for inner in nested.all()]

    def differences(self, version: int) -> list[str]:
        """Where null, a tag or a default is declared otherwise; lists have none in kio.

        kio has null for a zero UUID and for a missing time.
        """
        theirs = {field.name: field for field in dataclass_fields(self.entity)}
        hints = get_type_hints(self.entity)
        found = []
        for field in schema_of(self.cls).fields:
            if field.name not in self.names:
                continue
            name = self.names[field.name]
            where = f"{self.cls.__name__}.{field.name}"
            is_nullable = type(None) in get_args(hints[name])
            if is_nullable != (version in field.nullable) and self.types[field.name] not in ("uuid", "datetime_i64"):
                found.append(f"{where} is nullable: {version in field.nullable}, not {is_nullable}")
            tag = field.tag if version in field.tagged else None
            if tag != self.tags[field.name]:
                found.append(f"{where}: tag {tag}, not {self.tags[field.name]}")
            own = field.make_default()
            default = theirs[name].default
            if default is MISSING and isinstance(field.type, Primitive) and field.type.name != "records":
                default = self._value(field.name, field.type.default)
            if default is not MISSING and default != self._value(field.name, own):
                found.append(f"{where}: default {own!r}, not {default!r}")
        return found

    def to_kio(self, message: Any) -> Any:
        return self.entity(**{theirs: self._value(ours, getattr(message, ours)) for ours, theirs in self.names.items()})

    def _value(self, name: str, value: Any) -> Any:
        if name in self.nested:
            if isinstance(value, list):
                return tuple(self.nested[name].to_kio(item) for item in value)
            return None if value is None else self.nested[name].to_kio(value)
        if isinstance(value, list):
            return tuple(self._scalar(name, item) for item in value)
        return self._scalar(name, value)

    def _scalar(self, name: str, value: Any) -> Any:
        kind = self.types[name]
        if value is None:
            return None
        if kind == "error_code":
            return ErrorCode(value)
        if kind.startswith("timedelta"):
            return datetime.timedelta(milliseconds=value)
        if kind == "datetime_i64":
            return None if value == -1 else _EPOCH + datetime.timedelta(milliseconds=value)
        if kind == "uuid":
            return uuid.UUID(bytes=value) if any(value) else None
        return value

    def maker(self, field: Field) -> Callable[[Random], Any] | None:
        """Makes the values of a field that kio can hold, where those are not all."""
        kind = self.types.get(field.name, "")
        if kind == "error_code":
            return _make_code
        if kind == "timedelta_i64":
            return _make_timedelta
        if kind == "datetime_i64":
            return _make_datetime
        return None


def _make_code(random: Random) -> int:
    code: int = random.choice(_CODES)
    return code


def _make_timedelta(random: Random) -> int:
    return random.randrange(_TIMEDELTA_MS_MAX)


def _make_datetime(random: Random) -> int:
    return random.randrange(_DATETIME_MS_MAX // 1000) * 1000


@cache
def counterpart(cls: Any, entity: Any, version: int) -> Counterpart:
    return Counterpart(cls, entity, version)


def _match(name: str, theirs: Mapping[str, Any]) -> str:
    for candidate in (name, name.removesuffix("_ms"), name.removesuffix("_timestamp_ms"), name + "_"):
        if candidate in theirs:
            return candidate
    raise AssertionError(f"kio has no counterpart of {name} among {sorted(theirs)}")


def _element(field: Field) -> Any:
    return field.type.element if isinstance(field.type, Array) else field.type


def _nested_entity(hint: Any) -> Any:
    if hasattr(hint, "__type__"):
        found: type[Any] = hint
        return found
    for argument in get_args(hint):
        if argument is not type(None) and argument is not Ellipsis:
            return _nested_entity(argument)
    raise AssertionError(f"no entity in {hint}")


def write(entity: Any) -> bytes:
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def read(entity: type[Any], data: bytes) -> tuple[Any, int]:
    value, size = entity_reader(entity)(data, 0)
    return value, size
