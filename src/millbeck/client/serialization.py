"""Serializers and deserializers: conversion of keys and values to bytes and back.

Any object with the method of `Serializer` or `Deserializer` can be used. Those of str, int and JSON are built in; a
setting names them as ``str``, ``int``, ``json``, or by the class name of Kafka's Java client. Others are named by the
entry points ``millbeck.serializers`` and ``millbeck.deserializers``. None passes through unchanged: it is a tombstone,
not a value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from struct import Struct
from typing import Any, Final, Protocol, TypeVar

from millbeck.client.errors import SerializationFailed
from millbeck.client.plugins import plugin
from millbeck.kernel.errors import InvalidConfig
from millbeck.records.record import Header

S = TypeVar("S", contravariant=True)
D = TypeVar("D", covariant=True)

_JAVA: Final = "org.apache.kafka.common.serialization."


class Serializer(Protocol[S]):
    def serialize(self, topic: str, value: S, headers: list[Header]) -> bytes:
        """The bytes of a key or value; may append to ``headers``. Never called with None."""


class Deserializer(Protocol[D]):
    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> D:
        """The key or value of these bytes. Never called with None."""


class BytesSerde:
    """Bytes without conversion."""

    def serialize(self, topic: str, value: bytes, headers: list[Header]) -> bytes:
        if not isinstance(value, bytes):
            raise TypeError(f"keys and values must be bytes, not {type(value).__name__}: set a serializer")
        return value

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> bytes:
        return data


class StrSerde:
    """Text in UTF-8, like Kafka's StringSerializer."""

    def serialize(self, topic: str, value: str, headers: list[Header]) -> bytes:
        return value.encode()

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> str:
        return data.decode()


class IntSerde:
    """A signed integer in ``size`` bytes, big-endian: 8 as Kafka's LongSerializer, 4 as its IntegerSerializer."""

    def __init__(self, size: int = 8) -> None:
        self._packed = Struct({8: ">q", 4: ">i", 2: ">h"}[size])

    def serialize(self, topic: str, value: int, headers: list[Header]) -> bytes:
        return self._packed.pack(value)

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> int:
        found: int = self._packed.unpack(data)[0]
        return found


class JsonSerde:
    """A JSON document in UTF-8, without spaces."""

    def serialize(self, topic: str, value: Any, headers: list[Header]) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> Any:
        return json.loads(data)


_BY_NAME: Final[dict[str, Callable[[], Any]]] = {
    "bytes": BytesSerde,
    "str": StrSerde,
    "int": IntSerde,
    "json": JsonSerde,
    "ByteArray": BytesSerde,
    "String": StrSerde,
    "Long": IntSerde,
    "Integer": lambda: IntSerde(4),
    "Short": lambda: IntSerde(2),
}


def serde_named(setting: str, name: str, kind: str) -> Any:
    """Create the object named by a setting such as ``key.serializer``; ``kind`` is Serializer or Deserializer."""
    found = _BY_NAME.get(name) or _BY_NAME.get(name.removeprefix(_JAVA).removesuffix(kind))
    if found is not None:
        return found()
    if name.startswith(_JAVA):
        raise InvalidConfig(f"{setting}: {name} is not available; the built-in ones are {', '.join(sorted(_BY_NAME))}")
    return plugin(setting, name, f"millbeck.{kind.lower()}s")()


def given(setting: str, serde: Any, kind: str) -> Any:
    """The object that a constructor was given, or the one that it was given the name of."""
    return serde_named(setting, serde, kind) if isinstance(serde, str) else serde


def serialized(serde: Serializer[Any], what: str, topic: str, value: Any, headers: list[Header]) -> bytes | None:
    """The bytes of a key or value (``what``); raises `SerializationFailed` naming the topic."""
    if value is None:
        return None
    try:
        return serde.serialize(topic, value, headers)
    except Exception as error:
        raise SerializationFailed(f"the {what} for topic {topic} cannot be serialized: {error}") from error
