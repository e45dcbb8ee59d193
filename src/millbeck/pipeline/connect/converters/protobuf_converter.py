"""ProtobufConverter: Protobuf with schemas in a schema registry, under Confluent's name. Needs protobuf and protoc."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from millbeck.client.schemas.errors import SchemaError as RegistryError
from millbeck.client.schemas.model import PROTOBUF
from millbeck.client.schemas.model import Schema as RegistrySchema
from millbeck.client.schemas.wire_format import message_indexes, split_message_indexes
from millbeck.pipeline.connect.converters.registry_settings import REGISTRY_CONFIG, RegistryAccess, asked
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of
from millbeck.pipeline.connect.model.value_parser import NULL, Parsed

_SCHEMAS_MAX = 1000


class ProtobufConverter:
    """Protobuf with schemas in a schema registry."""

    config_def: ClassVar = REGISTRY_CONFIG

    def __init__(self, settings: Mapping[str, str]) -> None:
        from millbeck.client.schemas import descriptors, protobuf
        from millbeck.pipeline.connect.converters import protobuf_mapping

        self._descriptors = descriptors
        self._protobuf = protobuf
        self._mapping = protobuf_mapping
        self._registry = RegistryAccess(self.config_def.parse({"converter.type": "value", **settings}))
        self._written: dict[Schema, RegistrySchema] = {}
        self._read: dict[tuple[RegistrySchema, tuple[int, ...]], Any] = {}

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        if schema is None:
            kind = type_of(value)
            if kind in (None, SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP):
                raise InvalidValue(f"a {java_class(value)} without a schema cannot be written as Protobuf")
            assert kind is not None
            schema = Schema(kind)
        if schema.type is SchemaType.STRUCT and not (isinstance(value, Struct) and value.schema == schema):
            raise InvalidValue("Struct schemas do not match.")
        registered = self._written.get(schema)
        if registered is None:
            registered = self._mapping.proto_of(schema)
            if len(self._written) >= _SCHEMAS_MAX:
                self._written.clear()
            self._written[schema] = registered
        mapping = self._mapping_of(registered, (0,))
        message = self._protobuf.class_at(registered, (0,))()
        try:
            mapping.fill(message, value)
            payload = message.SerializeToString(deterministic=True)
        except (TypeError, ValueError) as error:
            raise InvalidValue(f"the value does not match its schema: {error}"[:300]) from error
        indexes = message_indexes(self._descriptors.indexes_of(message.DESCRIPTOR))
        return self._registry.framed(topic, message.DESCRIPTOR.full_name, registered, payload, indexes)

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is None:
            return NULL
        registered, rest = self._registry.unframed(stored)
        if registered.kind != PROTOBUF:
            raise InvalidValue(f"the record's schema is {registered.kind}, not {PROTOBUF}: use the converter for it")
        indexes, payload = asked(lambda: split_message_indexes(rest))
        place = tuple(indexes)
        mapping = self._mapping_of(registered, place)
        try:
            message = self._protobuf.class_at(registered, place).FromString(payload)
        except Exception as error:  # DecodeError, of whichever implementation
            raise InvalidValue(f"the record does not match its schema: {error}"[:300]) from error
        return Parsed(mapping.schema, mapping.value(message))

    def _mapping_of(self, registered: RegistrySchema, place: tuple[int, ...]) -> Any:
        found = self._read.get((registered, place))
        if found is None:
            try:
                descriptor = self._protobuf.class_at(registered, place).DESCRIPTOR
            except RegistryError as error:
                raise InvalidValue(str(error)) from error
            found = self._mapping.MessageMapping(descriptor)
            if len(self._read) >= _SCHEMAS_MAX:
                self._read.clear()
            self._read[registered, place] = found
        return found
