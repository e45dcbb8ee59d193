"""A table in chunks: which are done, which come next.

A chunk is a range of keys, or of pages in a table without a key: behind ``after``, up to ``until``. Done chunks are in
the log as offsets of source partitions of their own, so tasks commit them one by one; what is left is what lies between
them and behind the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from millbeck.pipeline.connect.postgres.snapshot_reach import SnapshotReach, comparable_key
from millbeck.pipeline.connect.postgres.tables import Table

Bound = tuple[str, ...] | None
"""Values of the key as texts; None where there is no end."""


class Order(Enum):
    """By what a table is cut."""

    KEY = "key"
    PAGES = "pages"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneChunk:
    number: int
    after: Bound
    until: Bound
    lsn: int
    """The position of the snapshot that it was read in."""

    @classmethod
    def of(cls, number: int, offset: Mapping[str, Any]) -> DoneChunk:
        after, until = offset["after"], offset["until"]
        return cls(
            number=number,
            after=None if after is None else tuple(after),
            until=None if until is None else tuple(until),
            lsn=offset["lsn"],
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "after": None if self.after is None else list(self.after),
            "until": None if self.until is None else list(self.until),
            "lsn": self.lsn,
        }


@dataclass(frozen=True, slots=True)
class Gap:
    """What is left behind ``after``; up to ``until`` if ``is_closed``, else up to the end of the table."""

    number: int
    after: Bound
    until: Bound
    is_closed: bool


def gaps_of(done: Iterable[DoneChunk]) -> Iterator[Gap]:
    """The gaps of a table, in order; none when all of it is done. The last one is open."""
    after: Bound = None
    number = 0
    for chunk in sorted(done, key=lambda chunk: chunk.number):
        if chunk.after != after:
            yield Gap(number + 1, after, chunk.after, is_closed=True)
        if chunk.until is None:
            return
        after, number = chunk.until, chunk.number
    yield Gap(number + 1, after, None, is_closed=False)


def done_chunks(
    positions: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], server: str, *, signal: str | None = None
) -> dict[str, list[DoneChunk]]:
    """Done chunks by table, from all offsets of the connector; of the snapshot that a signal has asked for."""
    found: dict[str, list[DoneChunk]] = {}
    for partition, offset in positions:
        if partition.get("server") == server and "chunk" in partition and partition.get("signal") == signal:
            found.setdefault(partition["table"], []).append(DoneChunk.of(partition["chunk"], offset))
    return found


def chunk_partition(server: str, table: str, number: int, *, signal: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"server": server, "table": table, "chunk": number}
    return made if signal is None else {**made, "signal": signal}


def reach_of(tables: Sequence[Table], done: Mapping[str, Sequence[DoneChunk]], start_lsn: int) -> SnapshotReach:
    """What the stream has to leave out from ``start_lsn`` on, because later snapshots have seen it."""
    found: dict[str, list[tuple[int | None, int]]] = {}
    for table in tables:
        ranges: list[tuple[int | None, int]] = []
        is_comparable = comparable_key(table) is not None
        for chunk in sorted(done.get(str(table.id), ()), key=lambda chunk: chunk.number):
            upper = int(chunk.until[0]) if is_comparable and chunk.until is not None else None
            if ranges and ranges[-1][1] == chunk.lsn:
                ranges[-1] = (upper, chunk.lsn)
            else:
                ranges.append((upper, chunk.lsn))
        if not is_comparable and ranges:
            ranges = [(None, min(lsn for _, lsn in ranges))]
        if any(lsn > start_lsn for _, lsn in ranges):
            found[str(table.id)] = ranges
    return SnapshotReach(found, max((lsn for ranges in found.values() for _, lsn in ranges), default=0))
