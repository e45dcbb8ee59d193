"""The folders of records: by log partition, by fields, by time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import tzinfo
from typing import Any, Final, Protocol

from millbeck.pipeline.connect.connectors.debezium_types import Temporal, moment_of, temporal_of
from millbeck.pipeline.connect.connectors.jdbc.opening import zone_of
from millbeck.pipeline.connect.connectors.objects.joda import JodaFormat
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.logical import Instant
from millbeck.pipeline.connect.model.moments import offset_seconds, parsed_timestamp
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.model.schema import Schema
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.model.values import plain_text

HOUR_MS: Final = 3_600_000
DAILY_FORMAT: Final = "'year'=YYYY/'month'=MM/'day'=dd"
HOURLY_FORMAT: Final = f"{DAILY_FORMAT}/'hour'=HH"
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)


class Partitioner(Protocol):
    """The folder below the topic's that a record's file is in."""

    def path(self, record: SinkRecord) -> str:
        """Raises `InvalidValue` for a record that has none."""


class DefaultPartitioner:
    """A folder for each partition of the log."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        pass

    def path(self, record: SinkRecord) -> str:
        return f"partition={record.partition if record.origin is None else record.origin.partition}"


class FieldPartitioner:
    """A folder for each value of some fields."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._fields: tuple[str, ...] = tuple(values["partition.field.name"])
        self._delimiter: str = values["directory.delim"]

    def path(self, record: SinkRecord) -> str:
        parts = []
        for name in self._fields:
            _, value = field_of(record, name)
            if value is None:
                raise InvalidValue(f"the field {name} is null, and the file's folder is named by it")
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else plain_text(value)
            parts.append(f"{name}={without_separators(text)}")
        return self._delimiter.join(parts)


class TimeBasedPartitioner:
    """A folder for each span of time."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._format = JodaFormat(values["path.format"])
        self._duration_ms: int = values["partition.duration.ms"]
        self._zone: tzinfo = zone_of(values["timezone"])
        self._moment = extractor_of(values)
        self._known: dict[int, str] = {}

    def path(self, record: SinkRecord) -> str:
        milliseconds = self._moment(record)
        local = milliseconds + offset_seconds(milliseconds * 1000, self._zone) * 1000
        start = milliseconds - local % self._duration_ms
        found = self._known.get(start)
        if found is None:
            # The start of a span may be on the other side of a change of clocks.
            wanted = local - local % self._duration_ms
            shift = wanted - (start + offset_seconds(start * 1000, self._zone) * 1000)
            found = self._format.format(start + shift, self._zone)
            if len(self._known) >= 1000:
                self._known.clear()
            self._known[start] = found
        return found


class DailyPartitioner(TimeBasedPartitioner):
    """A folder for each day."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({**values, "path.format": DAILY_FORMAT, "partition.duration.ms": 24 * HOUR_MS})


class HourlyPartitioner(TimeBasedPartitioner):
    """A folder for each hour."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({**values, "path.format": HOURLY_FORMAT, "partition.duration.ms": HOUR_MS})


PARTITIONERS: Final[Mapping[str, Callable[[Mapping[str, Any]], Partitioner]]] = {
    "DefaultPartitioner": DefaultPartitioner,
    "FieldPartitioner": FieldPartitioner,
    "TimeBasedPartitioner": TimeBasedPartitioner,
    "DailyPartitioner": DailyPartitioner,
    "HourlyPartitioner": HourlyPartitioner,
}


def extractor_of(values: Mapping[str, Any]) -> Callable[[SinkRecord], int]:
    """Milliseconds since 1970 of a record, by timestamp.extractor; the wall clock is the worker's, in
    ``millbeck.wallclock.ms``."""
    name = str(values["timestamp.extractor"]).rpartition(".")[2].removesuffix("TimestampExtractor")
    if name == "Record":
        return _of_record
    if name == "RecordField":
        field = values["timestamp.field"]
        return lambda record: _of_field(record, field)
    if name == "Wallclock":
        from millbeck.pipeline.connect.connectors.objects.clock import now_ms

        return lambda record: now_ms()
    raise ConfigError.of("timestamp.extractor", name, "there are Wallclock, Record and RecordField")


def _of_record(record: SinkRecord) -> int:
    if record.timestamp is None or record.timestamp < 0:
        raise InvalidValue("the record has no timestamp, which timestamp.extractor=Record needs")
    return record.timestamp


def _of_field(record: SinkRecord, name: str) -> int:
    schema, value = field_of(record, name)
    unit = None if schema is None else temporal_of(schema)
    if value is not None and schema is not None and unit is not None and unit.kind is not Temporal.ZONED_TIMESTAMP:
        moment = moment_of(schema, unit, value)
        return moment * 24 * HOUR_MS if unit.kind is Temporal.DATE else moment // 1000
    match value:
        case Instant():
            return value.milliseconds
        case bool() | None:
            pass
        case int():
            return int(value)
        case str() if _NUMBER.fullmatch(value):
            return int(value)
        case str():
            try:
                return parsed_timestamp(value) // 1000
            except ValueError as error:
                raise InvalidValue(f"the field {name}: {error}") from None
    raise InvalidValue(f"the field {name} is no timestamp: milliseconds, a Timestamp, or a text in ISO 8601")


def field_of(record: SinkRecord, name: str) -> tuple[Schema | None, Any]:
    """Schema and value of a field, whose path has dots. Raises `InvalidValue` if there is none."""
    schema, value = record.value_schema, record.value
    for part in name.split("."):
        if isinstance(value, Struct):
            field = value.schema.field(part)
            if field is None:
                raise InvalidValue(f"the record has no field {name}")
            schema, value = field.schema, value[part]
        elif isinstance(value, dict) and part in value:
            schema, value = None if schema is None else schema.value_schema, value[part]
        else:
            raise InvalidValue(f"the record has no field {name}")
    return schema, value


def without_separators(text: str) -> str:
    """A value as a part of a path: what would begin another folder, or leave this one, is escaped as in Hive."""
    escaped = re.sub(r'[\x00-\x1f"#%\'*/:=?\\\x7f{\[\]^]', lambda found: f"%{ord(found[0]):02X}", text)
    return "%2E" * len(escaped) if escaped in (".", "..") else escaped or "__HIVE_DEFAULT_PARTITION__"
