"""AvroConverter: Avro with schemas in a schema registry, under Confluent's name. Needs fastavro."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any, ClassVar

from millbeck.client.schemas.model import AVRO
from millbeck.client.schemas.model import Schema as RegistrySchema
from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.config.definitions import BOOLEAN, ConfigKey, Importance
from millbeck.pipeline.connect.converters.avro_mapping import (
    avro_of,
    schema_of_avro,
    value_of_avro,
    value_to_avro,
    without_logical_types,
)
from millbeck.pipeline.connect.converters.registry_settings import REGISTRY_CONFIG, RegistryAccess
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.model.struct import java_class, type_of
from millbeck.pipeline.connect.model.value_parser import NULL, Parsed

_SCHEMAS_MAX = 1000


@dataclass(frozen=True, slots=True)
class _Writer:
    """How values of one Connect schema are written."""

    registry: RegistrySchema
    name: str
    parsed: Any


@dataclass(frozen=True, slots=True)
class _Reader:
    """How records of one Avro schema are read."""

    schema: Schema
    parsed: Any


class AvroConverter:
    """Avro with schemas in a schema registry."""

    config_def: ClassVar = REGISTRY_CONFIG.joined(
        (
            ConfigKey(
                name="scrub.invalid.names",
                kind=BOOLEAN,
                default=False,
                importance=Importance.MEDIUM,
                doc="Whether characters that Avro does not allow in names become underscores; otherwise such a record "
                "is an error.",
            ),
            ConfigKey(
                name="connect.meta.data",
                kind=BOOLEAN,
                default=True,
                importance=Importance.LOW,
                doc="Whether the Avro schema says in properties what Avro has no word for.",
            ),
        )
    )

    def __init__(self, settings: Mapping[str, str]) -> None:
        with needs_extra("schemas"):
            import fastavro

        self._fastavro = fastavro
        values = self.config_def.parse({"converter.type": "value", **settings})
        self._registry = RegistryAccess(values)
        self._scrubs: bool = values["scrub.invalid.names"]
        self._has_metadata: bool = values["connect.meta.data"]
        self._writers: dict[Schema, _Writer] = {}
        self._readers: dict[RegistrySchema, _Reader] = {}

    def to_bytes(self, topic: str | None, schema: Schema | None, value: Any) -> bytes | None:
        if schema is None and value is None:
            return None
        if schema is None:
            kind = type_of(value)
            if kind in (None, SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP):
                raise InvalidValue(f"a {java_class(value)} without a schema cannot be written as Avro")
            assert kind is not None
            schema = Schema(kind)
        if value is None and schema.optional and schema.default is None:
            return None
        writer = self._writer(schema)
        stream = BytesIO()
        found = value_to_avro(schema, value, scrubs_names=self._scrubs)
        try:
            self._fastavro.schemaless_writer(stream, writer.parsed, found)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise InvalidValue(f"the value does not match its schema: {type(error).__name__}: {error}"[:300]) from error
        return self._registry.framed(topic, writer.name, writer.registry, stream.getvalue())

    def from_bytes(self, topic: str | None, stored: bytes | None) -> Parsed:
        if stored is None:
            return NULL
        registered, payload = self._registry.unframed(stored)
        reader = self._reader(registered)
        stream = BytesIO(payload)
        try:
            found = self._fastavro.schemaless_reader(stream, reader.parsed, None, return_named_type=True)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise InvalidValue(
                f"the record does not match its schema: {type(error).__name__}: {error}"[:300]
            ) from error
        if stream.tell() != len(payload):
            raise InvalidValue(f"{len(payload) - stream.tell()} of the record's {len(payload)} bytes are left over")
        return Parsed(reader.schema, value_of_avro(reader.schema, found))

    def _writer(self, schema: Schema) -> _Writer:
        found = self._writers.get(schema)
        if found is None:
            avro = avro_of(schema, scrubs_names=self._scrubs, has_metadata=self._has_metadata)
            text = json.dumps(avro, ensure_ascii=False, separators=(",", ":"))
            parsed = self._parsed(without_logical_types(avro), {})
            shape = avro if isinstance(avro, dict) else {}
            name = ".".join(part for part in (shape.get("namespace"), shape.get("name")) if part) or str(
                shape.get("type", avro)
            )
            found = _Writer(RegistrySchema(AVRO, text), name, parsed)
            if len(self._writers) >= _SCHEMAS_MAX:
                self._writers.clear()
            self._writers[schema] = found
        return found

    def _reader(self, registered: RegistrySchema) -> _Reader:
        found = self._readers.get(registered)
        if found is None:
            if registered.kind != AVRO:
                raise InvalidValue(f"the record's schema is {registered.kind}, not {AVRO}: use the converter for it")
            named: dict[str, Any] = {}
            known: dict[str, Any] = {}
            for _, text in registered.references:
                imported = json.loads(text)
                self._parsed(without_logical_types(imported), known)
                if isinstance(imported, dict) and "name" in imported:
                    namespace = imported.get("namespace")
                    name = str(imported["name"])
                    named[name if "." in name or not namespace else f"{namespace}.{name}"] = imported
            avro = json.loads(registered.text)
            found = _Reader(schema_of_avro(avro, named), self._parsed(without_logical_types(avro), known))
            if len(self._readers) >= _SCHEMAS_MAX:
                self._readers.clear()
            self._readers[registered] = found
        return found

    def _parsed(self, avro: Any, named: dict[str, Any]) -> Any:
        try:
            return self._fastavro.parse_schema(avro, named_schemas=named)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise InvalidValue(f"the schema is not valid Avro: {type(error).__name__}: {error}"[:300]) from error
