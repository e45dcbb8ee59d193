"""Serializes Protobuf messages in the wire format of schema registries. Needs protobuf."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from millbeck.client.config import Value
from millbeck.client.schemas.descriptors import descriptor_set, indexes_of, message_at
from millbeck.client.schemas.errors import BadRecord, SchemaInvalid
from millbeck.client.schemas.known_protos import PROTOBUF_FOLDER, known_proto
from millbeck.client.schemas.model import PROTOBUF, Schema
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.serde import RegistrySerde
from millbeck.client.schemas.wire_format import message_indexes, split_message_indexes
from millbeck.kernel.extras import needs_extra
from millbeck.records.record import Header

with needs_extra("schemas"):
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.descriptor_pb2 import FileDescriptorSet
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import DecodeError, EncodeError, Message
    from google.protobuf.message_factory import GetMessageClass

_CLASSES_MAX: Final = 256


class ProtobufSerde:
    """Messages of generated classes, or of classes made from the registry's schemas.

    ``message`` is the generated class that is written and read; its file, with its imports, is the schema. Without it
    any message can be written, and messages are read as classes generated from their writer's schema.
    """

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        *,
        message: type[Message] | None = None,
        is_key: bool = False,
        registry: RegistryClient | None = None,
    ) -> None:
        self._message = message
        own = None if message is None else schema_of(message.DESCRIPTOR.file)
        self._serde = RegistrySerde(settings, schema=own, is_key=is_key, registry=registry)

    def serialize(self, topic: str, value: Message, headers: list[Header]) -> bytes:
        """Serialize a message. Raises `SchemaError` or `BadRecord`."""
        descriptor = value.DESCRIPTOR
        if self._message is not None and descriptor.full_name != self._message.DESCRIPTOR.full_name:
            raise BadRecord(f"the value is a {descriptor.full_name}, not a {self._message.DESCRIPTOR.full_name}")
        written = self._serde.writer(topic, descriptor.full_name, schema_of(descriptor.file))
        indexes = self._indexes(written.schema, descriptor)
        try:
            payload = value.SerializeToString()
        except EncodeError as error:
            raise BadRecord(f"the value cannot be written: {error}") from error
        return self._serde.marked(written, payload, headers, message_indexes(indexes))

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> Message:
        """Deserialize a record. Raises `SchemaError` or `BadRecord`."""
        schema, rest, payload = self._serde.unmarked(data, headers)
        if rest:
            indexes, _ = split_message_indexes(rest)
        else:
            indexes, payload = split_message_indexes(payload)
        made = class_at(schema, tuple(indexes))
        if self._message is not None:
            if made.DESCRIPTOR.full_name != self._message.DESCRIPTOR.full_name:
                raise BadRecord(
                    f"the record is a {made.DESCRIPTOR.full_name}, not a {self._message.DESCRIPTOR.full_name}"
                )
            made = self._message
        try:
            return made.FromString(payload)
        except DecodeError as error:
            raise BadRecord(f"the record does not match its schema: {error}") from error

    def _indexes(self, schema: Schema, descriptor: Descriptor) -> list[int]:
        """The indexes of the message in the schema it is written with."""
        if not self._serde.config.use_latest:
            return indexes_of(descriptor)
        found = main_file(schema).pool.FindMessageTypeByName(descriptor.full_name)
        return indexes_of(found)


@lru_cache(maxsize=_CLASSES_MAX)
def schema_of(file: FileDescriptor) -> Schema:
    """The schema of a generated file: its descriptor in base64, and the descriptors of imported files as references."""
    references: dict[str, str] = {}
    pending = list(file.dependencies)
    while pending:
        each = pending.pop()
        if each.name not in references and not _is_known(each.name):
            references = {each.name: _encoded(each), **references}
            pending += each.dependencies
    return Schema(PROTOBUF, _encoded(file), _ordered(file, references))


def _ordered(file: FileDescriptor, texts: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The imports of a file, then the file."""
    found: dict[str, str] = {}

    def add(each: FileDescriptor) -> None:
        for imported in each.dependencies:
            if imported.name in texts and imported.name not in found:
                add(imported)
                found[imported.name] = texts[imported.name]

    add(file)
    return tuple(found.items())


def _encoded(file: FileDescriptor) -> str:
    return base64.b64encode(file.serialized_pb).decode()


def _is_known(name: str) -> bool:
    return name.startswith(PROTOBUF_FOLDER) or known_proto(name) is not None


@lru_cache(maxsize=_CLASSES_MAX)
def main_file(schema: Schema) -> FileDescriptor:
    """The main file of a schema. Raises `SchemaError`."""
    pool = DescriptorPool()
    files = FileDescriptorSet.FromString(descriptor_set(schema)).file
    try:
        for each in files:
            pool.AddSerializedFile(each.SerializeToString())
        return pool.FindFileByName(files[-1].name)
    except (TypeError, KeyError, IndexError) as error:
        raise SchemaInvalid(f"the schema's descriptors are inconsistent: {error}") from error


@lru_cache(maxsize=_CLASSES_MAX)
def class_at(schema: Schema, indexes: tuple[int, ...]) -> type[Message]:
    """The class of the message with these indexes; raises `SchemaError`."""
    made: type[Message] = GetMessageClass(message_at(main_file(schema), indexes))
    return made
