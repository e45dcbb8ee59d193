"""Decode a fetch response into records, batch by batch, when the program polls. Pure.

Records that the program must not see are filtered: records before the position (a broker sends whole batches), control
records, and with read_committed the records of aborted transactions. For those the response lists producer id and first
offset; that producer's records are skipped from there to its abort marker.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Final

from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import HEADER_SIZE, BatchHeader, read_header, records_of
from millbeck.records.control import ControlType, control_type_of
from millbeck.records.record import Record, RecordSource

Aborted = tuple[int, int]
"""First offset and producer id of an aborted transaction."""

NOWHERE: Final = TopicPartition("", -1)


class CompletedFetch:
    """One partition's part of a fetch response, decoded from front to back."""

    __slots__ = (
        "_aborted",
        "_aborted_producers",
        "_checks_crcs",
        "_data",
        "_limit_bytes",
        "_partition",
        "_place",
        "leader_epoch",
        "next_offset",
    )

    def __init__(
        self,
        data: bytes,
        start_offset: int,
        *,
        aborted: Iterable[Aborted] | None = None,
        checks_crcs: bool = True,
        limit_bytes: int = 256 * 1024 * 1024,
        partition: TopicPartition = NOWHERE,
    ) -> None:
        self._data = data
        self._partition = partition
        self._place = 0
        self._aborted = sorted(aborted or ())
        self._aborted_producers: dict[int, None] = {}
        self._checks_crcs = checks_crcs
        self._limit_bytes = limit_bytes
        self.next_offset = start_offset
        """The next offset to read; all earlier records have been returned or skipped."""
        self.leader_epoch = -1
        """The leader epoch of the last batch read."""

    @property
    def remaining_bytes(self) -> int:
        return len(self._data) - self._place

    def skip_to_end(self) -> int:
        """Skip all batches: only find the end of the last complete one, which is the offset to fetch next. Raises
        `CorruptMessage`."""
        offset, place = self.next_offset, self._place
        while len(self._data) - place >= HEADER_SIZE:
            header = read_header(self._data, place)
            if header.size_bytes > len(self._data) - place:
                break
            offset = max(offset, header.next_offset)
            place += header.size_bytes
        return offset

    def read(self) -> list[Record] | None:
        """The visible records of the next batch, possibly none; None at the end.

        Raises `CorruptMessage` or `InvalidRecord`, on every further call again: nothing after a bad batch is read.
        """
        while len(self._data) - self._place >= HEADER_SIZE:
            header = read_header(self._data, self._place)
            end = self._place + header.size_bytes
            if end > len(self._data):
                # The broker may truncate the last batch at the size limit.
                return None
            batch = self._data[self._place : end]
            is_hidden = self._is_hidden(header, batch)
            if header.next_offset <= self.next_offset:
                self._place = end
                continue
            records = [] if is_hidden else self._records_of(batch, header)
            self._place = end
            wanted_from = self.next_offset
            self.next_offset = header.next_offset
            self.leader_epoch = header.partition_leader_epoch
            if records and records[0].offset < wanted_from:
                records = [record for record in records if record.offset >= wanted_from]
            return records
        return None

    def _records_of(self, batch: bytes, header: BatchHeader) -> list[Record]:
        source = RecordSource(*self._partition, header.partition_leader_epoch, int(header.timestamp_type))
        return records_of(batch, check_crc=self._checks_crcs, limit_bytes=self._limit_bytes, source=source)

    def _is_hidden(self, header: BatchHeader, batch: bytes) -> bool:
        while self._aborted and self._aborted[0][0] <= header.last_offset:
            _, producer_id = heapq.heappop(self._aborted)
            self._aborted_producers[producer_id] = None
        if header.is_control:
            if header.producer_id in self._aborted_producers and _ends_in_abort(batch):
                del self._aborted_producers[header.producer_id]
            return True
        return header.is_transactional and header.producer_id in self._aborted_producers


def _ends_in_abort(batch: bytes) -> bool:
    records = records_of(batch, check_crc=False)
    return bool(records) and control_type_of(records[0].key) is ControlType.ABORT
