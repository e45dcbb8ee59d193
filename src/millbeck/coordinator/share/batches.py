"""Merges state batches: sorted and without overlaps, newer state over older.

For each offset the latest state wins. Adjacent batches with the same state are joined, and batches below the start
offset are dropped, since all records there are final.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from millbeck.coordinator.share.states import StateBatch


def combine(known: Sequence[StateBatch], newer: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Apply each batch of ``newer`` in order to ``known``, from ``start_offset`` on.

    ``known`` must be sorted and free of overlaps; ``newer`` need not be.
    """
    result = list(known)
    for batch in newer:
        result = _overlay(result, batch)
    return _joined(_from_offset(result, start_offset))


def _overlay(known: list[StateBatch], batch: StateBatch) -> list[StateBatch]:
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
