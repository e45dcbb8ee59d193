"""Decode a fetch response into columns of numbers, many batches at a time, without an object per record. Pure.

The same records are filtered as in `CompletedFetch` (control records, aborted transactions with read_committed), and
those outside the offset range. Uncompressed batches are not copied: `Columns.payload` is the response's buffer;
compressed ones are decompressed and joined, up to `JOINED_BYTES_MAX` at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from millbeck.client.consumer.fetched import NOWHERE, Aborted, CompletedFetch
from millbeck.kernel.errors import ApiError, InvalidRecord
from millbeck.kernel.ids import TopicPartition
from millbeck.records.batch import HEADER_SIZE, BatchHeader, payload_of, read_header, verify
from millbeck.records.columns import ColumnBuffers, take_records
from millbeck.records.header import LOG_APPEND_TIME_BIT

JOINED_BYTES_MAX: Final = 32 * 1024 * 1024


class Columns(NamedTuple):
    """Records as columns of positions in ``payload``, which has keys, values, headers; see `records.native.columns`."""

    payload: bytes
    rows: bytes
    row_count: int
    header_counts: bytes
    header_slots: bytes
    header_count: int
    timestamp_type: int
    """The timestamp type of all these records: 0 CreateTime, 1 LogAppendTime."""
    next_offset: int
    """The offset after their last batch."""


class CompletedColumnFetch(CompletedFetch):
    """One partition's part of a fetch response, limited to ``start_offset`` <= offset < ``end_offset``."""

    __slots__ = ("_end_offset", "_first_offset", "_with_headers")

    def __init__(
        self,
        data: bytes,
        start_offset: int,
        end_offset: int,
        *,
        aborted: Iterable[Aborted] | None = None,
        checks_crcs: bool = True,
        limit_bytes: int = 256 * 1024 * 1024,
        with_headers: bool = False,
        partition: TopicPartition = NOWHERE,
    ) -> None:
        super().__init__(
            data,
            start_offset,
            aborted=aborted,
            checks_crcs=checks_crcs,
            limit_bytes=limit_bytes,
            partition=partition,
        )
        self._first_offset = start_offset
        self._end_offset = end_offset
        self._with_headers = with_headers

    def remaining_columns(self, *, with_headers: bool) -> Iterator[Columns]:
        """Like `columns`, from the next record that `read` would return."""
        self._first_offset = max(self._first_offset, self.next_offset)
        self._with_headers = with_headers
        return self.columns()

    def columns(self) -> Iterator[Columns]:
        """The visible records, in order. Raises `CorruptMessage` or `InvalidRecord`."""
        run: list[tuple[BatchHeader, int]] = []
        joined_bytes = 0
        pieces: list[bytes] = []
        try:
            for header, place in self._visible():
                if run and _kind(header) != _kind(run[0][0]):
                    yield self._columns(run, pieces)
                    run, pieces, joined_bytes = [], [], 0
                if header.is_compressed:
                    batch = memoryview(self._data)[place : place + header.size_bytes]
                    pieces.append(payload_of(batch, header, self._limit_bytes))
                    place = joined_bytes
                    joined_bytes += len(pieces[-1])
                run.append((header, place))
                if joined_bytes >= JOINED_BYTES_MAX:
                    yield self._columns(run, pieces)
                    run, pieces, joined_bytes = [], [], 0
        except ApiError:
            # The records before a bad batch are good.
            if run:
                yield self._columns(run, pieces)
            raise
        if run:
            yield self._columns(run, pieces)

    def _visible(self) -> Iterator[tuple[BatchHeader, int]]:
        """Headers and positions of the batches that may have visible records."""
        data = self._data
        while len(data) - self._place >= HEADER_SIZE and self.next_offset < self._end_offset:
            place = self._place
            header = read_header(data, place)
            end = place + header.size_bytes
            if end > len(data):
                # The broker may truncate the last batch at the size limit.
                return
            if self._checks_crcs and header.next_offset > self.next_offset:
                verify(memoryview(data)[place:end])
            is_hidden = self._is_hidden(header, data[place:end] if header.is_control else b"")
            if not is_hidden and header.next_offset > self.next_offset and header.base_offset < self._end_offset:
                yield header, place
            self._place = end
            self.next_offset = max(self.next_offset, header.next_offset)
            self.leader_epoch = header.partition_leader_epoch

    def _columns(self, run: list[tuple[BatchHeader, int]], pieces: list[bytes]) -> Columns:
        found = ColumnBuffers(self._with_headers)
        is_compressed = run[0][0].is_compressed
        payload = b"".join(pieces) if is_compressed else self._data
        for index, (header, place) in enumerate(run):
            start = place if is_compressed else place + HEADER_SIZE
            end = place + (len(pieces[index]) if is_compressed else header.size_bytes)
            taken = take_records(
                payload,
                start,
                end,
                header.record_count,
                header.base_offset,
                header.base_timestamp,
                header.max_timestamp if header.attributes & LOG_APPEND_TIME_BIT else -1,
                self._first_offset,
                self._end_offset,
                found,
            )
            if taken < 0:
                raise InvalidRecord(f"the batch at offset {header.base_offset} has malformed records")
        return Columns(
            payload,
            found.rows.getvalue(),
            found.row_count,
            found.header_counts.getvalue(),
            found.header_slots.getvalue(),
            found.header_count,
            int(run[0][0].timestamp_type),
            run[-1][0].next_offset,
        )


def _kind(header: BatchHeader) -> tuple[bool, int]:
    """The properties that batches decoded together must share."""
    return header.is_compressed, int(header.timestamp_type)
