"""How far snapshots have seen the rows of each table, so that the stream leaves out what they have seen.

A snapshot is exported with the position at which it was taken: it has exactly the transactions whose commit record
lies before. A snapshot that was interrupted goes on with another one, taken later. Then the rows of a table may have
been seen at several positions: those up to some key at one, those behind it at another. Where keys cannot be compared
here as PostgreSQL compares them, a table counts as seen at the least of them, and a row may come twice: as it was read,
and as the change that made it so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from millbeck.pipeline.connect.postgres.pgoutput import Cells
from millbeck.pipeline.connect.postgres.tables import Table

COMPARABLE: Final = frozenset(("int2", "int4", "int8", "oid"))


def comparable_key(table: Table) -> str | None:
    """The column by which rows of this table can be placed in its chunks."""
    if len(table.key) != 1:
        return None
    column = table.column(table.key[0])
    return column.name if column.type.name in COMPARABLE else None


@dataclass(frozen=True, slots=True)
class SnapshotReach:
    """For each table, upper ends of keys in their order, None for the last, each with a position."""

    tables: Mapping[str, Sequence[tuple[int | None, int]]] = field(default_factory=dict)
    end: int = 0
    """Behind this position there is nothing that a snapshot has seen."""

    @classmethod
    def of(cls, found: Mapping[str, Any] | None) -> SnapshotReach:
        tables = {
            name: [(None if upper is None else int(upper), int(position)) for upper, position in ranges]
            for name, ranges in (found or {}).items()
        }
        return cls(tables, max((position for ranges in tables.values() for _, position in ranges), default=0))

    def as_json(self) -> dict[str, Any] | None:
        return {name: [list(each) for each in ranges] for name, ranges in self.tables.items()} or None

    def has(self, table: Table, cells: Cells | None, final_lsn: int) -> bool:
        """Whether the transaction that committed at ``final_lsn`` was seen when this row was read."""
        if final_lsn >= self.end:
            return False
        ranges = self.tables.get(str(table.id))
        if not ranges:
            return False
        if len(ranges) == 1:
            return final_lsn < ranges[0][1]
        name = comparable_key(table)
        cell = None
        if name is not None and cells is not None:
            place = next(place for place, column in enumerate(table.columns) if column.name == name)
            cell = cells[place]
        if not isinstance(cell, bytes):
            return final_lsn < min(position for _, position in ranges)
        key = int(cell)
        for upper, position in ranges:
            if upper is None or key <= upper:
                return final_lsn < position
        return False
