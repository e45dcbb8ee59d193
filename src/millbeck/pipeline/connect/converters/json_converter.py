"""JsonConverter: JSON with its schema beside it (``{"schema": ..., "payload": ...}``), or plain.

Stricter than Kafka's where that loses data. These are errors: a text where the schema has a number (0 there), a number
that does not fit its type (its low bits, or what is before the point, there), a number where the schema has a text
(null there).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, ClassVar, Final

from millbeck.pipeline.connect.config.checks import one_of_ignoring_case
from millbeck.pipeline.connect.config.definitions import BOOLEAN, INT, STRING, ConfigDef, ConfigKey, Importance, Width
from millbeck.pipeline.connect.converters.base import CONVERTER_CONFIG
from millbeck.pipeline.connect.converters.json_schema import schema_as_json, schema_from_json
from millbeck.pipeline.connect.converters.json_text import (
    MISSING,
    bytes_of_base64,
    json_text,
    parsed_json,
    parsed_member,
)
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.logical import (
    DECIMAL,
    TEMPORAL,
    TIMESTAMP,
    Instant,
    decimal_of,
    instant_of,
    stored_number,
    unscaled_bytes,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits, float_of
from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of
from millbeck.pipeline.connect.model.value_parser import NULL, Parsed

_WHOLE: Final[Mapping[SchemaType, tuple[int, Any]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
_PLAIN: Final[Mapping[SchemaType, tuple[type, ...]]] = {
    SchemaType.BOOLEAN: (bool,),
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes,),
    SchemaType.FLOAT32: (float,),
    SchemaType.FLOAT64: (float,),
    SchemaType.ARRAY: (list, tuple),
    SchemaType.MAP: (dict,),
    SchemaType.STRUCT: (Struct,),
    **dict.fromkeys(_WHOLE, (int,)),
}

_LONG_DIGITS: Final = 19
_PAYLOAD: Final = b',"payload":'
_PREFIX_BYTES_MAX: Final = 64 * 1024


class JsonConverter:
    """JSON, with schemas unless ``schemas.enable`` is false."""

    config_def: ClassVar = ConfigDef(
        *CONVERTER_CONFIG,
        ConfigKey(
            name="schemas.enable",
            kind=BOOLEAN,
            default=True,
            importance=Importance.HIGH,
            doc="Write the schema beside each key and value, and expect it there.",
            group="Schemas",
            order=0,
            width=Width.MEDIUM,
            display_name="Enable Schemas",
        ),
        ConfigKey(
            name="schemas.cache.size",
            kind=INT,
            default=1000,
            importance=Importance.HIGH,
            doc="How many schemas are kept so that they need not be read again.",
            group="Schemas",
            order=1,
            width=Width.MEDIUM,
            display_name="Schema Cache Size",
        ),
        ConfigKey(
            name="schema.content",
            kind=STRING,
            default=None,
            importance=Importance.HIGH,
            doc="The JSON of a schema that all messages have; they are then read without one of their own.",
            group="Schemas",
            order=2,
            width=Width.MEDIUM,
            display_name="Schema Content",
        ),
        ConfigKey(
            name="decimal.format",
            kind=STRING,
            default="BASE64",
            check=one_of_ignoring_case("NUMERIC", "BASE64"),
            importance=Importance.LOW,
            doc="How decimals are written: BASE64 of their digits in binary, or NUMERIC. Both are read.",
            group="Serialization",
            order=0,
            width=Width.MEDIUM,
            display_name="Decimal Format",
        ),
        ConfigKey(
            name="replace.null.with.default",
            kind=BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether a null in a field with a default becomes the default.",
            group="Serialization",
            order=1,
            width=Width.MEDIUM,
            display_name="Replace null with default",
        ),
    )

    def __init__(self, settings: Mapping[str, str]) -> None:
        values = self.config_def.parse({"converter.type": "value", **settings})
        self._has_schemas: bool = values["schemas.enable"]
        self._cache_size: int = max(1, values["schemas.cache.size"])
        self._is_numeric: bool = values["decimal.format"].upper() == "NUMERIC"
        self._fills_defaults: bool = values["replace.null.with.default"]
        self._known: dict[str, Schema | None] = {}
        self._written: dict[Schema, str] = {}
        self._prefixes: dict[bytes, Schema] = {}
        self._schema = self._fixed_schema(values["schema.content"])

    def _fixed_schema(self, content: str | None) -> Schema | None:
        if not self._has_schemas or not content or not content.strip():
            return None
        try:
            return schema_from_json(parsed_json(content.encode()), self._from_json)
        except InvalidValue as error:
            raise ConfigError.of("schema.content", content[:200], str(error)) from None

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        text = json_text(self._as_json(schema, value))
        if self._has_schemas:
            text = f'{{"schema":{self._schema_text(schema)},"payload":{text}}}'
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise InvalidValue("a text has half a character of UTF-16, which UTF-8 cannot hold") from None

    def _schema_text(self, schema: Schema | None) -> str:
        if schema is None:
            return "null"
        text = self._written.get(schema)
        if text is None:
            text = json_text(schema_as_json(schema, self._as_json))
            if len(self._written) >= self._cache_size:
                del self._written[next(iter(self._written))]
            self._written[schema] = text
        return text

    def _as_json(self, schema: Schema | None, value: Any) -> Any:
        """A value in the form that `json_text` takes."""
        if schema is None:
            return self._without_schema(value)
        if value is None:
            if schema.default is not None and self._fills_defaults:
                return self._as_json(schema, schema.default)
            if schema.optional:
                return None
            raise InvalidValue("Conversion error: null value for field that is required and has no default value")
        if schema.name == DECIMAL:
            if not isinstance(value, Decimal):
                raise InvalidValue(f"Invalid type for Decimal, expected BigDecimal but was class {java_class(value)}")
            return value if self._is_numeric else unscaled_bytes(schema, value)
        if schema.name in TEMPORAL:
            if not isinstance(value, Instant):
                word = str(schema.name).rpartition(".")[2]
                raise InvalidValue(f"Invalid type for {word}, expected Date but was class {java_class(value)}")
            return stored_number(schema, value)
        is_of_type = isinstance(value, _PLAIN[schema.type])
        if not is_of_type or (isinstance(value, bool) and schema.type is not SchemaType.BOOLEAN):
            raise InvalidValue(f"Invalid type for {schema.type.name}: class {java_class(value)}")
        return self._of_type(schema, value)

    def _of_type(self, schema: Schema, value: Any) -> Any:
        match schema.type:
            case SchemaType.STRUCT:
                if value.schema is not schema and value.schema != schema:
                    raise InvalidValue("Mismatching schema.")
                return {field.name: self._as_json(field.schema, each) for field, each in value.items()}
            case SchemaType.ARRAY:
                return [self._as_json(schema.value_schema, each) for each in value]
            case SchemaType.MAP:
                has_names = schema.key_schema is not None and schema.key_schema.type is SchemaType.STRING
                return self._map_as_json(schema.key_schema, schema.value_schema, value, has_names=has_names)
            case SchemaType.FLOAT32 if type(value) is float:
                return Float32(value)
        if schema.type in _WHOLE and not fits(value, _WHOLE[schema.type][0]):
            raise InvalidValue(f"Invalid value for {schema.type.name}: {value} is out of its range")
        return value

    def _map_as_json(self, key: Schema | None, element: Schema | None, value: Any, *, has_names: bool) -> Any:
        pairs = [(self._as_json(key, name), self._as_json(element, each)) for name, each in value.items()]
        if has_names:
            return {"null" if name is None else name: each for name, each in pairs}
        return [list(pair) for pair in pairs]

    def _without_schema(self, value: Any) -> Any:
        if isinstance(value, dict):
            has_names = all(isinstance(name, str) for name in value)
            return self._map_as_json(None, None, value, has_names=has_names)
        if isinstance(value, (list, tuple)):
            return [self._without_schema(each) for each in value]
        if isinstance(value, Struct):
            raise InvalidValue("Mismatching schema.")
        if value is not None and type_of(value) is None:
            raise InvalidValue(f"Java class class {java_class(value)} does not have corresponding schema type.")
        return bytes(value) if isinstance(value, (bytearray, memoryview)) else value

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is None:
            return NULL
        again = self._of_known_prefix(stored)
        if again is not None:
            return again
        found = parsed_json(stored)
        if not self._has_schemas:
            return Parsed(None, None if found is MISSING else _plain_value(found))
        if self._schema is not None:
            return Parsed(self._schema, self._from_json(self._schema, None if found is MISSING else found))
        if not isinstance(found, dict) or len(found) != 2 or "schema" not in found or "payload" not in found:
            raise InvalidValue(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain'
                " additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your"
                " converter configuration."
            )
        schema = self._known_schema(found["schema"])
        if schema is None:
            return Parsed(None, _plain_value(found["payload"]))
        self._keep_prefix(stored, found["schema"], schema)
        return Parsed(schema, self._from_json(schema, found["payload"]))

    def _of_known_prefix(self, stored: bytes) -> Parsed | None:
        """The value of a record that begins as an earlier one did, with the same text of the same schema: its payload
        alone is read. None for any other.
        """
        end = stored.find(_PAYLOAD) + len(_PAYLOAD)
        schema = self._prefixes.get(stored[:end])
        if schema is None:
            return None
        payload = parsed_member(stored, end)
        return None if payload is MISSING else Parsed(schema, self._from_json(schema, payload))

    def _keep_prefix(self, stored: bytes, found: Any, schema: Schema) -> None:
        prefix = stored[: stored.find(_PAYLOAD) + len(_PAYLOAD)]
        if not prefix.endswith(_PAYLOAD) or len(prefix) > _PREFIX_BYTES_MAX:
            return
        try:
            # The text may be a part of the schema, or other members may stand before it.
            is_schema_alone = parsed_json(prefix + b"null}") == {"schema": found, "payload": None}
        except InvalidValue:
            return
        if is_schema_alone:
            if len(self._prefixes) >= self._cache_size:
                self._prefixes.clear()
            self._prefixes[prefix] = schema

    def _known_schema(self, found: Any) -> Schema | None:
        key = json.dumps(found, default=str)
        if key in self._known:
            return self._known[key]
        schema = schema_from_json(found, self._from_json)
        if len(self._known) >= self._cache_size:
            del self._known[next(iter(self._known))]
        self._known[key] = schema
        return schema

    def _from_json(self, schema: Schema, found: Any) -> Any:
        if found is None:
            if schema.default is not None and self._fills_defaults:
                return schema.default
            if schema.optional:
                return None
            raise InvalidValue(f"Invalid null value for required {schema.type.name} field")
        if schema.name == DECIMAL:
            return _decimal(schema, found)
        if schema.name in TEMPORAL:
            return _instant(schema, found)
        match schema.type:
            case SchemaType.STRUCT:
                if not isinstance(found, dict):
                    raise InvalidValue(f"Structs should be encoded as JSON objects, but found {_kind(found)}")
                made = Struct(schema)
                made.values = [self._from_json(field.schema, found.get(field.name)) for field in schema.fields]
                return made
            case SchemaType.ARRAY if isinstance(found, list):
                element = schema.value_schema
                return [self._from_json(element, each) for each in found] if element is not None else found
            case SchemaType.MAP:
                return self._map(schema, found)
        return _scalar(schema, found)

    def _map(self, schema: Schema, found: Any) -> dict[Any, Any]:
        key, element = schema.key_schema, schema.value_schema
        assert key is not None
        assert element is not None
        if key.type is SchemaType.STRING:
            if not isinstance(found, dict):
                raise InvalidValue(
                    f"Maps with string fields should be encoded as JSON objects, but found {_kind(found)}"
                )
            return {name: self._from_json(element, each) for name, each in found.items()}
        if not isinstance(found, list):
            raise InvalidValue(
                f"Maps with non-string fields should be encoded as JSON array of tuples, but found {_kind(found)}"
            )
        made: dict[Any, Any] = {}
        for entry in found:
            if not isinstance(entry, list):
                raise InvalidValue(f"Found invalid map entry instead of array tuple: {_kind(entry)}")
            if len(entry) != 2:
                raise InvalidValue(f"Found invalid map entry, expected length 2 but found :{len(entry)}")
            name = self._from_json(key, entry[0])
            if isinstance(name, (list, dict, Struct)):
                raise InvalidValue(f"a map's key cannot be of type {key.type.name}")
            made[name] = self._from_json(element, entry[1])
        return made


def _scalar(schema: Schema, found: Any) -> Any:
    """Raises `InvalidValue` for anything but a JSON value that the type can hold without loss."""
    kind = schema.type
    if kind in _WHOLE and isinstance(found, (int, Decimal)) and not isinstance(found, bool):
        bits, number = _WHOLE[kind]
        if isinstance(found, int) or found.adjusted() < _LONG_DIGITS:
            whole = int(found)
            if whole == found and fits(whole, bits):
                return number(whole)
        raise InvalidValue(f"Invalid value for {kind.name}: {found} is no whole number of {bits} bits")
    if kind in (SchemaType.FLOAT32, SchemaType.FLOAT64) and isinstance(found, (int, Decimal)):
        if not isinstance(found, bool):
            as_float = float_of(Decimal(found)) + 0.0  # a zero has no sign here
            return Float32(as_float) if kind is SchemaType.FLOAT32 else as_float
    elif kind is SchemaType.BYTES and isinstance(found, str):
        try:
            return bytes_of_base64(found)
        except ValueError:
            raise InvalidValue("Invalid bytes field") from None
    elif (kind is SchemaType.BOOLEAN and isinstance(found, bool)) or (
        kind is SchemaType.STRING and isinstance(found, str)
    ):
        return found
    raise InvalidValue(f"Invalid value for {kind.name}: the JSON has {_kind(found)}")


def _decimal(schema: Schema, found: Any) -> Decimal:
    if isinstance(found, (int, Decimal)) and not isinstance(found, bool):
        return Decimal(found) if found else abs(Decimal(found))
    if isinstance(found, str):
        try:
            return decimal_of(schema, bytes_of_base64(found))
        except (ValueError, InvalidValue):
            raise InvalidValue("Invalid bytes for Decimal field") from None
    raise InvalidValue(
        f"Invalid type for Decimal, underlying representation should be numeric or bytes but was {_kind(found)}"
    )


def _instant(schema: Schema, found: Any) -> Instant:
    bits = 64 if schema.name == TIMESTAMP else 32
    if not isinstance(found, int) or isinstance(found, bool) or not fits(found, bits):
        word, shape = str(schema.name).rpartition(".")[2], "integral" if bits == 64 else "integer"
        raise InvalidValue(
            f"Invalid type for {word}, underlying representation should be {shape} but was {_kind(found)}"
        )
    return instant_of(schema, found)


def _plain_value(found: Any) -> Any:
    """A value without a schema: whole numbers are INT64, others FLOAT64."""
    if isinstance(found, Decimal):
        return float_of(found) + 0.0
    if isinstance(found, list):
        return [_plain_value(each) for each in found]
    if isinstance(found, dict):
        return {name: _plain_value(each) for name, each in found.items()}
    if isinstance(found, int) and not isinstance(found, bool) and not fits(found, 64):
        raise InvalidValue(f"Invalid value for INT64: {found} is out of its range")
    return found


def _kind(found: Any) -> str:
    """Jackson's word for a JSON value."""
    match found:
        case None:
            return "NULL"
        case bool():
            return "BOOLEAN"
        case int() | Decimal():
            return "NUMBER"
        case str():
            return "STRING"
        case list():
            return "ARRAY"
    return "OBJECT"
