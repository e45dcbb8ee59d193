"""Dry run of records through a connector's converters and transforms, stage by stage: ``millbeck connect try``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.config.validation import CONVERTERS, DEFAULT_CONVERTERS, has_variables
from millbeck.pipeline.connect.connectors.declared import connector_of
from millbeck.pipeline.connect.converters.base import Converter
from millbeck.pipeline.connect.converters.json_converter import JsonConverter
from millbeck.pipeline.connect.errors import ConfigError, ConnectError
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord, SinkRecord, SourceRecord
from millbeck.pipeline.connect.model.schema import STRING_SCHEMA, Schema, SchemaType
from millbeck.pipeline.connect.plugins import plugin_of
from millbeck.pipeline.connect.transforms.chain import TransformationStage, stages_of

_PLAIN: Final = JsonConverter({"schemas.enable": "false", "decimal.format": "NUMERIC"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRecord:
    """A record as stored in the log."""

    topic: str
    partition: int = 0
    offset: int = 0
    timestamp: int | None = None
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A record after one stage. A dropped record has no ``shown``; a failed one has an error."""

    stage: str
    shown: dict[str, Any] | None = None
    error: str | None = None
    is_skipped: bool = False
    """Whether the transform's predicate leaves this record as it is."""


class Rehearsal:
    """The converters and transforms of one configuration. Raises `ConfigError`."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        name = settings.get("connector.class")
        if name is None:
            raise ConfigError("Connector config contains no connector type: set connector.class")
        self.kind = connector_of(name.strip()).kind
        for prefix in (*CONVERTERS, "transforms", "predicates"):
            if has_variables(settings, prefix):
                raise ConfigError(
                    f"{prefix}: a variable of a config provider has no value here: write the value itself"
                )
        self._settings = settings
        self._converters = {setting: _converter(settings, setting) for setting in CONVERTERS}
        self._stages = stages_of(settings)

    def of_stored(self, stored: StoredRecord) -> Iterator[Step]:
        """The stages of a record of the log, for a sink."""
        try:
            record = self._converted(stored)
        except ConnectError as error:
            yield Step(stage="converters", error=str(error))
            return
        yield Step(stage="converters", shown=shown(record))
        for step, _ in self._through_stages(record):
            yield step

    def of_text(self, text: str) -> Iterator[Step]:
        """The stages of a line that a source has read."""
        topic = self._settings.get("topic", "topic")
        record: ConnectRecord | None = SourceRecord(topic=topic, value_schema=STRING_SCHEMA, value=text)
        assert record is not None
        yield Step(stage="source", shown=shown(record))
        for step, after in self._through_stages(record):
            yield step
            record = after
        if record is not None:
            yield self._stored(record)

    def _through_stages(self, record: ConnectRecord) -> Iterator[tuple[Step, ConnectRecord | None]]:
        current: ConnectRecord | None = record
        for stage in self._stages:
            if current is None:
                return
            step, current = _applied(stage, current)
            yield step, current

    def _converted(self, stored: StoredRecord) -> SinkRecord:
        key = self._converters["key.converter"].from_bytes(stored.topic, stored.key)
        value = self._converters["value.converter"].from_bytes(stored.topic, stored.value)
        header = self._converters["header.converter"]
        return SinkRecord(
            topic=stored.topic,
            partition=stored.partition,
            offset=stored.offset,
            timestamp=stored.timestamp,
            key_schema=key.schema,
            key=key.value,
            value_schema=value.schema,
            value=value.value,
            headers=tuple(ConnectHeader(name, *header.from_bytes(stored.topic, each)) for name, each in stored.headers),
        )

    def _stored(self, record: ConnectRecord) -> Step:
        try:
            key = self._converters["key.converter"].to_bytes(record.topic, record.key_schema, record.key)
            value = self._converters["value.converter"].to_bytes(record.topic, record.value_schema, record.value)
        except ConnectError as error:
            return Step(stage="converters", error=str(error))
        return Step(stage="converters", shown={"topic": record.topic, "key": _text(key), "value": _text(value)})


def _converter(settings: Mapping[str, str], setting: str) -> Converter:
    plugin = plugin_of(setting, settings.get(setting, DEFAULT_CONVERTERS[setting]).strip(), CONVERTERS[setting])
    prefix = f"{setting}."
    given = {name.removeprefix(prefix): text for name, text in settings.items() if name.startswith(prefix)}
    made: Converter = plugin.make(given)
    return made


def _applied(stage: TransformationStage, record: ConnectRecord) -> tuple[Step, ConnectRecord | None]:
    name = f"transforms.{stage.alias}"
    try:
        if not stage.is_for(record):
            return Step(stage=name, is_skipped=True), record
        after = stage.apply(record)
    except ConnectError as error:
        return Step(stage=name, error=str(error)), None
    return Step(stage=name, shown=None if after is None else shown(after)), after


def shown(record: ConnectRecord) -> dict[str, Any]:
    """What can be printed of a record: JSON texts of key, value and headers, and their types."""
    found: dict[str, Any] = {"topic": record.topic}
    for part, schema, value in (
        ("key", record.key_schema, record.key),
        ("value", record.value_schema, record.value),
    ):
        if schema is not None or value is not None:
            found[part] = _json(schema, value)
        if schema is not None:
            found[f"{part}_schema"] = type_text(schema)
    if record.headers:
        found["headers"] = [f"{header.key}={_json(header.schema, header.value)}" for header in record.headers]
    return found


def type_text(schema: Schema) -> str:
    """A schema in a line: ``Order{id:int64,name:string?}``; a question mark is for optional."""
    match schema.type:
        case SchemaType.STRUCT:
            fields = ",".join(f"{field.name}:{type_text(field.schema)}" for field in schema.fields)
            text = f"{schema.name or ''}{{{fields}}}"
        case SchemaType.ARRAY if schema.value_schema is not None:
            text = f"[{type_text(schema.value_schema)}]"
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            text = f"map({type_text(schema.key_schema)}:{type_text(schema.value_schema)})"
        case _:
            text = schema.name.rpartition(".")[2] if schema.name else schema.type.value
    return f"{text}?" if schema.optional else text


def _json(schema: Schema | None, value: Any) -> str:
    if value is None:
        return "null"
    try:
        return _text(_PLAIN.to_bytes(None, schema, value)) or "null"
    except ConnectError as error:
        return f"({error})"


def _text(stored: bytes | None) -> str | None:
    return None if stored is None else stored.decode(errors="replace")
