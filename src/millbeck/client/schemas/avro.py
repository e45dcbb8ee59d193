"""Serializes Avro records as dictionaries, in the wire format of schema registries. Needs fastavro."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

from millbeck.client.config import Value
from millbeck.client.schemas.errors import BadRecord, SchemaInvalid
from millbeck.client.schemas.model import AVRO, Schema
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.serde import RegistrySerde
from millbeck.kernel.extras import needs_extra
from millbeck.records.record import Header

with needs_extra("schemas"):
    import fastavro

_PARSED_MAX: Final = 256
_REASON_MAX: Final = 300


class AvroSerde:
    """Values of an Avro schema: dictionaries, and fastavro's types for logical types.

    ``schema`` is the schema that the program writes and reads with. Without it, values are written with the latest
    schema of the subject, and read with the writer's schema of each record.
    """

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        *,
        schema: str | Mapping[str, Any] | Schema | None = None,
        is_key: bool = False,
        registry: RegistryClient | None = None,
    ) -> None:
        own = json.dumps(schema) if isinstance(schema, Mapping) else schema
        self._schema = Schema(AVRO, own) if isinstance(own, str) else own
        self._serde = RegistrySerde(settings, schema=self._schema, is_key=is_key, registry=registry)
        self._name = "" if self._schema is None else record_name(self._schema)

    def serialize(self, topic: str, value: Any, headers: list[Header]) -> bytes:
        """Serialize a value. Raises `SchemaError` or `BadRecord`."""
        written = self._serde.writer(topic, self._name, self._schema)
        stream = BytesIO()
        try:
            fastavro.schemaless_writer(stream, parsed(written.schema), value)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise BadRecord(f"the value does not match the schema: {_reason(error)}") from error
        return self._serde.marked(written, stream.getvalue(), headers)

    def deserialize(self, topic: str, data: bytes, headers: Iterable[Header]) -> Any:
        """Deserialize a record. Raises `SchemaError` or `BadRecord`."""
        schema, _, payload = self._serde.unmarked(data, headers)
        writer = parsed(schema)
        wanted = self._serde.reader(topic, record_name(schema), schema)
        reader = None if wanted == schema else parsed(wanted)
        stream = BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(stream, writer, reader)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise BadRecord(f"the record does not match its schema: {_reason(error)}") from error
        if stream.tell() != len(payload):
            raise BadRecord(f"{len(payload) - stream.tell()} of the record's {len(payload)} bytes are left over")
        return value


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_REASON_MAX]


@lru_cache(maxsize=_PARSED_MAX)
def parsed(schema: Schema) -> Any:
    """The schema as parsed by fastavro; raises `SchemaInvalid`."""
    if schema.kind != AVRO:
        raise SchemaInvalid(f"the schema is {schema.kind}, not {AVRO}")
    names: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(json.loads(text), named_schemas=names)
        return fastavro.parse_schema(json.loads(schema.text), named_schemas=names)
    except Exception as error:  # fastavro raises arbitrary exceptions
        raise SchemaInvalid(f"the schema is not valid Avro: {_reason(error)}") from error


def record_name(schema: Schema) -> str:
    """The full name of a record schema, or the name of another type."""
    made = parsed(schema)
    return str(made.get("name", made.get("type"))) if isinstance(made, dict) else str(made)
