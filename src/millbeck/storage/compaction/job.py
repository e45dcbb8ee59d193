"""The job and the result of a compaction: plain values that can be sent to another process.

A job names its files and holds all else it needs from the log, as of the moment it was planned: the aborted
transactions and the last batch of each live producer. Neither can change below ``upper_offset``, where every
transaction is decided, except that a batch may cease to be a producer's last; it is then kept for one more round.
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
"""Called with the size in bytes of every read and write; may block, and may raise `CompactionCancelled` to stop the
job.
"""

OnProgress = Callable[["CompactionProgress"], None]


class CompactionError(Exception):
    """A compaction that failed; the log is unchanged."""


class UncleanableLog(CompactionError):
    """Data that cannot be compacted: corrupt, or larger than the offset map. A retry would not help."""

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(path, position, reason)
        self.path = path
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} cannot be compacted at position {self.position}: {self.reason}"


class SourceRemoved(CompactionError):
    """A source file was removed or truncated during compaction, by retention, truncation or deletion."""


class CompactionCancelled(CompactionError):
    """The throttle was asked to stop the job."""


class SourceFile(Protocol):
    """The interface of an open source file."""

    def read(self, size: int, position: int) -> bytes: ...

    def close(self) -> None: ...


class SourceSegment(NamedTuple):
    """One sealed segment; it ends at ``next_base_offset``, where the following segment begins."""

    base_offset: int
    next_base_offset: int
    path: str
    size: int


class LastProducerBatch(NamedTuple):
    """The epoch and last data offset of a live producer; `NO_OFFSET` when only a marker of it is known."""

    epoch: int
    last_data_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionJob:
    """One compaction round of one log. Immutable and picklable."""

    topic_partition: TopicPartition
    directory: str
    sources: tuple[SourceSegment, ...]
    """Every segment below ``upper_offset``, including the clean ones."""
    first_dirty_offset: int
    upper_offset: int
    """The end of the round: nothing at or above it is read or changed. It is the base offset of a segment."""
    aborted: tuple[AbortedTransaction, ...]
    producers: dict[int, LastProducerBatch]
    """The last batch of each live producer, by producer id."""
    now_ms: int
    delete_retention_ms: int
    segment_size_max: int
    index_size_max: int
    index_interval_bytes: int
    map_bytes_max: int
    """Memory for the offset map of this round (``log.cleaner.dedupe.buffer.size``)."""
    read_bytes: int = 1 * MIB
    """Read size (``log.cleaner.io.buffer.size``); a larger batch is read whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """A new segment whose ``.cleaned`` files are in the log's directory and synced."""

    base_offset: int
    source_count: int
    """The number of consecutive source segments that it replaces."""
    size: int
    max_timestamp: int
    max_timestamp_offset: int
    has_aborted: bool
    """Whether the new segment has a ``.txnindex`` file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionProgress:
    """Progress of a job in bytes of its sources; dirty bytes count twice, since they are read twice."""

    bytes_done: int
    bytes_total: int


@dataclass(slots=True, kw_only=True)
class CompactionStats:
    """Counters of one round, for metrics and the log."""

    bytes_mapped: int = 0
    """Bytes read by the first pass, which builds the offset map."""
    bytes_read: int = 0
    """Bytes read by the second pass, which rewrites the segments."""
    bytes_written: int = 0
    records_mapped: int = 0
    records_read: int = 0
    """Records examined one by one; batches above the offset map are copied as they are, and their records are not
    counted."""
    records_dropped: int = 0
    batches_read: int = 0
    batches_dropped: int = 0
    batches_rewritten: int = 0
    keyless_records: int = 0
    """Records dropped because they have no key: written before the topic was compacted."""
    map_entries: int = 0
    map_utilization: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionResult:
    """Result of a round: the segments that replace the first sources, in order, and the offset up to which the log is
    clean.

    A ``cleaned_offset`` below the job's ``upper_offset`` means that the keys did not fit; another round continues
    there.
    """

    segments: tuple[NewSegment, ...]
    cleaned_offset: int
    """The next round's first dirty offset."""
    statistics: CompactionStats = field(default_factory=CompactionStats)
