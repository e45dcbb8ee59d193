"""Connect's schemas as .proto files, and back: values as messages.

What Protobuf has no word for (INT8, names and versions of schemas, defaults, which fields may not be null) is in
options of Confluent's ``confluent/meta.proto``, as ``connect.…``. What a field cannot hold directly (a list that may be
null, a list of lists, nulls in a list) is in a message of its own with the one field ``value``; a map with other keys
than whole numbers and texts is a list of messages with ``key`` and ``value``. So nothing is lost, nulls included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from millbeck.client.schemas.model import PROTOBUF
from millbeck.client.schemas.model import Schema as RegistrySchema
from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.converters.json_schema_mapping import value_of_json, value_to_json
from millbeck.pipeline.connect.converters.json_text import json_text, parsed_json
from millbeck.pipeline.connect.errors import InvalidValue, SchemaError
from millbeck.pipeline.connect.model.logical import (
    DATE,
    DECIMAL,
    MS_PER_DAY,
    TIME,
    TIMESTAMP,
    Instant,
    date_schema,
    days_of,
    decimal_of,
    decimal_schema,
    scale_of,
    time_of_day_of,
    time_schema,
    timestamp_schema,
    unscaled_bytes,
)
from millbeck.pipeline.connect.model.moments import date_of, days_from
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, checked

with needs_extra("schemas"):
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message_factory import GetMessageClass
    from google.protobuf.unknown_fields import UnknownFieldSet

_PLAIN: Final[Mapping[SchemaType, str]] = {
    SchemaType.INT8: "int32",
    SchemaType.INT16: "int32",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "bool",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_LOGICAL: Final = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_NARROW: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}
_NUMBERS: Final = {SchemaType.INT8: Int8, SchemaType.INT16: Int16, SchemaType.INT32: Int32, SchemaType.FLOAT32: Float32}
_KEYS: Final = (SchemaType.INT32, SchemaType.INT64, SchemaType.BOOLEAN, SchemaType.STRING)
_META: Final = 1088
_LEGAL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_DEFAULT_NAME: Final = "ConnectDefault1"
_DEPTH_MAX: Final = 32


# schemas to .proto


class ProtoText:
    """The .proto of a schema; a value that is no struct is the field ``value`` of a message."""

    def __init__(self, schema: Schema) -> None:
        self._imports: dict[str, None] = {"confluent/meta.proto": None}
        package, _, simple = (schema.name or "").rpartition(".")
        is_struct = schema.type is SchemaType.STRUCT
        name = _legal(simple) if is_struct and simple else _DEFAULT_NAME
        if is_struct:
            lines = list(self._message(schema, name, 0))
        else:
            lines = list(self._wrapper(schema, name, "connect.plain", 0))
        head = ['syntax = "proto3";']
        if is_struct and package:
            head.append(f"package {'.'.join(map(_legal, package.split('.')))};")
        head += [f'import "{each}";' for each in self._imports]
        self.text = "\n".join([*head, *lines, ""])

    def _message(self, schema: Schema, name: str, depth: int) -> Iterator[str]:
        yield f"message {name} {{"
        meta = _params(replace(schema, optional=False))
        if meta:
            yield f"option (confluent.message_meta) = {{ params: [{meta}] }};"
        numbers: set[int] = set()
        for place, each in enumerate(schema.fields, start=1):
            tag = int((each.schema.parameters or {}).get("io.confluent.connect.protobuf.Tag", place))
            while tag in numbers:
                tag += 1
            numbers.add(tag)
            yield from self._field(_legal(each.name), tag, each.schema, depth + 1)
        yield "}"

    def _field(self, name: str, number: int, schema: Schema, depth: int) -> Iterator[str]:
        """A field, and before it the messages that it needs."""
        if depth > _DEPTH_MAX:
            raise SchemaError(f"the schema is nested deeper than {_DEPTH_MAX}")
        inner_name = f"{name[:1].upper()}{name[1:]}{number}"
        params = _params(schema)
        match schema.type:
            case SchemaType.ARRAY if not schema.optional and schema.value_schema is not None:
                element = schema.value_schema
                if _is_direct(element):
                    kind = yield from self._kind(element, inner_name, depth)
                    params = _joined(params, _params(element, "element."))
                else:
                    yield from self._wrapper(element, inner_name, "connect.wrapper", depth)
                    kind = inner_name
                yield f"repeated {kind} {name} = {number}{_options(params)};"
            case SchemaType.MAP if not schema.optional and _has_map(schema):
                key, value = schema.key_schema, schema.value_schema
                assert key is not None
                assert value is not None
                kind = yield from self._kind(value, inner_name, depth)
                params = _joined(params, _params(key, "key."), _params(value, "value."))
                yield f"map<{_PLAIN[key.type]}, {kind}> {name} = {number}{_options(params)};"
            case SchemaType.MAP if not schema.optional and schema.key_schema is not None:
                assert schema.value_schema is not None
                entry = Schema(
                    SchemaType.STRUCT, fields=(Field("key", schema.key_schema), Field("value", schema.value_schema))
                )
                yield from self._message(entry, inner_name, depth)
                params = _joined(params, _param("connect.entries", "true"))
                yield f"repeated {inner_name} {name} = {number}{_options(params)};"
            case SchemaType.ARRAY | SchemaType.MAP:
                yield from self._wrapper(replace(schema, optional=False), inner_name, "connect.wrapper", depth)
                yield f"{inner_name} {name} = {number}{_options(params)};"
            case _:
                kind = yield from self._kind(schema, inner_name, depth)
                is_message = schema.type is SchemaType.STRUCT or schema.name in _LOGICAL
                if is_message and not schema.optional:
                    params = _joined(params, _param("connect.required", "true"))
                prefix = "optional " if schema.optional and not is_message else ""
                yield f"{prefix}{kind} {name} = {number}{_options(params)};"

    def _kind(self, schema: Schema, inner_name: str, depth: int) -> Any:
        if schema.name in _LOGICAL:
            kind, imported = _LOGICAL[schema.name]
            self._imports[imported] = None
            return f".{kind}"
        if schema.type is SchemaType.STRUCT:
            yield from self._message(schema, inner_name, depth)
            return inner_name
        return _PLAIN[schema.type]

    def _wrapper(self, schema: Schema, name: str, mark: str, depth: int) -> Iterator[str]:
        yield f"message {name} {{"
        yield f"option (confluent.message_meta) = {{ params: [{_param(mark, 'true')}] }};"
        yield from self._field("value", 1, schema, depth + 1)
        yield "}"


def _is_direct(schema: Schema) -> bool:
    """Whether an element of a list, or a map's value, needs no message around it."""
    return not schema.optional and schema.type not in (SchemaType.ARRAY, SchemaType.MAP)


