"""Converters of a single type (text, bytes, booleans, numbers), and SimpleHeaderConverter for headers."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Mapping
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey, Importance, Width
from millbeck.pipeline.connect.converters.base import CONVERTER_CONFIG
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.numbers import Float32, Int16, Int32
from millbeck.pipeline.connect.model.schema import (
    BYTES_SCHEMA,
    OPTIONAL_BOOLEAN_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    Schema,
    SchemaType,
)
from millbeck.pipeline.connect.model.struct import java_class, type_of
from millbeck.pipeline.connect.model.value_parser import NULL, Parsed, parse_text
from millbeck.pipeline.connect.model.values import header_text, plain_text

ENCODING = ConfigKey(
    name="converter.encoding",
    kind=STRING,
    default="UTF-8",
    importance=Importance.HIGH,
    doc="The character set of texts, such as UTF-8 or ISO-8859-1.",
    width=Width.MEDIUM,
    display_name="Encoding",
)


class StringConverter:
    """Texts. Any other value is written as Java prints it; what cannot be decoded becomes U+FFFD."""

    config_def: ClassVar = ConfigDef(*CONVERTER_CONFIG, ENCODING)

    def __init__(self, settings: Mapping[str, str]) -> None:
        encoding: str = ENCODING.parse(settings.get(ENCODING.name, ENCODING.default))
        try:
            self._encoding = codecs.lookup(encoding).name
        except LookupError:
            raise ConfigError.of(ENCODING.name, encoding, "no such character set") from None

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else plain_text(value).encode(self._encoding, "replace")

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        return Parsed(OPTIONAL_STRING_SCHEMA, None if stored is None else stored.decode(self._encoding, "replace"))


class ByteArrayConverter:
    """Bytes as they are."""

    config_def: ClassVar = CONVERTER_CONFIG

    def __init__(self, settings: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not SchemaType.BYTES:
            raise InvalidValue(f"Invalid schema type for ByteArrayConverter: {schema.type.name}")
        if value is not None and not isinstance(value, (bytes, bytearray, memoryview)):
            raise InvalidValue(f"ByteArrayConverter is not compatible with objects of type class {java_class(value)}")
        return None if value is None else bytes(value)

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        return Parsed(OPTIONAL_BYTES_SCHEMA, stored)


class BooleanConverter:
    """One byte, 0 or 1."""

    config_def: ClassVar = CONVERTER_CONFIG

    def __init__(self, settings: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if schema is not None and schema.type is not SchemaType.BOOLEAN:
            raise InvalidValue(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if value is None:
            return None
        if not isinstance(value, bool):
            raise InvalidValue(f"BooleanConverter is not compatible with objects of type class {java_class(value)}")
        return b"\x01" if value else b"\x00"

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is not None and stored not in (b"\x00", b"\x01"):
            raise InvalidValue("Failed to deserialize boolean: ")
        return Parsed(OPTIONAL_BOOLEAN_SCHEMA, None if stored is None else stored == b"\x01")


class NumberConverter:
    """A number in big-endian bytes; derived classes define its type."""

    config_def: ClassVar = CONVERTER_CONFIG
    type: ClassVar[SchemaType]
    type_name: ClassVar[str]
    number: ClassVar[Any]
    layout: ClassVar[struct.Struct]

    def __init__(self, settings: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        kind = type_of(value) if schema is None else schema.type
        if kind is not self.type or isinstance(value, bool) or not isinstance(value, (int, float)):
            raise InvalidValue(f"Failed to serialize to {self.type_name} (was class {java_class(value)}): ")
        try:
            return self.layout.pack(value)
        except (struct.error, OverflowError):
            raise InvalidValue(f"Failed to serialize to {self.type_name}: {value} is out of its range") from None

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        schema = Schema(self.type, optional=True)
        if stored is None:
            return Parsed(schema, None)
        if len(stored) != self.layout.size:
            raise InvalidValue(f"Failed to deserialize {self.type_name}: {len(stored)} bytes, not {self.layout.size}")
        return Parsed(schema, self.number(self.layout.unpack(stored)[0]))


class ShortConverter(NumberConverter):
    """Two bytes."""

    type, type_name, number, layout = SchemaType.INT16, "short", Int16, struct.Struct(">h")


class IntegerConverter(NumberConverter):
    """Four bytes."""

    type, type_name, number, layout = SchemaType.INT32, "integer", Int32, struct.Struct(">i")


class LongConverter(NumberConverter):
    """Eight bytes."""

    type, type_name, number, layout = SchemaType.INT64, "long", int, struct.Struct(">q")


class FloatConverter(NumberConverter):
    """Four bytes in IEEE 754."""

    type, type_name, number, layout = SchemaType.FLOAT32, "float", Float32, struct.Struct(">f")


class DoubleConverter(NumberConverter):
    """Eight bytes in IEEE 754."""

    type, type_name, number, layout = SchemaType.FLOAT64, "double", float, struct.Struct(">d")


class SimpleHeaderConverter:
    """Headers as texts whose types are guessed when they are read; the default for headers."""

    config_def: ClassVar = ConfigDef()

    def __init__(self, settings: Mapping[str, str]) -> None:
        pass

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        return None if value is None else header_text(value).encode("utf-8", "replace")

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is None:
            return NULL
        try:
            return parse_text(stored.decode("utf-8", "replace"))
        except InvalidValue:
            return Parsed(BYTES_SCHEMA, stored)
