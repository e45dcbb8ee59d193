"""Writing of staged batches that need new segments.

A segment is full when the next batch would exceed ``segment.bytes``, when an index is full, when the batch's offset
can no longer be expressed relative to the base offset, or when the batch is ``segment.ms`` newer than the segment's
first. All bytes are written first, into as many files as needed, and the log's state is updated only when all of that
succeeded. So a failure in between changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.segment import Segment
from millbeck.storage.staging import Staged

if TYPE_CHECKING:
    from millbeck.storage.log_state import LogState

Group = tuple[int | None, list[Staged]]
"""Batches of one segment: with the base offset of a new segment, or None for the active one."""


def write(log: LogState, staged: list[Staged]) -> None:
    """Write and commit. Raises `KafkaStorageError` after a complete rollback."""
    groups = _plan(log, staged)
    created: list[Segment] = []
    is_open = False
    try:
        for base_offset, group in groups:
            segment = log.active
            if base_offset is not None:
                segment = log.create_segment(base_offset)
                created.append(segment)
                segment.prepare_file(log.config)
            file = segment.handle.get()
            is_open = True
            file.write([part for one in group for part in one.buffers], segment.size)
    except OSError as error:
        log.rollback_write(created, error, must_cut=is_open)
    # The snapshot at a roll has the producer state at that offset, so the state is applied segment by segment.
    log.producer_state.drop()
    for base_offset, group in groups:
        if base_offset is not None:
            log.switch_to(created.pop(0))
        for one in group:
            _replay(log, one)
        log.commit(group)


def _plan(log: LogState, staged: list[Staged]) -> list[Group]:
    active = log.active
    groups: list[Group] = []
    group: list[Staged] = []
    base_offset: int | None = None
    segment_base, size, next_offset = active.base_offset, active.size, log.end_offset
    first_timestamp = -1
    for one in staged:
        must_roll = size + one.size_bytes > log.segment_bytes or one.last_offset - segment_base > RELATIVE_OFFSET_MAX
        if not must_roll and base_offset is None and active.size:
            must_roll = active.is_full or active.is_time_to_roll(one.max_timestamp, log.now_ms, log.segment_ms)
        elif not must_roll and size and first_timestamp >= 0:
            must_roll = one.max_timestamp - first_timestamp > log.segment_ms
        if must_roll:
            if group:
                groups.append((base_offset, group))
            overflows = one.last_offset - next_offset > RELATIVE_OFFSET_MAX
            base_offset = segment_base = one.first_offset if overflows else next_offset
            group, size = [], 0
        if not size:
            first_timestamp = one.max_timestamp
        group.append(one)
        size += one.size_bytes
        next_offset = one.last_offset + 1
    groups.append((base_offset, group))
    return groups


def _replay(log: LogState, one: Staged) -> None:
    header = one.header
    if one.marker is not None:
        log.producer_state.stage_marker(
            header.producer_id,
            header.producer_epoch,
            one.marker,
            one.first_offset,
            header.max_timestamp,
            AppendOrigin.REPLICATION,
        )
    elif header.producer_id >= 0 and not header.is_control:
        log.producer_state.stage_data(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            header.last_offset_delta,
            one.first_offset,
            header.max_timestamp,
            header.is_transactional,
            AppendOrigin.REPLICATION,
        )