def _has_map(schema: Schema) -> bool:
    key, value = schema.key_schema, schema.value_schema
    return key is not None and value is not None and key.type in _KEYS and not key.optional and _is_direct(value)


def _legal(name: str) -> str:
    if not _LEGAL.fullmatch(name):
        raise SchemaError(f"{name[:100]} is no name of Protobuf: rename it with ReplaceField or SetSchemaMetadata")
    return name


def _params(schema: Schema, prefix: str = "") -> str:
    """What Protobuf has no word for, as parameters of an option."""
    found: dict[str, str] = {}
    if schema.type in (SchemaType.INT8, SchemaType.INT16):
        found["connect.type"] = schema.type.value
    if schema.name == DECIMAL:
        found["connect.scale"] = str(scale_of(schema))
    if schema.name not in _LOGICAL and schema.name is not None:
        found["connect.name"] = schema.name
    if schema.name not in _LOGICAL and schema.version is not None:
        found["connect.version"] = str(schema.version)
    if schema.name not in _LOGICAL and schema.parameters:
        found["connect.parameters"] = json.dumps(dict(schema.parameters), separators=(",", ":"))
    if schema.doc is not None:
        found["connect.doc"] = schema.doc
    if schema.default is not None:
        found["connect.default"] = json_text(value_to_json(replace(schema, optional=True), schema.default))
    return _joined(*(_param(f"{prefix}{name}", text) for name, text in found.items()))


