"""Transforms of headers: DropHeaders, InsertHeader and HeaderFrom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from millbeck.pipeline.connect.config.checks import non_empty_list, not_null, one_of
from millbeck.pipeline.connect.config.definitions import LIST, STRING, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import ConfigError, InvalidValue
from millbeck.pipeline.connect.model.record import ConnectHeader, ConnectRecord
from millbeck.pipeline.connect.model.schema import Schema
from millbeck.pipeline.connect.model.struct import Struct
from millbeck.pipeline.connect.model.value_parser import parse_text
from millbeck.pipeline.connect.transforms.base import REPLACE_NULL_WITH_DEFAULT, SidedTransformation


class DropHeaders:
    """Records without the headers of these names."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="headers",
            kind=LIST,
            check=non_empty_list(),
            importance=Importance.HIGH,
            doc="The names of the headers to remove.",
        )
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._names = frozenset(values["headers"])

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.with_(headers=tuple(header for header in record.headers if header.key not in self._names))


class InsertHeader:
    """One more header, the same for each record."""

    config_def: ClassVar = ConfigDef(
        ConfigKey(name="header", kind=STRING, check=not_null(), importance=Importance.HIGH, doc="The header's name."),
        ConfigKey(
            name="value.literal",
            kind=STRING,
            check=not_null(),
            importance=Importance.HIGH,
            doc="The header's value; numbers, booleans, dates, arrays and maps are recognised.",
        ),
    )

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._header = ConnectHeader(values["header"], *parse_text(values["value.literal"]))

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return record.with_(headers=(*record.headers, self._header))


class HeaderFrom(SidedTransformation):
    """Fields copied or moved to headers."""

    skips_null = False
    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="fields",
            kind=LIST,
            check=non_empty_list(),
            importance=Importance.HIGH,
            doc="The fields whose values become headers.",
        ),
        ConfigKey(
            name="headers",
            kind=LIST,
            check=non_empty_list(),
            importance=Importance.HIGH,
            doc="The headers' names, in the order of the fields.",
        ),
        ConfigKey(
            name="operation",
            kind=STRING,
            check=one_of("move", "copy"),
            importance=Importance.HIGH,
            doc="move removes the fields, copy keeps them.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._fields: tuple[str, ...] = values["fields"]
        self._headers: tuple[str, ...] = values["headers"]
        if len(self._fields) != len(self._headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._moves = values["operation"] == "move"
        self.purpose = f"header {values['operation']}"  # type: ignore[misc]

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        changed = dict(self.required_dict(value))
        added: list[ConnectHeader] = []
        for name, header in zip(self._fields, self._headers, strict=True):
            added.append(ConnectHeader(header, None, value.get(name)))
            if self._moves:
                changed.pop(name, None)
        return self.side.changed(record, None, changed).with_(headers=(*record.headers, *added))

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        before = self.required_struct(value)
        added: list[ConnectHeader] = []
        for name, header in zip(self._fields, self._headers, strict=True):
            field = schema.field(name)
            if field is None:
                raise InvalidValue(f"Field does not exist: {name}")
            found = self.read(before, name)
            if found is None and not field.schema.optional:
                raise InvalidValue(f"A null value requires an optional schema but was {field.schema}")
            added.append(ConnectHeader(header, field.schema, found))
        if self._moves:
            schema = self.changed_schema(schema, self._without_moved)
            value = Struct(schema)
            for field in schema.fields:
                value[field.name] = self.read(before, field.name)
        return self.side.changed(record, schema, value).with_(headers=(*record.headers, *added))

    def _without_moved(self, schema: Schema) -> Schema:
        return schema.with_fields(field for field in schema.fields if field.name not in self._fields)
