"""The history of a compacted topic: writes to keys, and reads from the start that end as tables.

A write's value in the `History` is ``key|name|`` or ``key|name|x`` for a tombstone, so that every write is unique and
self-describing, and the log checkers apply as well. Times are the clients' wall clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from millbeck.simulation.histories.history import History, Record, SendOutcome


@dataclass(frozen=True, slots=True)
class Scan:
    """A read of a partition from its start to its end at that time."""

    partition: str
    began_ms: int
    ended_ms: int
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class TableWrite:
    """An acknowledged write."""

    offset: int
    value: str
    acknowledged_ms: int

    @property
    def key(self) -> str:
        return key_of(self.value)

    @property
    def is_tombstone(self) -> bool:
        return self.value.endswith("|x")


def value_of(key: str, name: str, *, is_tombstone: bool) -> str:
    return f"{key}|{name}|{'x' if is_tombstone else ''}"


def key_of(value: str) -> str:
    return value.partition("|")[0]


class TableHistory(History):
    def __init__(self, delete_retention_ms: int) -> None:
        super().__init__()
        self.delete_retention_ms = delete_retention_ms
        self.scans: list[Scan] = []
        self.active_from: dict[str, int] = {}
        """The base offset of each partition's active segment at the final read."""
        self.compaction_count = 0
        self._acknowledged_ms: dict[str, int] = {}

    def acknowledged_at(self, value: str, now_ms: int) -> None:
        self._acknowledged_ms[value] = now_ms

    def scan(self, partition: str, began_ms: int, ended_ms: int, records: Sequence[Record]) -> None:
        self.scans.append(Scan(partition, began_ms, ended_ms, tuple(records)))

    def writes(self, partition: str) -> list[TableWrite]:
        """The acknowledged writes of a partition, by offset."""
        found = [
            TableWrite(send.offset, send.value, self._acknowledged_ms[send.value])
            for send in self.sends
            if send.partition == partition and send.outcome is SendOutcome.ACKNOWLEDGED and send.offset is not None
        ]
        return sorted(found, key=lambda write: write.offset)

    def partitions(self) -> list[str]:
        return sorted({send.partition for send in self.sends})
