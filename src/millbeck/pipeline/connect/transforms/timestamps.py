"""TimestampConverter: times between texts, numbers and Connect's Date, Time and Timestamp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from millbeck.pipeline.connect.config.checks import one_of
from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import ConfigError, ConnectError, InvalidValue
from millbeck.pipeline.connect.model.dates import DateFormat
from millbeck.pipeline.connect.model.logical import (
    DATE,
    MS_PER_DAY,
    TIME,
    TIMESTAMP,
    Instant,
    date_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import wrapped
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of
from millbeck.pipeline.connect.transforms.base import REPLACE_NULL_WITH_DEFAULT, SidedTransformation

_LOGICAL: Final = {TIMESTAMP: "Timestamp", DATE: "Date", TIME: "Time"}
_FINER: Final = {"milliseconds": 1, "microseconds": 1000, "nanoseconds": 1_000_000}
_LONG_MAX: Final = (1 << 63) - 1


class TimestampConverter(SidedTransformation):
    """One field, or the whole key or value."""

    purpose = "converting timestamp formats"
    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="field",
            kind=STRING,
            default="",
            importance=Importance.HIGH,
            doc="The field with the time; empty when the whole key or value is one.",
        ),
        ConfigKey(
            name="target.type",
            kind=STRING,
            check=one_of("string", "unix", "Date", "Time", "Timestamp"),
            importance=Importance.HIGH,
            doc="What the time becomes.",
        ),
        ConfigKey(
            name="format",
            kind=STRING,
            default="",
            doc="The form of texts, as Java's SimpleDateFormat has it, in UTC; to write and to read them.",
        ),
        ConfigKey(
            name="unix.precision",
            kind=STRING,
            default="milliseconds",
            check=one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
            importance=Importance.LOW,
            doc="The unit of numbers. What is finer than a millisecond is lost.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._field: str = values["field"]
        self._target: str = values["target.type"]
        self._precision: str = values["unix.precision"]
        pattern: str = values["format"]
        if self._target == "string" and not pattern.strip():
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        try:
            self._format = DateFormat(pattern) if pattern.strip() else None
        except ValueError:
            raise ConfigError(
                f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
            ) from None

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        if value is None or not self._field:
            return self.side.changed(record, None, self._converted(value, None))
        changed = dict(self.required_dict(value))
        changed[self._field] = self._converted(changed.get(self._field), None)
        return self.side.changed(record, None, changed)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        if not self._field:
            updated = self._target_schema(schema)
            return self.side.changed(record, updated, self._converted(value, _source_of(schema)))
        before = None if value is None else self.required_struct(value)
        updated = self.changed_schema(schema, self._updated)
        return self.side.changed(record, updated, None if before is None else self._struct(before, updated))

    def _updated(self, schema: Schema) -> Schema:
        if schema.type is not SchemaType.STRUCT:
            raise InvalidValue("Cannot list fields on non-struct type")
        fields = [
            Field(field.name, self._target_schema(field.schema)) if field.name == self._field else field
            for field in schema.fields
        ]
        made = schema.with_fields(fields, optional=schema.optional)
        if not isinstance(schema.default, Struct):
            return made
        return replace(made, default=self._struct(schema.default, made))

    def _struct(self, before: Struct, updated: Schema) -> Struct:
        after = Struct(updated)
        for field in before.schema.fields:
            found = self.read(before, field.name)
            if field.name == self._field:
                found = self._converted(found, _source_of(field.schema))
            after[field.name] = found
        return after

    def _target_schema(self, schema: Schema) -> Schema:
        match self._target:
            case "string":
                return Schema(SchemaType.STRING, optional=schema.optional)
            case "unix":
                return Schema(SchemaType.INT64, optional=schema.optional)
            case "Date":
                return date_schema(optional=schema.optional)
            case "Time":
                return time_schema(optional=schema.optional)
        return timestamp_schema(optional=schema.optional)

    def _converted(self, value: Any, source: str | None) -> Any:
        if value is None:
            return None
        milliseconds = self._read(value, source or _guessed_source(value))
        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(milliseconds)
            case "unix":
                return self._as_number(milliseconds)
            case "Date":
                return Instant(milliseconds - milliseconds % MS_PER_DAY)
            case "Time":
                return Instant(milliseconds % MS_PER_DAY)
        return Instant(milliseconds)

    def _read(self, value: Any, source: str) -> int:
        if source == "string":
            if not isinstance(value, str):
                raise InvalidValue(f"Expected string timestamp to be a String, but found class {java_class(value)}")
            return self._parsed(value)
        if source == "unix":
            if type_of(value) is not SchemaType.INT64:
                raise InvalidValue(f"Expected Unix timestamp to be a Long, but found class {java_class(value)}")
            return self._from_number(value)
        if not isinstance(value, Instant):
            raise InvalidValue(f"Expected {source} to be a java.util.Date, but found class {java_class(value)}")
        return value.milliseconds

    def _parsed(self, text: str) -> int:
        if self._format is None:
            raise InvalidValue(f"Could not parse timestamp: value ({text}): set format to the form of the texts")
        if self._format.unreadable_letters:
            raise InvalidValue(
                f"Could not parse timestamp: value ({text}): {self._format.unreadable_letters} of the pattern"
                f" ({self._format.pattern}) can be written only"
            )
        milliseconds = self._format.parse(text)
        if milliseconds is None:
            raise InvalidValue(
                f"Could not parse timestamp: value ({text}) does not match pattern ({self._format.pattern})"
            )
        return milliseconds

    def _from_number(self, number: int) -> int:
        if self._precision == "seconds":
            return max(min(number * 1000, _LONG_MAX), -_LONG_MAX - 1)
        return _truncated(number, _FINER[self._precision])

    def _as_number(self, milliseconds: int) -> int:
        if self._precision == "seconds":
            return _truncated(milliseconds, 1000)
        return max(min(milliseconds * _FINER[self._precision], _LONG_MAX), -_LONG_MAX - 1)


def _truncated(number: int, unit: int) -> int:
    """Division towards zero, as Java's."""
    return wrapped(number // unit if number >= 0 else -(-number // unit), 64)


def _source_of(schema: Schema) -> str:
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    if schema.type is SchemaType.STRING:
        return "string"
    if schema.type is SchemaType.INT64:
        return "unix"
    raise ConnectError(f"Schema {schema} does not correspond to a known timestamp type format")


def _guessed_source(value: Any) -> str:
    if isinstance(value, Instant):
        return "Timestamp"
    if type_of(value) is SchemaType.INT64:
        return "unix"
    if isinstance(value, str):
        return "string"
    raise InvalidValue(f"TimestampConverter does not support class {java_class(value)} objects as timestamps")
