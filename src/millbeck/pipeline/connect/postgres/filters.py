"""Which tables and columns are captured: lists of regular expressions, separated by commas, each for the whole name,
in any case. A comma inside an expression is written ``\\,``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.pipeline.connect.model.java_patterns import compiled
from millbeck.pipeline.connect.postgres.tables import Table, TableId

_COMMA: Final = re.compile(r"(?<!\\),")
SYSTEM_SCHEMAS: Final = frozenset(("pg_catalog", "information_schema", "pg_toast", "pg_temp"))


def patterns_of(text: str | None) -> tuple[re.Pattern[str], ...]:
    """Raises ValueError for a text that is no regular expression."""
    parts = (part.strip().replace("\\,", ",") for part in _COMMA.split(text or ""))
    return tuple(re.compile(compiled(part).pattern, re.ASCII | re.IGNORECASE) for part in parts if part)


def matches(patterns: Iterable[re.Pattern[str]], name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


@dataclass(frozen=True, slots=True, kw_only=True)
class NameFilter:
    """Names that match one of ``included``, if there are any, and none of ``excluded``."""

    included: tuple[re.Pattern[str], ...] = ()
    excluded: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, included: str | None, excluded: str | None) -> NameFilter:
        return cls(included=patterns_of(included), excluded=patterns_of(excluded))

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str) or (self.included and not matches(self.included, name)):
            return False
        return not matches(self.excluded, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureFilter:
    schemas: NameFilter
    tables: NameFilter
    columns: NameFilter
    signal_table: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> CaptureFilter:
        """The filter of a connector's settings."""
        return cls(
            schemas=NameFilter.of(values["schema.include.list"], values["schema.exclude.list"]),
            tables=NameFilter.of(values["table.include.list"], values["table.exclude.list"]),
            columns=NameFilter.of(values["column.include.list"], values["column.exclude.list"]),
            signal_table=values["signal.data.collection"] or None,
        )

    def has_table(self, table: TableId) -> bool:
        """Whether records are made of a table's changes."""
        return table.schema not in SYSTEM_SCHEMAS and table.schema in self.schemas and str(table) in self.tables

    def needs_table(self, table: TableId) -> bool:
        """The same, or its changes are signals."""
        return self.has_table(table) or str(table) == self.signal_table

    def has_column(self, table: TableId, column: str) -> bool:
        return f"{table}.{column}" in self.columns


def key_columns_of(text: str | None) -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """``message.key.columns``: tables with the columns of their keys, ``schema.table:a,b;...``. Raises ValueError."""
    found: list[tuple[re.Pattern[str], tuple[str, ...]]] = []
    for part in filter(None, map(str.strip, (text or "").split(";"))):
        table, colon, names = part.rpartition(":")
        columns = tuple(name.strip() for name in names.split(",") if name.strip())
        if not colon or not columns:
            raise ValueError(f"{part!r} is not of the form table:column,column")
        found.extend((pattern, columns) for pattern in patterns_of(table))
    return tuple(found)


def key_of(table: Table, chosen: Iterable[tuple[re.Pattern[str], tuple[str, ...]]]) -> tuple[str, ...]:
    """The columns of a table's keys: the first chosen ones that match, else those of its own key."""
    for pattern, columns in chosen:
        if pattern.fullmatch(str(table.id)):
            return columns
    return table.key