def _param(name: str, text: str) -> str:
    return f"{{ key: {json.dumps(name)}, value: {json.dumps(text, ensure_ascii=False)} }}"


def _joined(*params: str) -> str:
    return ", ".join(each for each in params if each)


def _options(params: str) -> str:
    return f" [(confluent.field_meta) = {{ params: [{params}] }}]" if params else ""


def proto_of(schema: Schema) -> RegistrySchema:
    return RegistrySchema(PROTOBUF, ProtoText(schema).text)


# .proto to schemas


class MessageMapping:
    """The Connect schema of a message type, and its values both ways."""

    def __init__(self, descriptor: Descriptor, depth: int = 0) -> None:
        if depth > _DEPTH_MAX:
            raise SchemaError(f"{descriptor.full_name} contains itself: Connect's schemas cannot be recursive")
        meta = _meta_of(descriptor)
        self.schema: Schema
        self.descriptor = descriptor
        self.is_plain = "connect.plain" in meta
        self.is_wrapper = self.is_plain or "connect.wrapper" in meta
        self._fields = [_FieldMapping(each, depth) for each in descriptor.fields]
        name: str | None = meta.get("connect.name", descriptor.full_name)
        if "connect.name" not in meta and (_is_generated(descriptor) or descriptor.name == _DEFAULT_NAME):
            name = None
        fields = tuple(Field(each.descriptor.name, each.schema) for each in self._fields)
        if self.is_wrapper:
            self.schema = fields[0].schema
        else:
            self.schema = _with_meta(Schema(SchemaType.STRUCT, name=name, fields=fields), meta, "")

    def value(self, message: Any) -> Any:
        if self.is_wrapper:
            return self._fields[0].value(message)
        made = Struct(self.schema)
        made.values = [each.value(message) for each in self._fields]
        return made

    def fill(self, message: Any, value: Any) -> None:
        """Raises `InvalidValue`."""
        if self.is_wrapper:
            self._fields[0].fill(message, value)
            return
        for each, found in zip(self._fields, value.values, strict=True):
            each.fill(message, found)


def _is_generated(descriptor: Descriptor) -> bool:
    """Whether a nested message was made for a field of a struct without a name."""
    return (
        descriptor.containing_type is not None
        and "connect.name" not in _meta_of(descriptor)
        and descriptor.name[-1:].isdigit()
    )


