"""Putting what is newly known of some offsets on top of what was known: sorted state batches without overlaps.

What was said last counts, offset by offset. Neighbours that say the same become one, and what lies below the start
offset is dropped, since everything there is final.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millbeck.coordinator.share.states import StateBatch


def combine(known: Sequence[StateBatch], newer: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """``known`` with each batch of ``newer`` laid over it in order, from ``start_offset`` on.

    ``known`` must be sorted and free of overlaps; ``newer`` may be neither."""
    result = list(known)
    for batch in newer:
        result = _lay_over(result, batch)
    return _joined(_from_offset(result, start_offset))


def _lay_over(known: list[StateBatch], batch: StateBatch) -> list[StateBatch]:
    first, last = batch.first_offset, batch.last_offset
    if not known or known[-1].last_offset < first:
        known.append(batch)
        return known
    result: list[StateBatch] = []
    is_placed = False
    for old in known:
        if old.last_offset < first:
            result.append(old)
            continue
        if old.first_offset < first:
            result.append(old._replace(last_offset=first - 1))
        if not is_placed:
            result.append(batch)
            is_placed = True
        if old.last_offset > last:
            result.append(old._replace(first_offset=max(old.first_offset, last + 1)))
    if not is_placed:
        result.append(batch)
    return result


def _from_offset(batches: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    return [
        batch if batch.first_offset >= start_offset else batch._replace(first_offset=start_offset)
        for batch in batches
        if batch.last_offset >= start_offset
    ]


def _joined(batches: Iterable[StateBatch]) -> list[StateBatch]:
    result: list[StateBatch] = []
    for batch in batches:
        if result:
            before = result[-1]
            if before.last_offset + 1 == batch.first_offset and before[2:] == batch[2:]:
                result[-1] = before._replace(last_offset=batch.last_offset)
                continue
        result.append(batch)
    return result
