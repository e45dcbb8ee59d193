"""Messages that extend Kafka's: a second class of an API key, with fields that Kafka lacks.

docs/architecture.md says how to declare one, in the row "field of an API". The tests that compare declarations with
Kafka's see the first class of each key only. Here the second one is compared with the first: it has the same fields and
more, and whoever knows Kafka's message only reads the same from its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from millbeck.wire import codec, messages
from millbeck.wire.api_keys import APIS
from millbeck.wire.messages.replicas import DescribeLogDirsResponseWithDirtyRatio
from millbeck.wire.schema import Array, Field, Kind, Primitive, schema_of
from tests.model.wire.instances import Maker, primitive_value, seeds, standalone_versions

OWN_TAG_MIN = 10_000
"""Kafka numbers its tags from 0; those from here on are never its."""


def _extended() -> Iterator[tuple[type[Any], type[Any]]]:
    """Each class that extends a message, after the class that is Kafka's."""
    for found in iter_modules(messages.__path__):
        module = import_module(f"{messages.__name__}.{found.name}")
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == module.__name__:
                schema = schema_of(cls)
                if schema.kind in (Kind.REQUEST, Kind.RESPONSE) and schema.api_key is not None:
                    api = APIS[schema.api_key]
                    kafkas = api.request if schema.kind is Kind.REQUEST else api.response
                    if cls is not kafkas:
                        yield kafkas, cls


EXTENDED = list(_extended())
each_extended = pytest.mark.parametrize(("kafkas", "ours"), EXTENDED, ids=lambda cls: cls.__name__)


def _structs(kafkas: type[Any], ours: type[Any]) -> Iterator[tuple[type[Any], type[Any]]]:
    """The two classes, and those of their fields at every depth."""
    yield kafkas, ours
    own = {field.name: field for field in schema_of(ours).fields}
    for field in schema_of(kafkas).fields:
        inner = _struct_of(field)
        if inner is not None:
            extended = _struct_of(own[field.name])
            assert extended is not None
            yield from _structs(inner, extended)


def _struct_of(field: Field) -> type[Any] | None:
    element = field.type.element if isinstance(field.type, Array) else field.type
    return None if isinstance(element, Primitive) else element


def _own_fields(kafkas: type[Any], ours: type[Any]) -> list[Field]:
    names = {field.name for field in schema_of(kafkas).fields}
    return [field for field in schema_of(ours).fields if field.name not in names]


def _extend(message: Any, ours: type[Any], random: Random | None = None) -> Any:
    """The same message in the extending class; its own fields have their defaults, or random values."""
    own = {field.name: field for field in schema_of(ours).fields}
    values = {}
    for field in schema_of(type(message)).fields:
        value, inner = getattr(message, field.name), _struct_of(own[field.name])
        if inner is not None and isinstance(value, list):
            value = [_extend(each, inner, random) for each in value]
        elif inner is not None and value is not None:
            value = _extend(value, inner, random)
        values[field.name] = value
    if random is not None:
        for field in _own_fields(type(message), ours):
            assert isinstance(field.type, Primitive), "random values are made of primitive types only"
            values[field.name] = primitive_value(random, field.type)
    return ours(**values)


def test_extended_messages_are_found() -> None:
    assert DescribeLogDirsResponseWithDirtyRatio in [ours for _, ours in EXTENDED]


@each_extended
def test_the_versions_are_those_of_kafkas_message(kafkas: type[Any], ours: type[Any]) -> None:
    assert schema_of(ours).versions == schema_of(kafkas).versions
    assert schema_of(ours).flexible == schema_of(kafkas).flexible


@each_extended
def test_own_fields_have_tags_that_kafka_never_uses_and_are_ignorable(kafkas: type[Any], ours: type[Any]) -> None:
    own = [field for pair in _structs(kafkas, ours) for field in _own_fields(*pair)]
    assert own, f"{ours.__name__} has no field of its own"
    flexible = schema_of(kafkas).flexible
    for field in own:
        assert field.tag is not None, field.name
        assert field.tag >= OWN_TAG_MIN, field.name
        assert field.ignorable, field.name
        assert field.versions.low >= flexible.low, f"{field.name} is in versions without tagged fields"
        assert field.tagged == field.versions, f"{field.name} is not tagged in all of its versions"


@each_extended
def test_with_its_own_fields_at_their_defaults_its_bytes_are_kafkas(kafkas: type[Any], ours: type[Any]) -> None:
    @settings(max_examples=16, derandomize=True, database=None, deadline=None)
    @given(seeds())
    def agree(seed: int) -> None:
        for version in standalone_versions(kafkas):
            message = Maker(Random(seed), version).make(kafkas)
            encoded = codec.encoder(kafkas, version)(message)
            extended = _extend(message, ours)
            assert codec.encoder(ours, version)(extended) == encoded, f"version {version}"
            assert codec.decoder(ours, version)(encoded) == (extended, len(encoded)), f"version {version}"

    agree()


@each_extended
def test_who_knows_kafkas_message_only_reads_the_same(kafkas: type[Any], ours: type[Any]) -> None:
    @settings(max_examples=16, derandomize=True, database=None, deadline=None)
    @given(seeds())
    def agree(seed: int) -> None:
        for version in standalone_versions(kafkas):
            random = Random(seed)
            message = Maker(random, version).make(kafkas)
            encoded = codec.encoder(ours, version)(_extend(message, ours, random))
            assert codec.decoder(kafkas, version)(encoded) == (message, len(encoded)), f"version {version}"

    agree()
