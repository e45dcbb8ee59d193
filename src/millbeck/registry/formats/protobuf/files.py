"""The compiled files of a schema, in their own descriptor pool, and the messages with their fields by number.

Extensions count as fields of the message they extend, as on the wire. The pool resolves editions features: it says
whether a field is required and whether a message is delimited.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from millbeck.registry.errors import InvalidSchema

GROUP: Final = "group"
MESSAGE: Final = "message"
ENUM: Final = "enum"
KINDS: Final = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in vars(FieldDescriptor).items()
    if name.startswith("TYPE_")
}
"""The names of field types in a .proto, by number."""


@dataclass(frozen=True, slots=True)
class Field:
    number: int
    name: str
    kind: str
    type_name: str
    """The full name of the field's message or enum; empty for other types."""
    is_repeated: bool
    is_required: bool
    is_map: bool
    oneof: str | None
    """The name of the field's oneof; None also for the synthetic oneof of a proto3 optional field."""


@dataclass(frozen=True, slots=True)
class Message:
    full_name: str
    fields: dict[int, Field]
    reserved_ranges: list[tuple[int, int]]
    """The reserved ranges, as start and exclusive end."""
    reserved_names: list[str]
    is_map_entry: bool

    @property
    def oneofs(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for each in self.fields.values():
            if each.oneof is not None:
                found.setdefault(each.oneof, []).append(each)
        return found


@dataclass
class ProtoFiles:
    """All files of a schema; the last one is the schema's own."""

    protos: list[FileDescriptorProto]
    pool: DescriptorPool = field(default_factory=DescriptorPool)

    def __post_init__(self) -> None:
        try:
            for each in self.protos:
                self.pool.AddSerializedFile(each.SerializeToString())
        except (TypeError, ValueError, KeyError) as error:
            raise InvalidSchema(f"Invalid schema: {str(error)[:500]}") from None

    @classmethod
    def of_set(cls, descriptor_set: bytes) -> ProtoFiles:
        files = FileDescriptorSet()
        try:
            files.ParseFromString(descriptor_set)
        except DecodeError as error:
            raise InvalidSchema(f"Invalid schema: not a descriptor set: {error}") from None
        return cls(list(files.file))

    @property
    def main(self) -> FileDescriptorProto:
        return self.protos[-1]

    @cached_property
    def messages(self) -> dict[str, Message]:
        """The messages of all files, including nested ones, by full name."""
        found: dict[str, Message] = {}
        for proto in self.protos:
            file = self.pool.FindFileByName(proto.name)
            for descriptor, message in _walked(file, proto):
                found[descriptor.full_name] = _message(descriptor, message)
        for proto in self.protos:
            for extension in _extensions(self.pool.FindFileByName(proto.name)):
                extended = found.get(extension.containing_type.full_name)
                if extended is not None:
                    extended.fields.setdefault(extension.number, _field(extension, None))
        return found

    def local_name(self, full_name: str) -> str:
        """The name of a message or enum of these files without the package of its file."""
        try:
            package = self.pool.FindMessageTypeByName(full_name).file.package
        except KeyError:
            package = self.pool.FindEnumTypeByName(full_name).file.package
        return full_name.removeprefix(f"{package}.") if package else full_name

    @cached_property
    def own_messages(self) -> list[str]:
        """The full names of the messages of the schema's own file, in the order of their declaration."""
        return [descriptor.full_name for descriptor, _ in _walked(self.pool.FindFileByName(self.main.name), self.main)]


def _walked(file: FileDescriptor, proto: FileDescriptorProto) -> Iterator[tuple[Descriptor, DescriptorProto]]:
    pending = [(file.message_types_by_name[each.name], each) for each in reversed(proto.message_type)]
    while pending:
        descriptor, message = pending.pop()
        yield descriptor, message
        pending += [(descriptor.nested_types_by_name[each.name], each) for each in reversed(message.nested_type)]


def _extensions(file: FileDescriptor) -> Iterator[FieldDescriptor]:
    yield from file.extensions_by_name.values()
    pending = list(file.message_types_by_name.values())
    while pending:
        message = pending.pop()
        yield from message.extensions
        pending += message.nested_types


def _message(descriptor: Descriptor, proto: DescriptorProto) -> Message:
    lone = {each.number: None for each in proto.field if each.proto3_optional}
    return Message(
        descriptor.full_name,
        {
            each.number: _field(
                each, None if each.containing_oneof is None or each.number in lone else each.containing_oneof.name
            )
            for each in descriptor.fields
        },
        [(each.start, each.end) for each in proto.reserved_range],
        list(proto.reserved_name),
        proto.options.map_entry,
    )


def _field(each: FieldDescriptor, oneof: str | None) -> Field:
    named = each.message_type or each.enum_type
    return Field(
        each.number,
        each.name,
        KINDS[each.type],
        "" if named is None else named.full_name,
        each.is_repeated,
        each.is_required,
        each.message_type is not None and bool(each.message_type.GetOptions().map_entry),
        oneof,
    )
