"""The settings of a connector in the form that its parts use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from millbeck.pipeline.connect.errors import ConfigError
from millbeck.pipeline.connect.postgres.filters import CaptureFilter, NameFilter, key_columns_of, key_of
from millbeck.pipeline.connect.postgres.masks import Mask, masks_of
from millbeck.pipeline.connect.postgres.naming import Naming
from millbeck.pipeline.connect.postgres.tables import Table
from millbeck.pipeline.connect.postgres.values.options import (
    BinaryMode,
    DecimalMode,
    HstoreMode,
    IntervalMode,
    TimeMode,
    ValueOptions,
)


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    values: Mapping[str, Any]
    capture: CaptureFilter
    messages: NameFilter
    naming: Naming
    value_options: ValueOptions
    masks: tuple[Mask, ...]
    skipped: frozenset[str]

    @classmethod
    def of(cls, values: Mapping[str, Any], settings: Mapping[str, Any]) -> PostgresSettings:
        """``values`` are the declared settings, ``settings`` all of them as texts. Raises `ConfigError`."""
        try:
            return cls(
                values,
                CaptureFilter.of(values),
                NameFilter.of(values["message.prefix.include.list"], values["message.prefix.exclude.list"]),
                _naming(values),
                _value_options(values),
                masks_of(settings),
                frozenset(values["skipped.operations"]),
            )
        except ValueError as error:
            raise ConfigError(str(error)) from None

    @property
    def partition(self) -> dict[str, str]:
        """The source partition of the stream, as Debezium's."""
        return {"server": self.values["topic.prefix"]}

    def key_of(self, table: Table) -> tuple[str, ...]:
        return key_of(table, key_columns_of(self.values["message.key.columns"]))


def _naming(values: Mapping[str, Any]) -> Naming:
    return Naming(
        prefix=values["topic.prefix"],
        delimiter=values["topic.delimiter"],
        heartbeat_prefix=values["topic.heartbeat.prefix"],
        transaction=values["topic.transaction"],
        schema_mode=values["schema.name.adjustment.mode"],
        field_mode=values["field.name.adjustment.mode"],
    )


def _value_options(values: Mapping[str, Any]) -> ValueOptions:
    placeholder = values["unavailable.value.placeholder"] or ""
    return ValueOptions(
        decimal=DecimalMode(values["decimal.handling.mode"]),
        time=TimeMode(values["time.precision.mode"]),
        interval=IntervalMode(values["interval.handling.mode"]),
        binary=BinaryMode(values["binary.handling.mode"]),
        hstore=HstoreMode(values["hstore.handling.mode"]),
        money_digits=values["money.fraction.digits"],
        includes_unknown=values["include.unknown.datatypes"],
        placeholder=bytes.fromhex(placeholder[4:]) if placeholder.startswith("hex:") else placeholder.encode(),
    )
