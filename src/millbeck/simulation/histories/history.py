"""The operations of clients and their results, in the order in which the clients learned of them: the input of the
checkers.

Every value is unique, so a record read anywhere can be traced to its send. A send without a response stays UNKNOWN: it
may be in the log or not, and checkers accept both. ``final`` is the complete read of each partition from its start,
after all faults are repaired; without it a lost record cannot be distinguished from a late one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

Record = tuple[int, str]  # offset, value


class SendOutcome(Enum):
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"  # the log said no, for certain
    UNKNOWN = "unknown"


class Send:
    """A send of a producer; ``index`` is its number among the producer's sends to the partition."""

    __slots__ = ("index", "offset", "outcome", "partition", "producer", "value")

    def __init__(self, producer: str, partition: str, index: int, value: str) -> None:
        self.producer = producer
        self.partition = partition
        self.index = index
        self.value = value
        self.outcome = SendOutcome.UNKNOWN
        self.offset: int | None = None

    def __repr__(self) -> str:
        return f"{self.value} (send {self.index} of {self.producer} to {self.partition}, {self.outcome.value})"

    def acknowledged(self, offset: int | None) -> None:
        """Record the acknowledgement; the offset is None if the broker did not return it (a duplicate of an older
        batch)."""
        self.outcome = SendOutcome.ACKNOWLEDGED
        self.offset = offset

    def failed(self) -> None:
        self.outcome = SendOutcome.FAILED


@dataclass(frozen=True, slots=True)
class Poll:
    """The records of one poll. ``assignment`` changes whenever the consumer's position may change: by a seek, a
    rebalance or a restart."""

    consumer: str
    assignment: int
    partition: str
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


class History:
    def __init__(self) -> None:
        self.sends: list[Send] = []
        self.polls: list[Poll] = []
        self.final: dict[str, tuple[Record, ...]] = {}
        self._indexes: dict[tuple[str, str], int] = {}
        self._by_value: dict[str, Send] = {}

    def send(self, producer: str, partition: str, value: str) -> Send:
        """Record a send before its request is sent; the result is reported to the returned entry."""
        if value in self._by_value:
            raise ValueError(f"{value} was sent before: checkers need unique values")
        index = self._indexes.get((producer, partition), 0)
        self._indexes[producer, partition] = index + 1
        entry = Send(producer, partition, index, value)
        self.sends.append(entry)
        self._by_value[value] = entry
        return entry

    def poll(self, consumer: str, assignment: int, partition: str, records: Sequence[Record]) -> None:
        self.polls.append(Poll(consumer, assignment, partition, tuple(records)))

    def record_final_read(self, partition: str, records: Sequence[Record]) -> None:
        self.final[partition] = tuple(records)

    def sent(self, value: str) -> Send | None:
        return self._by_value.get(value)

    def observations(self) -> Iterator[tuple[str, int, str]]:
        """All (partition, offset, value) that any reader saw."""
        for poll in self.polls:
            for offset, value in poll.records:
                yield poll.partition, offset, value
        for partition, records in self.final.items():
            for offset, value in records:
                yield partition, offset, value

    def acknowledged_count(self) -> int:
        return sum(send.outcome is SendOutcome.ACKNOWLEDGED for send in self.sends)
