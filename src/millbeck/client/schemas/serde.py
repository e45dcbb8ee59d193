"""The common part of all formats' serializers: the subject, the schema to write with, and the position of its id.

A serde implements `Serializer` and `Deserializer` of the client, and can also be used without a client. It contacts the
registry when it needs a schema for the first time, which blocks the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from millbeck.client.config import Value
from millbeck.client.schemas.errors import BadRecord, SchemaError, UnknownSchema
from millbeck.client.schemas.model import RegisteredSchema, Schema
from millbeck.client.schemas.naming import strategy_named
from millbeck.client.schemas.registry_client import RegistryClient
from millbeck.client.schemas.settings import RegistryClientConfig, SerdeConfig
from millbeck.client.schemas.wire_format import framed, guid_header, read_header, unframed
from millbeck.kernel.errors import InvalidConfig
from millbeck.records.record import Header
from millbeck.records.schema_validation import KEY_HEADER, VALUE_HEADER

_ID_LOCATIONS: Final = {"PrefixSchemaIdSerializer": False, "HeaderSchemaIdSerializer": True}
_SHOWN_MAX: Final = 2000


class RegistrySerde:
    """A serde; takes the settings of `SerdeConfig`, or an existing registry client and the other settings.

    ``schema`` is the program's own schema; without it values are written with the latest schema of the subject, and
    read with their writer's schema.
    """

    def __init__(
        self,
        settings: Mapping[str, Value] | None = None,
        *,
        schema: Schema | None = None,
        is_key: bool = False,
        registry: RegistryClient | None = None,
    ) -> None:
        given = dict(settings or {})
        if registry is not None:
            given.setdefault("schema.registry.url", registry.name)
        self.config = SerdeConfig.parse(given)
        names = {option.name for option in RegistryClientConfig.options}
        self.registry = registry or RegistryClient({name: given[name] for name in given if name in names})
        self.schema = schema
        self._part = "key" if is_key else "value"
        self._header = KEY_HEADER if is_key else VALUE_HEADER
        self._strategy = strategy_named(self.config.strategy)
        location = _ID_LOCATIONS.get(self.config.id_location.rpartition(".")[2])
        if location is None:
            raise InvalidConfig(f"schema.id.serializer must be one of {', '.join(_ID_LOCATIONS)}")
        self._writes_header = location
        self._metadata = dict(each.partition("=")[::2] for each in self.config.use_latest_with)
        self._checked: dict[tuple[str, int], None] = {}

    # writing

    def writer(self, topic: str, record_name: str, schema: Schema | None) -> RegisteredSchema:
        """The registered schema to write with; raises `SchemaError` with a remedy."""
        subject = self._strategy(topic, self._part, record_name)
        try:
            if self._metadata:
                return self.registry.latest_with(subject, self._metadata)
            if self.config.use_latest or schema is None:
                return self._compatible(subject, self.registry.latest(subject), schema)
            if self.config.auto_register:
                return self._registered(subject, schema)
            return self.registry.lookup(subject, schema, normalize=self.config.normalize)
        except UnknownSchema as error:
            raise UnknownSchema(
                f"{error} Subject {subject} in {self.registry.name} does not have the schema to write "
                "with, and auto.register.schemas is false: register it with millbeck registry apply DIR, or millbeck "
                f"registry schema register {subject} FILE"
            ) from error

    def _registered(self, subject: str, schema: Schema) -> RegisteredSchema:
        try:
            return self.registry.lookup(subject, schema, normalize=self.config.normalize)
        except UnknownSchema:
            self.registry.register(subject, schema, normalize=self.config.normalize)
        return self.registry.lookup(subject, schema, normalize=self.config.normalize)

    def _compatible(self, subject: str, latest: RegisteredSchema, schema: Schema | None) -> RegisteredSchema:
        place = (subject, latest.schema_id)
        if schema is None or not self.config.latest_strict or place in self._checked:
            return latest
        problems = self.registry.problems(subject, schema)
        if problems:
            raise SchemaError(
                f"the program's schema is not compatible with version {latest.version} of {subject} "
                f"(latest.compatibility.strict): {'; '.join(problems)[:_SHOWN_MAX]}"
            )
        self._checked[place] = None
        return latest

    def marked(self, written: RegisteredSchema, payload: bytes, headers: list[Header], indexes: bytes = b"") -> bytes:
        """Add the schema's id before the record, or its guid in a header."""
        if not self._writes_header:
            return framed(written.schema_id, indexes + payload)
        if not written.guid:
            raise SchemaError(f"{self.registry.name} returns no guids, which HeaderSchemaIdSerializer needs")
        headers.append((self._header, guid_header(written.guid, indexes)))
        return payload

    # reading

    def unmarked(self, data: bytes, headers: Iterable[Header]) -> tuple[Schema, bytes, bytes]:
        """Split a record into its schema, the Protobuf message indexes of its header, and the payload; raises
        `BadRecord`."""
        marks = [value for name, value in headers if name == self._header and value is not None]
        if marks:
            known, rest = read_header(marks[-1])
        else:
            known, data = unframed(data)
            rest = b""
        try:
            schema = self.registry.by_guid(known) if isinstance(known, str) else self.registry.by_id(known)
        except UnknownSchema as error:
            raise BadRecord(f"the record's schema {known} is not in {self.registry.name}: {error}") from error
        return schema, rest, data

    def reader(self, topic: str, record_name: str, schema: Schema) -> Schema:
        """The schema to read with: the program's schema, the latest one if configured, or the writer's."""
        if self.schema is not None or not self.config.use_latest:
            return self.schema or schema
        return self.registry.latest(self._strategy(topic, self._part, record_name)).schema
