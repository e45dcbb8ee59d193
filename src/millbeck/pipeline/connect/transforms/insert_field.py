"""InsertField: fields with the record's topic, partition, offset and timestamp, or with a fixed text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from millbeck.pipeline.connect.config.definitions import STRING, ConfigDef, ConfigKey
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.logical import Instant, timestamp_schema
from millbeck.pipeline.connect.model.numbers import Int32
from millbeck.pipeline.connect.model.record import ConnectRecord, SinkRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.transforms.base import REPLACE_NULL_WITH_DEFAULT, SidedTransformation

_OPTIONALITY: Final = " A name that ends with ! is a required field, with ? an optional one, as without."
_SOURCES: Final = ("topic", "partition", "offset", "timestamp", "static")


class _Insertion(NamedTuple):
    source: str
    name: str
    schema: Schema

    @classmethod
    def of(cls, source: str, spec: str) -> _Insertion:
        optional = not spec.endswith("!")
        name = spec[:-1] if spec.endswith(("!", "?")) else spec
        match source:
            case "partition":
                schema = Schema(SchemaType.INT32, optional=optional)
            case "offset":
                schema = Schema(SchemaType.INT64, optional=optional)
            case "timestamp":
                schema = timestamp_schema(optional=optional)
            case _:
                schema = Schema(SchemaType.STRING, optional=optional)
        return cls(source, name, schema)


class InsertField(SidedTransformation):
    """Adds fields to structs and maps."""

    purpose = "field insertion"
    config_def: ClassVar = ConfigDef(
        ConfigKey(name="topic.field", kind=STRING, default=None, doc=f"The field for the topic.{_OPTIONALITY}"),
        ConfigKey(name="partition.field", kind=STRING, default=None, doc=f"The field for the partition.{_OPTIONALITY}"),
        ConfigKey(
            name="offset.field",
            kind=STRING,
            default=None,
            doc=f"The field for the offset; records of source connectors have none.{_OPTIONALITY}",
        ),
        ConfigKey(name="timestamp.field", kind=STRING, default=None, doc=f"The field for the timestamp.{_OPTIONALITY}"),
        ConfigKey(name="static.field", kind=STRING, default=None, doc=f"The field for static.value.{_OPTIONALITY}"),
        ConfigKey(name="static.value", kind=STRING, default=None, doc="The text that static.field gets."),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._text: str | None = values["static.value"]
        self._insertions = [
            _Insertion.of(source, values[f"{source}.field"])
            for source in _SOURCES
            if values[f"{source}.field"] is not None
        ]
        if not self._insertions:
            raise ConfigError("No field insertion configured")
        static = values["static.field"]
        if static is not None and self._text is None:
            raise ConfigError.of("static.value", "null", f"No value specified for static field: {static}")

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        changed = dict(self.required_dict(value))
        for insertion in self._insertions:
            found = self._found(insertion, record)
            if found is not None:
                changed[insertion.name] = found
        return self.side.changed(record, None, changed)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        before = self.required_struct(value)
        updated = self.changed_schema(before.schema, self._updated)
        after = Struct(updated)
        for field in before.schema.fields:
            after[field.name] = self.read(before, field.name)
        for insertion in self._insertions:
            found = self._found(insertion, record)
            if found is not None or insertion.source in ("topic", "offset"):
                after[insertion.name] = Instant(found) if insertion.source == "timestamp" else found
        return self.side.changed(record, updated, after)

    def _updated(self, schema: Schema) -> Schema:
        added = [Field(insertion.name, insertion.schema) for insertion in self._insertions]
        return schema.with_fields([*schema.fields, *added])

    def _found(self, insertion: _Insertion, record: ConnectRecord) -> Any:
        match insertion.source:
            case "topic":
                return record.topic
            case "partition":
                return None if record.partition is None else Int32(record.partition)
            case "offset":
                if not isinstance(record, SinkRecord):
                    raise InvalidValue(
                        f"Only SinkRecord supported for [{self.purpose}],"
                        " found: org.apache.kafka.connect.source.SourceRecord"
                    )
                return record.offset
            case "timestamp":
                return record.timestamp
        return self._text
