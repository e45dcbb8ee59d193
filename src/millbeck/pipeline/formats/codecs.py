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
from millbeck.client.schemas.waiting import answered
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
WAIT_SECONDS_MAX: Final = 60.0

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

    def prepare_writing(self) -> None:
        """Ask the registry for the id to write with, on the driver, so that workers need not ask. Raises
        `SchemaError`."""


class RegistrySubject:
    """A registry and the subject of a topic's keys or values.

    With ``auto_register`` a schema that the subject does not have is registered when the first record is written;
    otherwise writing it is refused. On workers, a registry that does not answer is asked again for a minute.
    """

    def __init__(self, registry: SchemaRegistry, subject: str, *, auto_register: bool = False) -> None:
        self._registry = registry
        self._subject = subject
        self._auto_register = auto_register

    def latest(self) -> Schema:
        """The latest schema of the subject. Raises `SchemaError` if the registry does not know the subject."""
        try:
            found = self._registry.latest(self._subject)
        except schemas.SchemaError as error:
            raise SchemaError(str(error)) from error
        _keep(_ids, (self._registry.name, self._subject, found.schema), found.schema_id)
        return found.schema

    def by_id(self, schema_id: int) -> Schema:
        """The schema with an id. Raises `BadRecord` for an id that the registry does not know."""
        known = _by_id.get((self._registry.name, schema_id))
        if known is None:
            try:
                known = answered(lambda: self._registry.by_id(schema_id), WAIT_SECONDS_MAX)
            except schemas.UnknownSchema as error:
                raise BadRecord(str(error)) from error
            except schemas.SchemaError as error:
                raise SchemaError(str(error)) from error
            _keep(_by_id, (self._registry.name, schema_id), known)
        return known

    def id_of(self, schema: Schema, *, wait_s: float = WAIT_SECONDS_MAX) -> int:
        """The id to write records of this schema with; raises `SchemaError`."""
        place = (self._registry.name, self._subject, schema)
        known = _ids.get(place)
        if known is None:
            try:
                known = answered(lambda: self._asked_id(schema), wait_s)
            except schemas.SchemaError as error:
                raise SchemaError(str(error)) from error
            _keep(_ids, place, known)
        return known

    def _asked_id(self, schema: Schema) -> int:
        try:
            return self._registry.lookup(self._subject, schema).schema_id
        except schemas.UnknownSchema as error:
            if self._auto_register:
                return self._registry.register(self._subject, schema)
            raise schemas.UnknownSchema(
                f"{self._registry.name} does not have the schema to write with under {self._subject} ({error}): "
                f"register it with millbeck registry schema register {self._subject} FILE, or set auto_register=True"
            ) from error


def _keep(kept: dict[Any, Any], name: Any, value: Any) -> None:
    if len(kept) >= KEPT_MAX:
        kept.clear()
    kept[name] = value


class AvroCodec:
    name = "avro"

    def __init__(self, schema: Schema, registered: RegistrySubject | None = None) -> None:
        self._schema = schema
        self._registered = registered
        self._schema_id: int | None = None

    def prepare_writing(self) -> None:
        if self._registered is not None:
            self._schema_id = self._registered.id_of(self._schema, wait_s=0)

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
        schema_id = self._registered.id_of(self._schema) if self._schema_id is None else self._schema_id
        return lambda value: framed(schema_id, write(value))


class ProtobufCodec:
    name = "protobuf"

    def __init__(self, schema: Schema, message: str | None = None, registered: RegistrySubject | None = None) -> None:
        self._schema = schema
        self._registered = registered
        self._schema_id: int | None = None
        # Compiled on the driver, so that workers need no protoc.
        self._descriptor_set = compiled_proto(schema)
        self._message = message_of(self._descriptor_set, message).full_name

    def prepare_writing(self) -> None:
        if self._registered is not None:
            self._schema_id = self._registered.id_of(self._schema, wait_s=0)

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
        indexes = indexes_of(message)
        schema_id = self._registered.id_of(self._schema) if self._schema_id is None else self._schema_id
        return lambda value: framed(schema_id, add_message_indexes(indexes, write(value)))


def _name_at(indexes: list[int]) -> Callable[[Schema], str]:
    return lambda schema: message_at(compiled_proto(schema), indexes).full_name


def _fitting(look: Callable[[Schema], T], schema: Schema, schema_id: int) -> T:
    """Convert a `SchemaError` to a `BadRecord`: the record refers to a schema of another type or an invalid one."""
    try:
        return look(schema)
    except SchemaError as error:
        raise BadRecord(f"its schema {schema_id} cannot be used: {error}") from error
