"""Transforms of topics and of the schema's name, and Filter: RegexRouter, TimestampRouter, SetSchemaMetadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.checks import regular_expression
from millbeck.pipeline.connect.config.definitions import INT, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.dates import DateFormat
from millbeck.pipeline.connect.model.java_patterns import PatternError, compiled, replaced_first
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.model.schema import Schema
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.transforms.base import REPLACE_NULL_WITH_DEFAULT, SidedTransformation


class Filter:
    """Drops every record; used with a predicate."""

    config_def: ClassVar = ConfigDef()

    def __init__(self, values: Mapping[str, Any]) -> None:
        pass

    def apply(self, record: ConnectRecord) -> None:
        return None


class RegexRouter:
    """Another topic for topics that match as a whole."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="regex",
            kind=STRING,
            check=regular_expression(),
            importance=Importance.HIGH,
            doc="The regular expression, in Java's syntax.",
        ),
        ConfigKey(
            name="replacement",
            kind=STRING,
            importance=Importance.HIGH,
            doc="The new topic; $1 and ${name} stand for groups.",
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._pattern = compiled(values["regex"])
        self._replacement: str = values["replacement"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        topic = record.topic or ""
        if self._pattern.fullmatch(topic) is None:
            return record
        try:
            return record.with_(topic=replaced_first(self._pattern, self._replacement, topic))
        except PatternError as error:
            raise InvalidValue(f"replacement {self._replacement}: {error}") from None


class TimestampRouter:
    """A topic made of the topic and the record's timestamp."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="topic.format",
            kind=STRING,
            default="${topic}-${timestamp}",
            importance=Importance.HIGH,
            doc="The new topic; ${topic} and ${timestamp} are replaced.",
        ),
        ConfigKey(
            name="timestamp.format",
            kind=STRING,
            default="yyyyMMdd",
            importance=Importance.HIGH,
            doc="The timestamp's form, as Java's SimpleDateFormat has it, in UTC.",
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._topic_format: str = values["topic.format"]
        try:
            self._format = DateFormat(values["timestamp.format"])
        except ValueError as error:
            raise ConfigError.of("timestamp.format", values["timestamp.format"], str(error)) from None

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        if record.timestamp is None:
            raise InvalidValue(f"Timestamp missing on record: {record.topic}")
        topic = self._topic_format.replace("${topic}", record.topic or "")
        return record.with_(topic=topic.replace("${timestamp}", self._format.format(record.timestamp)))


class SetSchemaMetadata(SidedTransformation):
    """Another name or version for the schema."""

    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="schema.name", kind=STRING, default=None, importance=Importance.HIGH, doc="The schema's name."),
        ConfigKey(
            name="schema.version", kind=INT, default=None, importance=Importance.HIGH, doc="The schema's version."
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._name: str | None = values["schema.name"]
        self._version: int | None = values["schema.version"]
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        if value is None:
            return record
        raise InvalidValue("Schema required for [updating schema metadata]")

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        updated = self.changed_schema(schema, self._updated)
        if isinstance(value, Struct):
            before, value = value, Struct(updated)
            for field in updated.fields:
                value[field.name] = self.read(before, field.name)
        return self.side.changed(record, updated, value)

    def _updated(self, schema: Schema) -> Schema:
        return replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )
