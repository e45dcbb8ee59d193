"""Restores the window of the last five batches of each producer from the log.

A producer snapshot stores only a producer's last batch. Without the others, a log opened from a snapshot would take a
retried earlier batch for a gap, and reject a client that had several batches in flight when the node stopped. The
batches are still in the log, right before the snapshot's offset, and their headers are enough. The search is bounded;
beyond the bound only the last batch is recognised as a duplicate.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.kernel.units import KIB, MIB
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.producer_state import REMEMBERED_BATCHES, BatchTrace, ProducerStateEntry, ProducerStateManager
from millbeck.storage.segment import CorruptSegment, Segment

NEAR_BYTES = 64 * KIB
FAR_BYTES = 8 * MIB
FEW_BATCHES = 64
"""If the near range has fewer batches than this, they are large: then searching the far range is cheap and useful."""


def widen(state: ProducerStateManager, segments: Sequence[Segment], upto_offset: int) -> None:
    """Add the earlier batches that the log still has to the producers of ``state``, which is as of ``upto_offset``.

    Only header fields are read. Corruption ends the search; other code reports it.
    """
    if not state.producers:
        return
    found: dict[int, list[BatchTrace]] = {}
    if _collect(state, segments, upto_offset, NEAR_BYTES, found) < FEW_BATCHES:
        found.clear()
        _collect(state, segments, upto_offset, FAR_BYTES, found)
    for producer_id, traces in found.items():
        entry = state.producers[producer_id]
        batches = (*traces[-(REMEMBERED_BATCHES - len(entry.batches)) :], *entry.batches)
        state.producers[producer_id] = ProducerStateEntry(
            producer_id,
            entry.epoch,
            batches,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )


def _collect(
    state: ProducerStateManager,
    segments: Sequence[Segment],
    upto_offset: int,
    bytes_max: int,
    found: dict[int, list[BatchTrace]],
) -> int:
    """Collect the producers' batches in the last ``bytes_max`` bytes before an offset; returns the number of batches
    read.
    """
    ranges: list[tuple[Segment, int]] = []
    left = bytes_max
    for segment in reversed(segments):
        if segment.base_offset >= upto_offset:
            continue
        start = _position_before(segment, segment.size - left)
        ranges.append((segment, start))
        left -= segment.size - start
        if left <= 0:
            break
    count = 0
    try:
        for segment, start in reversed(ranges):
            for _, header in segment.headers(start):
                if header.base_offset >= upto_offset:
                    break
                count += 1
                entry = state.producers.get(header.producer_id)
                if (
                    entry is not None
                    and not header.is_control
                    and header.producer_epoch == entry.epoch
                    and header.last_offset < entry.last_offset
                    and len(entry.batches) < REMEMBERED_BATCHES
                ):
                    trace = (header.last_sequence, header.last_offset, header.last_offset_delta, header.max_timestamp)
                    found.setdefault(header.producer_id, []).append(trace)
    except CorruptSegment:
        found.clear()
    return count


def _position_before(segment: Segment, position: int) -> int:
    """The beginning of some batch at or before ``position``."""
    if position <= 0:
        return 0
    try:
        entry = segment.offset_index().entry_at_most(position)
    except CorruptIndex:
        return 0
    return 0 if entry is None else entry[1]
