"""A metadata log in memory, with flushed and unflushed records, and its state after a crash or power loss.

Records are numbers. A table shared by all logs of a world maps each number to an empty record or a control record, so
that a batch has three integers per record.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from millbeck.raft.messages import EpochEnd, SnapshotKey
from millbeck.raft.voters import VoterSet
from millbeck.records.control import KRaftVersion, LeaderChange, Voters

_RECORD = Struct(">qiq")

ControlRecord = LeaderChange | KRaftVersion | Voters


class LogEntry(NamedTuple):
    epoch: int
    payload: int


@dataclass(slots=True)
class PayloadTable:
    """The meaning of the numbers in all logs."""

    controls: dict[int, ControlRecord] = field(default_factory=dict)
    count: int = 0

    def new(self, control: ControlRecord | None = None) -> int:
        self.count += 1
        if control is not None:
            self.controls[self.count] = control
        return self.count


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    key: SnapshotKey
    kraft_version: int
    voters: VoterSet


class MemoryLog:
    """A `LogView` that can be written to. ``entries`` begin at ``start_offset``."""

    def __init__(self, initial: MemorySnapshot) -> None:
        self.base = initial
        """The snapshot of everything before ``start_offset``."""
        self.entries: list[LogEntry] = []
        self.flushed_offset = 0

    @property
    def start_offset(self) -> int:
        return self.base.key.end_offset

    @property
    def start_epoch(self) -> int:
        return self.base.key.epoch

    @property
    def end_offset(self) -> int:
        return self.start_offset + len(self.entries)

    @property
    def last_epoch(self) -> int:
        return self.entries[-1].epoch if self.entries else self.start_epoch

    @property
    def snapshot(self) -> SnapshotKey | None:
        return self.base.key if self.start_offset else None

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        for index in range(len(self.entries) - 1, -1, -1):
            if self.entries[index].epoch <= epoch:
                return EpochEnd(self.entries[index].epoch, self.start_offset + index + 1)
        return EpochEnd(self.start_epoch, self.start_offset)

    def at(self, offset: int) -> LogEntry:
        return self.entries[offset - self.start_offset]

    def epoch_before(self, offset: int) -> int:
        return self.at(offset - 1).epoch if offset > self.start_offset else self.start_epoch

    def append(self, entry: LogEntry) -> int:
        self.entries.append(entry)
        return self.end_offset - 1

    def truncate(self, offset: int) -> None:
        del self.entries[max(0, offset - self.start_offset) :]
        self.flushed_offset = min(self.flushed_offset, self.end_offset)

    def flush(self) -> None:
        self.flushed_offset = self.end_offset

    def begin_with(self, snapshot: MemorySnapshot) -> None:
        """Replace everything below a snapshot's end with the snapshot; the rest of the log is kept if it is
        consistent."""
        kept = self.entries[snapshot.key.end_offset - self.start_offset :]
        self.entries = kept if snapshot.key.end_offset <= self.end_offset else []
        self.base = snapshot
        self.flushed_offset = max(self.flushed_offset, snapshot.key.end_offset)

    def start_over(self, snapshot: MemorySnapshot) -> None:
        self.entries = []
        self.base = snapshot
        self.flushed_offset = snapshot.key.end_offset

    def lose_power(self, dice: random.Random) -> None:
        """Keep a random prefix of the unflushed records; checksums ensure that it is a prefix."""
        self.truncate(dice.randint(self.flushed_offset, self.end_offset))

    def read(self, offset: int, count_max: int) -> bytes:
        """The records from ``offset`` on, as a leader sends them."""
        first = offset - self.start_offset
        return b"".join(
            _RECORD.pack(offset + index, *entry) for index, entry in enumerate(self.entries[first : first + count_max])
        )

    def changes(self, payloads: PayloadTable) -> list[tuple[int, KRaftVersion | Voters]]:
        """The control records about voters, by offset."""
        found = [
            (self.start_offset + index, payloads.controls.get(entry.payload))
            for index, entry in enumerate(self.entries)
        ]
        return [(offset, value) for offset, value in found if isinstance(value, KRaftVersion | Voters)]


def decode(records: bytes) -> list[tuple[int, LogEntry]]:
    return [(offset, LogEntry(epoch, payload)) for offset, epoch, payload in _RECORD.iter_unpack(records)]
