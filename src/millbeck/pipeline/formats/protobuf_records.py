"""Needs protobuf: decode Protobuf messages to plain values and encode them.

A message is a dictionary of all its fields. Unset fields are None if they track presence, otherwise their default, as
in Protobuf. Enums are names (an unknown number is its digits), the wrappers of google.protobuf are the wrapped value, a
Timestamp or Duration is its microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, EncodeError
from google.protobuf.message_factory import GetMessageClass

from millbeck.client.schemas import descriptors
from millbeck.client.schemas import errors as schemas
from millbeck.pipeline.errors import BadRecord, SchemaError

TIMESTAMP: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
_WRAPPERS: Final = "google.protobuf.{}Value"
WRAPPERS: Final = tuple(
    _WRAPPERS.format(kind)
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_MICROSECONDS: Final = 1_000_000
_NANOSECONDS_EACH: Final = 1000

ToValue = Callable[[Any], Any]


def message_of(descriptor_set: bytes, message: str | None) -> Descriptor:
    """The message with this short or full name, or else the first of the last file; raises `SchemaError`."""
    last = _last_file(descriptor_set)
    known = {found.full_name: found for found in _messages(last)}
    if not known:
        raise SchemaError(f"{last.name} has no message")
    if message is None:
        return next(iter(known.values()))
    found = known.get(message) or known.get(f"{last.package}.{message}")
    if found is None:
        raise SchemaError(f"the schema has no message {message}; there are {', '.join(known)}")
    return found


def message_at(descriptor_set: bytes, indexes: Sequence[int]) -> Descriptor:
    """The message with these indexes in the last file (`wire_format`); raises `SchemaError`."""
    try:
        return descriptors.message_at(_last_file(descriptor_set), indexes)
    except schemas.SchemaError as error:
        raise SchemaError(str(error)) from error


def _last_file(descriptor_set: bytes) -> FileDescriptor:
    """The main file: protoc writes imported files before those that import them."""
    pool = DescriptorPool()
    files = FileDescriptorSet()
    try:
        files.ParseFromString(descriptor_set)
        for file in files.file:
            pool.AddSerializedFile(file.SerializeToString())
        return pool.FindFileByName(files.file[-1].name)
    except (DecodeError, TypeError, KeyError, IndexError) as error:
        raise SchemaError(f"the schema is not a descriptor set: {error}") from error


def _messages(file: FileDescriptor) -> list[Descriptor]:
    found: list[Descriptor] = []
    waiting = list(file.message_types_by_name.values())
    while waiting:
        message = waiting.pop(0)
        found.append(message)
        waiting.extend(inner for inner in message.nested_types if not inner.GetOptions().map_entry)
    return found


def is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


class ProtobufReader:
    def __init__(self, message: Descriptor) -> None:
        self._class = GetMessageClass(message)
        self._to_value = _reading_message(message)

    def read(self, record: bytes) -> Any:
        """Decode one record. Raises `BadRecord`."""
        try:
            return self._to_value(self._class.FromString(record))
        except (DecodeError, OverflowError, ValueError) as error:
            raise BadRecord(f"{type(error).__name__}: {error}"[:200]) from error


class ProtobufWriter:
    def __init__(self, message: Descriptor) -> None:
        self._class = GetMessageClass(message)
        self._descriptor = message

    def write(self, value: Any) -> bytes:
        """Encode one record. Raises `BadRecord`."""
        try:
            made = self._class()
            _fill(made, self._descriptor, value)
            return bytes(made.SerializeToString(deterministic=True))
        except (EncodeError, AttributeError, TypeError, ValueError, OverflowError) as error:
            raise BadRecord(f"{type(error).__name__}: {error}"[:200]) from error


# Reading


def _reading_message(message: Descriptor) -> ToValue:
    if message.full_name in (TIMESTAMP, DURATION):
        return _microseconds
    if message.full_name in WRAPPERS:
        return lambda wrapper: wrapper.value
    fields = [(field.name, field.has_presence, _reading_field(field)) for field in message.fields]

    def read(made: Any) -> dict[str, Any]:
        return {
            name: None if has_presence and not made.HasField(name) else one(getattr(made, name))
            for name, has_presence, one in fields
        }

    return read


def _reading_field(field: FieldDescriptor) -> ToValue:
    if is_map(field):
        assert field.message_type is not None
        entry = field.message_type.fields_by_name["value"]
        one = _reading_one(entry)
        return lambda held: {key: one(held[key]) for key in held}
    one = _reading_one(field)
    if field.is_repeated:
        return lambda held: [one(each) for each in held]
    return one


def _reading_one(field: FieldDescriptor) -> ToValue:
    if field.message_type is not None:
        return _reading_message(field.message_type)
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    return lambda value: value


def _microseconds(made: Any) -> int:
    return int(made.seconds) * _MICROSECONDS + int(made.nanos) // _NANOSECONDS_EACH


# Writing


def _fill(made: Any, message: Descriptor, value: Any) -> None:
    if message.full_name in (TIMESTAMP, DURATION):
        made.seconds, rest = divmod(value, _MICROSECONDS)
        if message.full_name == DURATION and made.seconds < 0 and rest:
            # Seconds and nanoseconds of a duration have the same sign.
            made.seconds, rest = made.seconds + 1, rest - _MICROSECONDS
        made.nanos = rest * _NANOSECONDS_EACH
        return
    if message.full_name in WRAPPERS:
        made.value = _number(message.fields_by_name["value"], value)
        return
    for field in message.fields:
        given = value.get(field.name)
        if given is not None:
            _set(made, field, given)


def _set(made: Any, field: FieldDescriptor, given: Any) -> None:
    if is_map(field):
        assert field.message_type is not None
        named, entry = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
        held = getattr(made, field.name)
        for given_key, each in given.items():
            key = _number(named, given_key)
            if entry.message_type is not None:
                _fill(held[key], entry.message_type, each)
            else:
                held[key] = _number(entry, each)
    elif field.message_type is not None:
        for each in given if field.is_repeated else ():
            _fill(getattr(made, field.name).add(), field.message_type, each)
        if not field.is_repeated:
            inner = getattr(made, field.name)
            inner.SetInParent()
            _fill(inner, field.message_type, given)
    elif field.is_repeated:
        getattr(made, field.name).extend(_number(field, each) for each in given)
    else:
        setattr(made, field.name, _number(field, given))


def _number(field: FieldDescriptor, given: Any) -> Any:
    """Enum numbers of names, and integers of values that Spark holds as decimals."""
    if field.enum_type is not None:
        named = field.enum_type.values_by_name.get(given)
        return int(given) if named is None else named.number
    if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64:
        return int(given)
    return given
