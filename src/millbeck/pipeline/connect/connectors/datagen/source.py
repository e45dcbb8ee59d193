"""The generator as a source. Record number N of a task is a function of the seed, the task and N: nothing is kept.

The offset has the form of Confluent's: the number of records written so far.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final

from millbeck.pipeline.connect.connectors.datagen.settings import DATAGEN_SOURCE
from millbeck.pipeline.connect.connectors.datagen.values import QUICKSTART_SCHEMAS, value_maker
from millbeck.pipeline.connect.connectors.interface import (
    ConnectorContext,
    Plan,
    SourceConnector,
    SourcePositions,
    SourceShare,
)
from millbeck.pipeline.connect.connectors.objects.clock import now_ms
from millbeck.pipeline.connect.converters.avro_mapping import schema_of_avro
from millbeck.pipeline.connect.errors import ConfigError, ConnectError
from millbeck.pipeline.connect.model.record import SourceRecord

_RECORDS_MAX: Final = 10_000
_TURN_MS: Final = 500


class DatagenSource(SourceConnector):
    """Generates records."""

    declared = DATAGEN_SOURCE

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        name = values["quickstart"].lower()
        try:
            avro = QUICKSTART_SCHEMAS[name] if name else json.loads(values["schema.string"])
            self._schema = schema_of_avro(avro)
            self._make = value_maker(avro, self._schema)
        except (ValueError, KeyError, TypeError, ConnectError) as error:
            raise ConfigError.of("schema.string", values["schema.string"][:200], str(error)) from error
        self._key: str = values["schema.keyfield"] or (QUICKSTART_SCHEMAS[name]["key"] if name else "")
        if self._key and self._schema.field(self._key) is None:
            raise ConfigError.of("schema.keyfield", self._key, "the schema has no such field")
        self._last_ms: int | None = None

    def start(self) -> None:
        self._last_ms = None

    def plan(self, positions: SourcePositions) -> Plan[SourceShare]:
        now = now_ms()
        elapsed_ms = _TURN_MS if self._last_ms is None else max(0, now - self._last_ms)
        interval_ms = self.values["max.interval"] / 2
        count = _RECORDS_MAX if interval_ms == 0 else min(_RECORDS_MAX, int(elapsed_ms / interval_ms))
        if count == 0:
            return Plan(again_s=interval_ms / 1000)
        self._last_ms = now
        shares = []
        for task in range(self.context.tasks_max):
            offset = positions.get({"task.id": task})
            start = 0 if offset is None else int(offset["current.iteration"])
            end = start + count if self.values["iterations"] < 0 else min(start + count, self.values["iterations"])
            if start < end:
                shares.append(SourceShare(payload=(task, start, end)))
        return Plan(
            shares=tuple(shares), again_s=max(interval_ms, _TURN_MS if interval_ms else 0) / 1000 if shares else None
        )

    def read(self, share: SourceShare) -> Iterator[SourceRecord]:
        task, start, end = share.payload
        key_schema = None
        if self._key:
            field = self._schema.field(self._key)
            assert field is not None
            key_schema = field.schema
        for number in range(start, end):
            chance = Random(f"{self.values['random.seed']}/{task}/{number}")
            value = self._make(chance, number)
            yield SourceRecord(
                topic=self.values["kafka.topic"],
                key_schema=key_schema,
                key=value[self._key] if self._key else None,
                value_schema=self._schema,
                value=value,
                source_partition={"task.id": task},
                source_offset={"current.iteration": number + 1},
            )
