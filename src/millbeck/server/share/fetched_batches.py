"""Parse the batch headers in the data that a share fetch has read, without decoding the records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final, NamedTuple

from millbeck.coordinator.share.partition.acquisition import Acquired, FetchedBatch
from millbeck.kernel.environment import Bytes
from millbeck.records.header import CONTROL_BIT, HEADER_SIZE, LOG_OVERHEAD, TRANSACTIONAL_BIT
from millbeck.storage.txn_index import AbortedTransaction

_BATCH: Final = Struct(">qi9xhi16xqhii")
"""Base offset, length, attributes, last offset delta, producer id, epoch, sequence, record count."""


class BatchRange(NamedTuple):
    first_offset: int
    last_offset: int
    has_records: bool
    position: int
    end: int
    record_count: int

    @property
    def found(self) -> FetchedBatch:
        return FetchedBatch(self.first_offset, self.last_offset, self.has_records)


def batches_in(data: Bytes, aborted: Sequence[AbortedTransaction] = ()) -> list[BatchRange]:
    """The complete batches; control batches, empty and aborted ones are marked as having no records."""
    found = []
    position, size = 0, len(data)
    while position + HEADER_SIZE <= size:
        first, length, attributes, delta, producer_id, _, _, count = _BATCH.unpack_from(data, position)
        end = position + LOG_OVERHEAD + length
        if end > size:
            break
        is_hidden = bool(attributes & CONTROL_BIT) or not count
        if not is_hidden and aborted and attributes & TRANSACTIONAL_BIT:
            is_hidden = any(
                each.producer_id == producer_id and each.first_offset <= first <= each.last_offset for each in aborted
            )
        found.append(BatchRange(first, first + delta, not is_hidden, position, end, count))
        position = end
    return found


def bytes_of(data: Bytes, batches: Iterable[BatchRange], acquired: Sequence[Acquired]) -> bytes:
    """The concatenated batches that contain acquired records."""
    parts: list[tuple[int, int]] = []
    index = 0
    for batch in batches:
        while index < len(acquired) and acquired[index].last_offset < batch.first_offset:
            index += 1
        if index == len(acquired):
            break
        if acquired[index].first_offset <= batch.last_offset:
            if parts and parts[-1][1] == batch.position:
                parts[-1] = (parts[-1][0], batch.end)
            else:
                parts.append((batch.position, batch.end))
    if len(parts) == 1:
        return bytes(data[parts[0][0] : parts[0][1]])
    return b"".join([data[begin:end] for begin, end in parts])
