"""Which sources become one new segment.

Compaction shrinks segments, so neighbours are written together as long as what they hold now, logs and indexes, would
fit one segment, and their offsets can be expressed relative to the first one's base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millbeck.storage.compaction.job import Source
from millbeck.storage.offset_index import RELATIVE_OFFSET_MAX


def group(
    sources: Sequence[Source], *, size_max: int, index_size_max: int, index_sizes: Callable[[Source], tuple[int, int]]
) -> list[list[Source]]:
    """Runs of neighbouring sources, in order; a source that exceeds a limit by itself is a group of its own.

    ``index_sizes`` tells how long a source's offset index and time index are.
    """
    groups: list[list[Source]] = []
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
