"""Needs fastavro, protobuf, pyspark and pyarrow: codecs that combine a format, a schema and a registry.

A codec is created with the topology and pickled to the workers; parsed schemas are cached there for the life of the
worker, so each id is requested from a registry once, not once per batch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from millbeck.client.schemas import errors as schemas
from millbeck.client.schemas.descriptors import indexes_of
from millbeck.client.schemas.model import Schema, SchemaRegistry
from millbeck.client.schemas.wire_format import add_message_indexes, framed, split_message_indexes, unframed
from millbeck.pipeline.errors import BadRecord, SchemaError
from millbeck.pipeline.formats import avro_types, protobuf_types
from millbeck.pipeline.formats.avro_records import AvroReader, AvroWriter, parsed
from millbeck.pipeline.formats.columns import ColumnTypes
from millbeck.pipeline.formats.protobuf_records import (
    ProtobufReader,
    ProtobufWriter,
    message_at,
    message_of,
)
from millbeck.pipeline.formats.schema_files import compiled_proto

T = TypeVar("T")

KEPT_MAX: Final = 10_000

_by_id: dict[tuple[str, int], Schema] = {}
_ids: dict[tuple[str, str, Schema], int] = {}

Read = Callable[[bytes], Any]
Write = Callable[[Any], bytes]


class RecordCodec(Protocol):
    """A codec for keys or values. ``reading`` and ``writing`` are called on the worker; the functions they return raise
    `BadRecord`."""

    @property
    def name(self) -> str: ...

    def types(self) -> ColumnTypes:
        """The column types. Raises `SchemaError` for a schema without column types."""

    def reading(self) -> Read: ...

    def writing(self) -> Write: ...


class RegistrySubject:
    """A registry and the subject under which the schema is registered when the first record is written."""

    def __init__(self, registry: SchemaRegistry, subject: str) -> None:
        self._registry = registry
        self._subject = subject

    def latest(self) -> Schema:
        """The latest schema of the subject. Raises `SchemaError` if the registry does not know the subject."""
        try:
            return self._registry.latest(self._subject).schema
        except schemas.SchemaError as error:
            raise SchemaError(str(error)) from error

    def by_id(self, schema_id: int) -> Schema:
        """The schema with an id. Raises `BadRecord` for an id that the registry does not know."""
        known = _by_id.get((self._registry.name, schema_id))
        if known is None:
            try:
                known = self._registry.by_id(schema_id)
            except schemas.UnknownSchema as error:
                raise BadRecord(str(error)) from error
            except schemas.SchemaError as error:
                raise SchemaError(str(error)) from error
            _keep(_by_id, (self._registry.name, schema_id), known)
        return known

    def id_of(self, schema: Schema) -> int:
        place = (self._registry.name, self._subject, schema)
        known = _ids.get(place)
        if known is None:
            known = self._registry.register(self._subject, schema)
            _keep(_ids, place, known)
        return known


def _keep(kept: dict[Any, Any], name: Any, value: Any) -> None:
    if len(kept) >= KEPT_MAX:
        kept.clear()
    kept[name] = value


class AvroCodec:
    name = "avro"

    def __init__(self, schema: Schema, registered: RegistrySubject | None = None) -> None:
        self._schema = schema
        self._registered = registered

    def types(self) -> ColumnTypes:
        return avro_types.types_of(parsed(self._schema).shape)

    def reading(self) -> Read:
        wanted = parsed(self._schema)
        if self._registered is None:
            return AvroReader(wanted).read
        registered = self._registered
        readers: dict[int, AvroReader] = {}

        def read(record: bytes) -> Any:
            schema_id, payload = unframed(record)
            reader = readers.get(schema_id)
            if reader is None:
                reader = AvroReader(wanted, _fitting(parsed, registered.by_id(schema_id), schema_id))
                _keep(readers, schema_id, reader)
            return reader.read(payload)

        return read

    def writing(self) -> Write:
        write = AvroWriter(parsed(self._schema)).write
        if self._registered is None:
            return write
        schema_id = self._registered.id_of(self._schema)
        return lambda value: framed(schema_id, write(value))


class ProtobufCodec:
    name = "protobuf"

    def __init__(self, schema: Schema, message: str | None = None, registered: RegistrySubject | None = None) -> None:
        self._schema = schema
        self._registered = registered
        # Compiled on the driver, so that workers need no protoc.
        self._descriptor_set = compiled_proto(schema)
        self._message = message_of(self._descriptor_set, message).full_name

    def types(self) -> ColumnTypes:
        return protobuf_types.types_of(message_of(self._descriptor_set, self._message))

    def reading(self) -> Read:
        wanted = message_of(self._descriptor_set, self._message)
        reader = ProtobufReader(wanted)
        if self._registered is None:
            return reader.read
        registered = self._registered
        written: dict[tuple[int, tuple[int, ...]], str] = {}

        def read(record: bytes) -> Any:
            schema_id, payload = unframed(record)
            indexes, payload = split_message_indexes(payload)
            place = (schema_id, tuple(indexes))
            name = written.get(place)
            if name is None:
                name = _fitting(_name_at(indexes), registered.by_id(schema_id), schema_id)
                _keep(written, place, name)
            if name != wanted.full_name:
                raise BadRecord(f"it is a {name}, not a {wanted.full_name}")
            return reader.read(payload)

        return read

    def writing(self) -> Write:
        message = message_of(self._descriptor_set, self._message)
        write = ProtobufWriter(message).write
        if self._registered is None:
            return write
        schema_id, indexes = self._registered.id_of(self._schema), indexes_of(message)
        return lambda value: framed(schema_id, add_message_indexes(indexes, write(value)))


def _name_at(indexes: list[int]) -> Callable[[Schema], str]:
    return lambda schema: message_at(compiled_proto(schema), indexes).full_name


def _fitting(look: Callable[[Schema], T], schema: Schema, schema_id: int) -> T:
    """Convert a `SchemaError` to a `BadRecord`: the record refers to a schema of another type or an invalid one."""
    try:
        return look(schema)
    except SchemaError as error:
        raise BadRecord(f"its schema {schema_id} cannot be used: {error}") from error
