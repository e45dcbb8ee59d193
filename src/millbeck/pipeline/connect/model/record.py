"""Records between a connector and the log, with their headers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.model.schema import Schema


@dataclass(frozen=True, slots=True)
class ConnectHeader:
    key: str
    schema: Schema | None
    value: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectRecord:
    """A record as transforms and predicates get it. Without a schema, a value is a dict, list, text or number."""

    topic: str | None
    partition: int | None = None
    key_schema: Schema | None = None
    key: Any = None
    value_schema: Schema | None = None
    value: Any = None
    timestamp: int | None = None
    headers: tuple[ConnectHeader, ...] = ()

    def with_(self, **changes: object) -> Self:
        """A copy with other attributes."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord(ConnectRecord):
    """A record of a source connector; its source offset is where reading continues after this record."""

    source_partition: Mapping[str, Any] | None = None
    source_offset: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRecord(ConnectRecord):
    """A record of the log at ``offset``, for a sink connector."""

    offset: int = 0
    origin: TopicPartition | None = None
    """The partition that it was read from, whatever transforms make of ``topic`` and ``partition``."""


class Side(Enum):
    """The part of a record that a transform changes: ``Cast$Key`` or ``Cast$Value``."""

    KEY = "Key"
    VALUE = "Value"

    def schema(self, record: ConnectRecord) -> Schema | None:
        return record.key_schema if self is Side.KEY else record.value_schema

    def value_of(self, record: ConnectRecord) -> Any:
        return record.key if self is Side.KEY else record.value

    def changed(self, record: ConnectRecord, schema: Schema | None, value: object) -> ConnectRecord:
        if self is Side.KEY:
            return record.with_(key_schema=schema, key=value)
        return record.with_(value_schema=schema, value=value)
