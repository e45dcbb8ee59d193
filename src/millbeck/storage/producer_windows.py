"""The last five batches of each producer, found again in the log.

A producer snapshot keeps only a producer's last batch, so a log that was opened from one would take the repetition of
an earlier batch for a gap: a client that had several batches in flight when the node stopped would be refused. The
batches are still in the log, right before the snapshot's offset, and their headers are enough. How far to look back is
bounded; beyond it, only the last batch is recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.kernel.units import KIB, MIB
from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.producer_state import REMEMBERED_BATCHES, BatchTrace, ProducerEntry, ProducerState
from millbeck.storage.segment import CorruptSegment, Segment

NEAR_BYTES = 64 * KIB
FAR_BYTES = 8 * MIB
FEW_BATCHES = 64
"""As few in the near range means that they are large: then it is worth, and cheap, to look further."""


def widen(state: ProducerState, segments: Sequence[Segment], upto_offset: int) -> None:
    """Give the producers of ``state``, as of ``upto_offset``, the earlier batches that the log still has of them.

    Only header fields are read. Damage ends the search; it is not this module's to report.
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
        state.producers[producer_id] = ProducerEntry(
            producer_id,
            entry.epoch,
            batches,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )


def _collect(
    state: ProducerState,
    segments: Sequence[Segment],
    upto_offset: int,
    bytes_max: int,
    found: dict[int, list[BatchTrace]],
) -> int:
    """Note the producers' batches in the last ``bytes_max`` bytes before an offset; how many batches there were."""
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
    """Where some batch begins, at or before ``position``."""
    if position <= 0:
        return 0
    try:
        entry = segment.offset_index().entry_at_most(position)
    except CorruptIndex:
        return 0
    return 0 if entry is None else entry[1]
