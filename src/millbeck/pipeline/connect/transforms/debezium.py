"""Debezium's transforms: ExtractNewRecordState, which takes a row out of a change event, and the outbox's EventRouter.

Names, settings and behaviour are those of Debezium's documentation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from millbeck.pipeline.connect.config.checks import one_of, one_of_ignoring_case, regular_expression
from millbeck.pipeline.connect.config.definitions import BOOLEAN, LIST, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.java_patterns import compiled, replaced_first
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord
from millbeck.pipeline.connect.model.schema import (
    BOOLEAN_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct

_OPERATION: Final = "op"
_TOMBSTONE_HANDLING: Final = ("drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone")
_SOURCE_PARTS: Final = ("source", "transaction", "before", "after")


class _Addition:
    """A field of the event that add.fields or add.headers names: ``op``, ``source.lsn`` or ``op:operation``."""

    def __init__(self, text: str, prefix: str) -> None:
        path, _, new_name = text.partition(":")
        part, dot, name = path.strip().partition(".")
        self.part = part if dot else None
        self.field = name if dot else part
        if self.part is not None and self.part not in _SOURCE_PARTS:
            raise ConfigError(f"{path}: fields are added from the event itself, source, transaction, before or after")
        self.name = f"{prefix}{new_name.strip() or path.strip().replace('.', '_')}"

    def of(self, event: Struct) -> tuple[Schema, Any] | None:
        """Schema and value; None when the event has no such field."""
        struct: Any = event
        if self.part is not None:
            struct = event.without_default(self.part) if event.schema.field(self.part) is not None else None
        if not isinstance(struct, Struct):
            # Debezium's short form: without a part, source's fields are found as well.
            return None
        field = struct.schema.field(self.field)
        if field is None and self.part is None and isinstance(_part(event, "source"), Struct):
            struct = event["source"]
            field = struct.schema.field(self.field)
        if field is None:
            return None
        return field.schema, struct.without_default(self.field)

    def schema_of(self, schema: Schema) -> Schema:
        """The schema of the added field: optional, since the event may not have it."""
        from dataclasses import replace

        return replace(schema, optional=True)


def _part(event: Struct, name: str) -> Any:
    return event.without_default(name) if event.schema.field(name) is not None else None


class ExtractNewRecordState:
    """The row after a change in place of Debezium's event around it."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="drop.tombstones",
            kind=BOOLEAN,
            default=True,
            doc="Without delete.tombstone.handling.mode: whether tombstones are dropped.",
        ),
        ConfigKey(
            name="delete.handling.mode",
            kind=STRING,
            default="",
            check=one_of("", "none", "drop", "rewrite"),
            doc="The older setting of what a deletion becomes: none is a record without a value.",
        ),
        ConfigKey(
            name="delete.tombstone.handling.mode",
            kind=STRING,
            default="tombstone",
            check=one_of_ignoring_case(*_TOMBSTONE_HANDLING),
            doc="What becomes of a deletion and of the tombstone that follows it. drop: neither is kept. tombstone: "
            "the tombstone is. rewrite: the deletion is, as the row before with __deleted=true. "
            "rewrite-with-tombstone: both "
            "are. delete-to-tombstone: the deletion becomes a tombstone, and the one that follows is dropped.",
            importance=Importance.HIGH,
        ),
        ConfigKey(
            name="add.fields",
            kind=LIST,
            default=(),
            doc="Fields of the event to add to the row, such as op, table, source.lsn, or source.ts_ms:changed.",
        ),
        ConfigKey(
            name="add.fields.prefix", kind=STRING, default="__", doc="What stands before the names of added fields."
        ),
        ConfigKey(
            name="add.headers", kind=LIST, default=(), doc="Fields of the event to add as headers, as add.fields."
        ),
        ConfigKey(
            name="add.headers.prefix", kind=STRING, default="__", doc="What stands before the names of added headers."
        ),
        ConfigKey(
            name="route.by.field",
            kind=STRING,
            default="",
            doc="The field of the row whose value is the record's topic.",
        ),
        ConfigKey(
            name="drop.fields.header.name",
            kind=STRING,
            default=None,
            importance=Importance.LOW,
            doc="The header that lists fields to leave out of the row.",
        ),
        ConfigKey(
            name="replace.null.with.default",
            kind=BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether a null in a field with a default becomes the default.",
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._mode: str = values["delete.tombstone.handling.mode"].lower()
        older = values["delete.handling.mode"]
        if older:
            self._mode = {
                ("drop", True): "drop",
                ("drop", False): "tombstone",
                ("rewrite", True): "rewrite",
                ("rewrite", False): "rewrite-with-tombstone",
                ("none", True): "delete-to-tombstone",
                ("none", False): "delete-to-tombstone",
            }[older, values["drop.tombstones"]]
        self._fields = tuple(_Addition(each, values["add.fields.prefix"]) for each in values["add.fields"])
        self._headers = tuple(_Addition(each, values["add.headers.prefix"]) for each in values["add.headers"])
        self._route: str = values["route.by.field"]
        self._drop_header: str | None = values["drop.fields.header.name"]
        self._fills_defaults: bool = values["replace.null.with.default"]
        self._schemas: dict[tuple[Schema, tuple[Schema, ...], tuple[str, ...]], Schema] = {}

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        if record.value is None:
            return record if self._mode in ("tombstone", "rewrite-with-tombstone") else None
        if isinstance(record.value, dict):
            return self._without_schema(record, record.value)
        event = record.value
        if (
            not isinstance(event, Struct)
            or event.schema.field(_OPERATION) is None
            or event.schema.field("after") is None
        ):
            return record  # a heartbeat, a schema change, or no event of Debezium's
        operation = event.without_default(_OPERATION)
        headers = [*record.headers, *self._added_headers(event)]
        if operation in ("t", "m"):
            return None
        row, is_deletion = event.without_default("after"), False
        if row is None or operation == "d":
            is_deletion = True
            if self._mode in ("drop", "tombstone"):
                return None
            if self._mode == "delete-to-tombstone":
                return record.with_(value_schema=None, value=None, headers=tuple(headers))
            row = _part(event, "before")
            if not isinstance(row, Struct):
                raise InvalidValue("a deletion has no row before: set the table's REPLICA IDENTITY, or another mode")
        made = self._row(row, event, is_deletion=is_deletion, dropped=self._dropped(record))
        topic = record.topic
        if self._route:
            topic = _text_of(row, self._route, topic)
        return record.with_(topic=topic, value_schema=made.schema, value=made, headers=tuple(headers))

    def _added_headers(self, event: Struct) -> list[ConnectHeader]:
        found = ((each.name, each.of(event)) for each in self._headers)
        return [ConnectHeader(name, *pair) for name, pair in found if pair is not None]

    def _dropped(self, record: ConnectRecord) -> tuple[str, ...]:
        found = next((each.value for each in record.headers if each.key == self._drop_header), None)
        return tuple(map(str, found)) if isinstance(found, (list, tuple)) else ()

    def _row(self, row: Struct, event: Struct, *, is_deletion: bool, dropped: tuple[str, ...]) -> Struct:
        added: list[tuple[str, Schema, Any]] = []
        for each in self._fields:
            pair = each.of(event)
            if pair is not None:
                added.append((each.name, each.schema_of(pair[0]), pair[1]))
        if self._mode.startswith("rewrite"):
            added.append(("__deleted", _OPTIONAL_STRING, "true" if is_deletion else "false"))
        place = (row.schema, tuple(schema for _, schema, _ in added), dropped)
        schema = self._schemas.get(place)
        if schema is None:
            kept = [field for field in row.schema.fields if field.name not in dropped]
            schema = row.schema.with_fields([*kept, *(Field(name, each) for name, each, _ in added)])
            if len(self._schemas) >= 1000:
                self._schemas.clear()
            self._schemas[place] = schema
        made = Struct(schema)
        kept_values = [
            row.read(field.name, with_default=self._fills_defaults)
            for field in row.schema.fields
            if field.name not in dropped
        ]
        made.values = [*kept_values, *(value for _, _, value in added)]
        return made

    def _without_schema(self, record: ConnectRecord, event: dict[str, Any]) -> ConnectRecord | None:
        """Events as JSON without schemas."""
        if _OPERATION not in event or "after" not in event:
            return record
        if event[_OPERATION] in ("t", "m"):
            return None
        row, is_deletion = event["after"], event["after"] is None or event[_OPERATION] == "d"
        headers = list(record.headers)
        for each in self._headers:
            found = _in_dict(event, each)
            headers += [ConnectHeader(each.name, None, found)] if found is not None else []
        if is_deletion:
            if self._mode in ("drop", "tombstone"):
                return None
            if self._mode == "delete-to-tombstone":
                return record.with_(value=None, headers=tuple(headers))
            row = event.get("before")
        if not isinstance(row, dict):
            raise InvalidValue("the event has no row")
        dropped = self._dropped(record)
        made = {name: value for name, value in row.items() if name not in dropped}
        for each in self._fields:
            made[each.name] = _in_dict(event, each)
        if self._mode.startswith("rewrite"):
            made["__deleted"] = "true" if is_deletion else "false"
        topic = str(row[self._route]) if self._route and row.get(self._route) is not None else record.topic
        return record.with_(topic=topic, value=made, headers=tuple(headers))


_OPTIONAL_STRING: Final = Schema(SchemaType.STRING, optional=True)


def _in_dict(event: dict[str, Any], addition: _Addition) -> Any:
    around = event if addition.part is None else event.get(addition.part)
    return around.get(addition.field) if isinstance(around, dict) else None


def _text_of(row: Struct, name: str, otherwise: str | None) -> str | None:
    field = row.schema.field(name)
    if field is None:
        raise InvalidValue(f"route.by.field: the row has no field {name}")
    value = row[name]
    return otherwise if value is None else str(value)


class EventRouter:
    """Rows of an outbox table as events: to the topic of their aggregate, keyed by its id."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(name="table.field.event.id", kind=STRING, default="id", doc="The column of the event's id."),
        ConfigKey(
            name="table.field.event.key", kind=STRING, default="aggregateid", doc="The column of the record's key."
        ),
        ConfigKey(name="table.field.event.type", kind=STRING, default="type", doc="The column of the event's type."),
        ConfigKey(
            name="table.field.event.timestamp",
            kind=STRING,
            default=None,
            doc="The column of the record's timestamp; default: when the change was made.",
        ),
        ConfigKey(name="table.field.event.payload", kind=STRING, default="payload", doc="The column of the value."),
        ConfigKey(
            name="table.field.event.schema.version",
            kind=STRING,
            default=None,
            importance=Importance.LOW,
            doc="The column of the version of the value's schema.",
        ),
        ConfigKey(
            name="table.fields.additional.placement",
            kind=LIST,
            default=(),
            doc="More columns, as column:header, column:envelope or column:partition, with :name for another name.",
        ),
        ConfigKey(
            name="table.fields.additional.error.on.missing",
            kind=BOOLEAN,
            default=True,
            importance=Importance.LOW,
            doc="Whether a column that is not there is an error.",
        ),
        ConfigKey(
            name="table.expand.json.payload",
            kind=BOOLEAN,
            default=False,
            doc="Whether a value that is a text of JSON is written as what it says.",
        ),
        ConfigKey(
            name="table.json.payload.null.behavior",
            kind=STRING,
            default="ignore",
            check=one_of("ignore", "optional_bytes"),
            importance=Importance.LOW,
            doc="With table.expand.json.payload: nulls have no type, and are left out or are optional bytes.",
        ),
        ConfigKey(
            name="table.op.invalid.behavior",
            kind=STRING,
            default="warn",
            check=one_of("warn", "error", "fatal"),
            importance=Importance.LOW,
            doc="What an update of the outbox is: left out (warn), or an error.",
        ),
        ConfigKey(
            name="route.by.field", kind=STRING, default="aggregatetype", doc="The column that the topic is made of."
        ),
        ConfigKey(
            name="route.topic.regex",
            kind=STRING,
            default="(?<routedByValue>.*)",
            check=regular_expression(),
            importance=Importance.LOW,
            doc="What that column must match.",
        ),
        ConfigKey(
            name="route.topic.replacement",
            kind=STRING,
            default="outbox.event.${routedByValue}",
            importance=Importance.HIGH,
            doc="The topic.",
        ),
        ConfigKey(
            name="route.tombstone.on.empty.payload",
            kind=BOOLEAN,
            default=False,
            doc="Whether an event without a payload is a tombstone.",
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._expands: bool = values["table.expand.json.payload"]
        self._keeps_nulls: bool = values["table.json.payload.null.behavior"] == "optional_bytes"
        self._regex = compiled(values["route.topic.regex"])
        self._replacement: str = values["route.topic.replacement"]
        self._additional = [_placement(each) for each in values["table.fields.additional.placement"]]

    def apply(self, record: ConnectRecord) -> ConnectRecord | None:
        row, moment = self._new_row(record)
        if row is None:
            return record if record.value is not None and not _is_event(record.value) else None
        key, key_schema = self._column(row, "table.field.event.key", required=False)
        event_id, id_schema = self._column(row, "table.field.event.id")
        payload, payload_schema = self._column(row, "table.field.event.payload")
        routed, _ = _field(row, self._values["route.by.field"], "route.by.field")
        if routed is None:
            raise InvalidValue(f"route.by.field: {self._values['route.by.field']} is null")
        timestamp_field = self._values["table.field.event.timestamp"]
        if timestamp_field:
            found, _ = _field(row, timestamp_field, "table.field.event.timestamp")
            moment = getattr(found, "milliseconds", found)
        headers = [*record.headers, ConnectHeader("id", id_schema, event_id)]
        value, value_schema = self._expanded(payload, payload_schema)
        made = record.with_(
            topic=self._topic(str(routed)),
            key_schema=key_schema if key is not None else record.key_schema,
            key=key if key is not None else record.key,
            timestamp=moment,
            partition=None,
        )
        is_empty = payload is None or (isinstance(payload, (str, bytes)) and not payload)
        if is_empty and self._values["route.tombstone.on.empty.payload"]:
            return made.with_(value_schema=None, value=None, headers=tuple(headers))
        return self._placed(made, row, value, value_schema, headers)

    def _new_row(self, record: ConnectRecord) -> tuple[Struct | None, int | None]:
        """The inserted row and when it was; none for what is no insertion."""
        event = record.value
        if not isinstance(event, Struct):
            return None, None
        if not _is_event(event):
            return (event, record.timestamp) if event.schema.field(self._values["route.by.field"]) else (None, None)
        operation = event.without_default(_OPERATION)
        if operation == "d":
            return None, None
        if operation not in ("c", "r"):
            if self._values["table.op.invalid.behavior"] != "warn":
                raise InvalidValue(
                    f"the outbox has an unexpected operation {operation}: rows are inserted and deleted only"
                )
            return None, None
        return event.without_default("after"), _part(event, "ts_ms") or record.timestamp

    def _column(self, row: Struct, setting: str, *, required: bool = True) -> tuple[Any, Schema | None]:
        name = self._values[setting]
        if not name or (not required and row.schema.field(name) is None):
            return None, None
        return _field(row, name, setting)

    def _topic(self, routed: str) -> str:
        return (
            routed if self._regex.fullmatch(routed) is None else replaced_first(self._regex, self._replacement, routed)
        )

    def _expanded(self, payload: Any, schema: Schema | None) -> tuple[Any, Schema | None]:
        if not self._expands or not isinstance(payload, str) or payload.lstrip()[:1] not in ("{", "["):
            return payload, schema
        try:
            found = json.loads(payload)
        except (ValueError, RecursionError):
            return payload, schema  # as Debezium: a text stays a text
        try:
            made = _json_schema(found, keeps_nulls=self._keeps_nulls)
        except InvalidValue:
            return payload, schema
        return _json_value(made, found), made

    def _placed(
        self, made: ConnectRecord, row: Struct, value: Any, schema: Schema | None, headers: list[ConnectHeader]
    ) -> ConnectRecord:
        fields: list[tuple[Field, Any]] = []
        partition: int | None = None
        for name, place, new_name in self._additional:
            if row.schema.field(name) is None:
                if self._values["table.fields.additional.error.on.missing"]:
                    raise InvalidValue(f"table.fields.additional.placement: the row has no column {name}")
                continue
            found, found_schema = _field(row, name, "table.fields.additional.placement")
            if place == "header":
                headers.append(ConnectHeader(new_name, found_schema, found))
            elif place == "partition":
                partition = None if found is None else int(found)
            elif found_schema is not None:
                fields.append((Field(new_name, found_schema), found))
        if fields and schema is not None:
            envelope = struct_schema([Field("payload", schema), *(field for field, _ in fields)])
            struct = Struct(envelope)
            struct.values = [value, *(found for _, found in fields)]
            value, schema = struct, envelope
        return made.with_(value_schema=schema, value=value, headers=tuple(headers), partition=partition)


def _is_event(value: Any) -> bool:
    return (
        isinstance(value, Struct)
        and value.schema.field(_OPERATION) is not None
        and value.schema.field("after") is not None
    )


def _field(row: Struct, name: str, setting: str) -> tuple[Any, Schema | None]:
    field = row.schema.field(name)
    if field is None:
        raise InvalidValue(f"{setting}: the outbox's row has no column {name}")
    return row[name], field.schema


def _placement(text: str) -> tuple[str, str, str]:
    name, _, rest = text.partition(":")
    place, _, new_name = rest.partition(":")
    if place not in ("header", "envelope", "partition"):
        raise ConfigError.of(
            "table.fields.additional.placement", text, "expected column:header, column:envelope or column:partition"
        )
    return name.strip(), place, new_name.strip() or name.strip()


def _json_schema(found: Any, *, keeps_nulls: bool) -> Schema:
    """The schema of parsed JSON, all of it optional. Raises `InvalidValue` for a list of several types."""
    match found:
        case bool():
            return _optional(BOOLEAN_SCHEMA)
        case int():
            return _optional(INT64_SCHEMA)
        case float():
            return Schema(SchemaType.FLOAT64, optional=True)
        case str():
            return _optional(STRING_SCHEMA)
        case dict():
            fields = []
            for name, each in found.items():
                if each is None or each == []:
                    if keeps_nulls:
                        fields.append(Field(name, Schema(SchemaType.BYTES, optional=True)))
                    continue
                fields.append(Field(name, _json_schema(each, keeps_nulls=keeps_nulls)))
            return struct_schema(fields, optional=True)
        case list():
            kinds = [_json_schema(each, keeps_nulls=keeps_nulls) for each in found if each is not None]
            if not kinds or any(each != kinds[0] for each in kinds):
                raise InvalidValue("a list of several types")
            return Schema(SchemaType.ARRAY, optional=True, value_schema=kinds[0])
    return Schema(SchemaType.BYTES, optional=True)


def _optional(schema: Schema) -> Schema:
    return Schema(schema.type, optional=True)


def _json_value(schema: Schema, found: Any) -> Any:
    if found is None:
        return None
    if schema.type is SchemaType.STRUCT:
        made = Struct(schema)
        made.values = [_json_value(field.schema, found.get(field.name)) for field in schema.fields]
        return made
    if schema.type is SchemaType.ARRAY and schema.value_schema is not None:
        return [_json_value(schema.value_schema, each) for each in found]
    return None if schema.type is SchemaType.BYTES else found