class _FieldMapping:
    def __init__(self, descriptor: FieldDescriptor, depth: int) -> None:
        self.descriptor = descriptor
        meta = _meta_of(descriptor)
        self._inner: MessageMapping | None = None
        self._entry: MessageMapping | None = None
        self._is_map = _is_map(descriptor)
        value_descriptor = descriptor
        if self._is_map:
            value_descriptor = descriptor.message_type.fields_by_name["value"]
            key = _scalar_schema(descriptor.message_type.fields_by_name["key"], meta, "key.")
        prefix = "value." if self._is_map else "element." if _is_repeated(descriptor) else ""
        kind = value_descriptor.message_type.full_name if value_descriptor.message_type is not None else ""
        self._logical = next((name for name, (known, _) in _LOGICAL.items() if known == kind), None)
        if self._logical is not None:
            schema = _with_meta(_logical_schema(self._logical, meta, prefix), meta, prefix, is_logical=True)
        elif value_descriptor.message_type is not None:
            self._inner = MessageMapping(value_descriptor.message_type, depth + 1)
            schema = self._inner.schema
        else:
            schema = _scalar_schema(value_descriptor, meta, prefix)
        self._element = schema
        if self._is_map:
            schema = _with_meta(Schema(SchemaType.MAP, key_schema=key, value_schema=schema), meta, "")
        elif "connect.entries" in meta and self._inner is not None:
            self._entry, self._inner = self._inner, None
            key, value = (each.schema for each in schema.fields)
            schema = _with_meta(Schema(SchemaType.MAP, key_schema=key, value_schema=value), meta, "")
        elif _is_repeated(descriptor):
            schema = _with_meta(Schema(SchemaType.ARRAY, value_schema=schema), meta, "")
        else:
            optional = descriptor.has_presence and "connect.required" not in meta
            schema = replace(_with_meta(schema, meta, ""), optional=optional)
        self.schema = schema

    def value(self, message: Any) -> Any:
        name = self.descriptor.name
        if self._is_map:
            key = self.schema.key_schema
            assert key is not None
            return {_plain(key, each): self._of(found) for each, found in getattr(message, name).items()}
        if self._entry is not None:
            pairs = [self._entry.value(each) for each in getattr(message, name)]
            return {pair.values[0]: pair.values[1] for pair in pairs}
        if _is_repeated(self.descriptor):
            return [self._of(each) for each in getattr(message, name)]
        if self.descriptor.has_presence and not message.HasField(name):
            return None
        return self._of(getattr(message, name))

    def _of(self, found: Any) -> Any:
        if self._logical is not None:
            return _logical_value(self._logical, self._element, found)
        return _plain(self._element, found) if self._inner is None else self._inner.value(found)

    def fill(self, message: Any, value: Any) -> None:
        name, schema = self.descriptor.name, self.schema
        if value is None and schema.default is not None:
            value = schema.default
        if value is None:
            if not schema.optional:
                raise InvalidValue(f"null in the required field {name}")
            return
        if self._is_map:
            target = getattr(message, name)
            for key, each in value.items():
                if self._inner is None and self._logical is None:
                    target[key] = each
                else:
                    self._fill_message(target[key], each)
        elif self._entry is not None:
            for key, each in value.items():
                pair = Struct(self._entry.schema)
                pair.values = [key, each]
                self._entry.fill(getattr(message, name).add(), pair)
        elif _is_repeated(self.descriptor):
            target = getattr(message, name)
            for each in value:
                if self._inner is None and self._logical is None:
                    target.append(each)
                else:
                    self._fill_message(target.add(), each)
        elif self._inner is None and self._logical is None:
            setattr(message, name, value)
        else:
            target = getattr(message, name)
            target.SetInParent()
            self._fill_message(target, value)

    def _fill_message(self, target: Any, value: Any) -> None:
        if self._logical is not None:
            _fill_logical(self._logical, self._element, target, value)
        elif self._inner is not None:
            self._inner.fill(target, value)


def _is_repeated(descriptor: FieldDescriptor) -> bool:
    return bool(descriptor.is_repeated)


def _is_map(descriptor: FieldDescriptor) -> bool:
    return descriptor.message_type is not None and bool(descriptor.message_type.GetOptions().map_entry)


@lru_cache(maxsize=1)
def _meta_class() -> Any:
    from millbeck.client.schemas.known_protos import known_proto
    from millbeck.client.schemas.protobuf import main_file

    file = main_file(RegistrySchema(PROTOBUF, known_proto("confluent/meta.proto") or ""))
    return GetMessageClass(file.message_types_by_name["Meta"])


def _meta_of(descriptor: Any) -> dict[str, str]:
    """The parameters of Confluent's option."""
    for each in UnknownFieldSet(descriptor.GetOptions()):
        if each.field_number == _META and isinstance(each.data, bytes):
            return dict(_meta_class().FromString(each.data).params)
    return {}


def _with_meta(schema: Schema, meta: Mapping[str, str], prefix: str, *, is_logical: bool = False) -> Schema:
    made = schema
    if f"{prefix}connect.doc" in meta:
        made = replace(made, doc=meta[f"{prefix}connect.doc"])
    if not is_logical and made.name not in _LOGICAL:
        if f"{prefix}connect.name" in meta:
            made = replace(made, name=meta[f"{prefix}connect.name"])
        if f"{prefix}connect.version" in meta:
            made = replace(made, version=int(meta[f"{prefix}connect.version"]))
        if f"{prefix}connect.parameters" in meta:
            made = replace(made, parameters=json.loads(meta[f"{prefix}connect.parameters"]))
    if f"{prefix}connect.default" in meta:
        text = meta[f"{prefix}connect.default"]
        made = replace(made, default=value_of_json(replace(made, optional=True), parsed_json(text.encode())))
    return made


