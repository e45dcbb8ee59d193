"""Grouping of source segments into new segments.

Compaction shrinks segments, so neighbouring ones are merged as long as their present logs and indexes together fit one
segment, and their offsets can be expressed relative to the base offset of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millbeck.storage.compaction.job import SourceSegment
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX


def group(
    sources: Sequence[SourceSegment],
    *,
    size_max: int,
    index_size_max: int,
    index_sizes: Callable[[SourceSegment], tuple[int, int]],
) -> list[list[SourceSegment]]:
    """Groups of neighbouring sources, in order; a source that exceeds a limit by itself forms a group alone.

    ``index_sizes`` returns the sizes of a source's offset index and time index.
    """
    groups: list[list[SourceSegment]] = []
    size = index_size = time_index_size = 0
    for source in sources:
        own_sizes = index_sizes(source)
        size += source.size
        index_size += own_sizes[0]
        time_index_size += own_sizes[1]
        fits = (
            groups
            and size <= size_max
            and index_size <= index_size_max
            and time_index_size <= index_size_max
            and source.next_base_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if fits:
            groups[-1].append(source)
        else:
            groups.append([source])
            size, (index_size, time_index_size) = source.size, own_sizes
    return groups
