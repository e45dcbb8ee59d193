"""What a compaction is asked to do and what it answers: plain values, which may cross to another process.

A job names files and holds everything else that it needs to know of the log, as of the moment it was planned: which
transactions were aborted and which batch is the last one of each live producer. Neither can change for what lies below
``upper_offset``, all of which is decided, except that a batch may cease to be a producer's last; it is kept once more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import MIB
from millbeck.storage.txn_index import AbortedTransaction

NO_OFFSET = -1

Throttle = Callable[[int], None]
"""Told the bytes of every read and write; may wait, and may raise `CompactionCancelled` to end the work."""

OnProgress = Callable[["Progress"], None]


class CompactionError(Exception):
    """A compaction that did not come to its end; the log is as it was."""


class Uncleanable(CompactionError):
    """Data that cannot be compacted: damaged, or larger than there is room for. Trying again would not help."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} cannot be compacted at position {self.position}: {self.reason}"


class SourceGone(CompactionError):
    """A source file was removed or cut meanwhile, by retention, truncation or deletion."""


class CompactionCancelled(CompactionError):
    """The throttle was told to end the work."""


class SourceFile(Protocol):
    """What a job needs of an open source."""

    def read(self, size: int, position: int) -> bytes: ...

    def close(self) -> None: ...


class Source(NamedTuple):
    """One sealed segment as it is; it reaches to ``next_base_offset``, where the following segment begins."""

    base_offset: int
    next_base_offset: int
    path: str
    size: int


class LastOfProducer(NamedTuple):
    """Where a live producer's last data batch ends; `NO_OFFSET` when only its marker is known."""

    epoch: int
    last_data_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """One round over one log. Immutable and picklable."""

    topic_partition: TopicPartition
    directory: str
    sources: tuple[Source, ...]
    """Every segment below ``upper_offset``, the clean ones too."""
    first_dirty_offset: int
    upper_offset: int
    """Nothing at or beyond it is read or changed; a segment begins there."""
    aborted: tuple[AbortedTransaction, ...]
    producers: dict[int, LastOfProducer]
    """By producer id."""
    now_ms: int
    delete_retention_ms: int
    segment_size_max: int
    index_size_max: int
    index_interval_bytes: int
    map_bytes_max: int
    """Memory for the keys of this round (``log.cleaner.dedupe.buffer.size``)."""
    read_bytes: int = 1 * MIB
    """How much is read at a time (``log.cleaner.io.buffer.size``); a larger batch is read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A segment whose files lie in the log's directory under their ``.cleaned`` names, synced."""

    base_offset: int
    source_count: int
    """It stands for so many of the job's sources, in order."""
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    has_aborted: bool
    """Whether there is a ``.txnindex`` file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is. Bytes are those of its sources: dirty ones count twice, since they are read twice."""

    bytes_done: int
    bytes_total: int


@dataclass(slots=True, kw_only=True)
class Statistics:
    """What a round did, for metrics and the log."""

    bytes_mapped: int = 0
    """Read by the first pass, which gathers keys."""
    bytes_read: int = 0
    """Read by the second pass, which rewrites."""
    bytes_written: int = 0
    records_mapped: int = 0
    records_read: int = 0
    """Records that were looked at one by one; those of batches beyond the map are not."""
    records_dropped: int = 0
    batches_read: int = 0
    batches_dropped: int = 0
    batches_rewritten: int = 0
    keyless_records: int = 0
    """Dropped for want of a key: data from before the topic was compacted."""
    map_entries: int = 0
    map_utilization: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a round made: segments that replace the first sources, in order, and how far the log is clean then.

    When ``cleaned_offset`` is below the job's ``upper_offset`` the keys did not fit; another round goes on from there.
    """

    segments: tuple[NewSegment, ...]
    cleaned_offset: int
    """The next round's first dirty offset."""
    statistics: Statistics = field(default_factory=Statistics)