def _scalar_schema(descriptor: FieldDescriptor, meta: Mapping[str, str], prefix: str) -> Schema:
    kinds = FieldDescriptor
    found = {
        kinds.CPPTYPE_INT32: SchemaType.INT32,
        kinds.CPPTYPE_UINT32: SchemaType.INT64,
        kinds.CPPTYPE_INT64: SchemaType.INT64,
        kinds.CPPTYPE_UINT64: SchemaType.INT64,
        kinds.CPPTYPE_FLOAT: SchemaType.FLOAT32,
        kinds.CPPTYPE_DOUBLE: SchemaType.FLOAT64,
        kinds.CPPTYPE_BOOL: SchemaType.BOOLEAN,
        kinds.CPPTYPE_ENUM: SchemaType.STRING,
        kinds.CPPTYPE_STRING: SchemaType.STRING,
    }[descriptor.cpp_type]
    if descriptor.type == kinds.TYPE_BYTES:
        found = SchemaType.BYTES
    schema = Schema(_NARROW.get(meta.get(f"{prefix}connect.type", ""), found))
    if descriptor.enum_type is not None:
        mark = "io.confluent.connect.protobuf.Enum"
        symbols = {f"{mark}.{each.name}": str(each.number) for each in descriptor.enum_type.values}
        schema = replace(schema, parameters={mark: descriptor.enum_type.full_name} | symbols)
    return _with_meta(schema, meta, prefix)


def _plain(schema: Schema, found: Any) -> Any:
    if schema.type is SchemaType.STRING and isinstance(found, int):
        return _symbol(schema, found)
    if schema.type is SchemaType.INT64 and found >= 1 << 63:
        raise InvalidValue(f"{found} is more than a number of 64 bits with a sign can hold")
    number: Callable[[Any], Any] | None = _NUMBERS.get(schema.type)
    return found if number is None else number(found)


def _symbol(schema: Schema, number: int) -> str:
    """The name of an enum's number; the number for one that the schema does not know."""
    for name, text in (schema.parameters or {}).items():
        if text == str(number):
            return name.rpartition(".")[2]
    return str(number)


def _logical_schema(name: str, meta: Mapping[str, str], prefix: str) -> Schema:
    if name == DECIMAL:
        return decimal_schema(int(meta.get(f"{prefix}connect.scale", 0)))
    return {DATE: date_schema, TIME: time_schema, TIMESTAMP: timestamp_schema}[name]()


def _logical_value(name: str, schema: Schema, found: Any) -> Any:
    match name:
        case _ if name == DECIMAL:
            if found.scale != scale_of(schema):
                schema = decimal_schema(found.scale)
            return decimal_of(schema, found.value)
        case _ if name == DATE:
            return Instant(days_from(found.year, found.month, found.day) * MS_PER_DAY)
        case _ if name == TIME:
            seconds = found.hours * 3600 + found.minutes * 60 + found.seconds
            return Instant(seconds * 1000 + found.nanos // 1_000_000)
    return Instant(found.seconds * 1000 + found.nanos // 1_000_000)


def _fill_logical(name: str, schema: Schema, target: Any, value: Any) -> None:
    if name == DECIMAL:
        if not isinstance(value, Decimal):
            raise InvalidValue(f"{type(value).__name__} where a Decimal is expected")
        target.value, target.scale = unscaled_bytes(schema, value), scale_of(schema)
        return
    if not isinstance(value, Instant):
        raise InvalidValue(f"{type(value).__name__} where a date or time is expected")
    if name == DATE:
        target.year, target.month, target.day = date_of(days_of(value))
    elif name == TIME:
        seconds, milliseconds = divmod(time_of_day_of(value), 1000)
        target.hours, target.minutes, target.seconds = seconds // 3600, seconds // 60 % 60, seconds % 60
        target.nanos = milliseconds * 1_000_000
    else:
        target.seconds, milliseconds = divmod(value.milliseconds, 1000)
        target.nanos = milliseconds * 1_000_000


def checked_value(mapping: MessageMapping, value: Any) -> Any:
    """The value as the schema has it. Raises `InvalidValue`."""
    return checked(replace(mapping.schema, optional=True), value)
