"""The records of one partition that ``async for`` has taken and returns one by one.

The position of the partition is already after the last of them. `consumed_offset` is the position of the program: after
the record that it is processing, which a commit inside the loop includes.
"""

from __future__ import annotations

from collections.abc import Iterator

from millbeck.client.consumer.positions import TopicPartitionState
from millbeck.records.record import Record


class RecordRun:
    __slots__ = ("_records", "_start_offset", "_turn", "current", "state")

    def __init__(self, state: TopicPartitionState, records: list[Record], start_offset: int) -> None:
        self.state = state
        self._records = records
        self._start_offset = start_offset
        self._turn = state.turn
        self.current: Record | None = None
        """The record that the program is processing; None before the first."""

    def __iter__(self) -> Iterator[Record]:
        """Iterate over the records; ends early after `end`."""
        return iter(self._records)

    @property
    def is_stale(self) -> bool:
        """Whether the position of the partition was changed in the meantime."""
        return self.state.turn != self._turn

    @property
    def consumed_offset(self) -> int:
        if self.is_stale or (self._records and self.current is self._records[-1]):
            return self.state.position
        return self._start_offset if self.current is None else self.current.offset + 1

    def end(self, *, repeats_current: bool = False) -> None:
        """Stop iterating; the remaining records are read again, unless the position has changed.

        With ``repeats_current`` the current record is read again too, because it could not be processed.
        """
        index = 0
        if self.current is not None:
            index = next(place for place, record in enumerate(self._records) if record is self.current)
            index += 0 if repeats_current else 1
        left = self._records[index:]
        del self._records[index:]
        if left and not self.is_stale:
            self.state.put_back(left)
            self._start_offset = self.state.position
