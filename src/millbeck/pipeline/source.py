"""Needs pyspark: ``format("millbeck")`` as a source, batch and streaming.

Spark creates a `MillbeckFormat` in a Python process beside the driver, asks its reader for partitions there, and
pickles the reader to the workers, which read one partition each and pass Arrow record batches to the JVM. A stream's
reader lives as long as its query; it keeps a connection, which is not pickled.

The only state between two runs of a query is in the offsets (`millbeck.pipeline.offsets`): to repeat a batch that was
planned but not finished, Spark only calls ``partitions(start, end)``, so deleted records and recreated topics are
detected there.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from millbeck.kernel.ids import ZERO_UUID, TopicPartition, Uuid
from millbeck.pipeline.errors import RecordsLost, TopicChanged
from millbeck.pipeline.offsets import Offsets
from millbeck.pipeline.planning import OffsetRange, limited, split
from millbeck.pipeline.short_errors import with_short_errors
from millbeck.pipeline.source_options import SourceOptions

if TYPE_CHECKING:
    from millbeck.pipeline.log_view import LogView

log = logging.getLogger(__name__)


class RangePartition(InputPartition):
    """The range of offsets that one task reads."""

    def __init__(self, found: OffsetRange) -> None:
        super().__init__(found)
        self.range = found


class IdlePartition(InputPartition):
    """One marker row, of a source without new records: it has a timestamp and no topic."""

    def __init__(self, at_ms: int) -> None:
        super().__init__(at_ms)
        self.at_ms = at_ms


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    @with_short_errors
    def partitions(self) -> Sequence[InputPartition]:
        view = _open_view(self._options)
        try:
            start = view.at(self._options.starting, is_start=True)
            end = view.at(self._options.ending, is_start=False)
            ranges = RangePlanner(self._options, view).ranges(start, end)
        finally:
            view.close()
        return [RangePartition(found) for found in ranges]

    @with_short_errors
    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self._options, partition)


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._view: LogView | None = None
        self._final: Offsets | None = None
        """The end offsets of a query with the trigger AvailableNow."""
        self._reported: dict[str, Any] | None = None
        self._waits_since_s: float | None = None
        self._quiet_since_s: float | None = None

    def __getstate__(self) -> Mapping[str, Any]:
        return {"_options": self._options}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(state["_options"])  # type: ignore[misc]

    @with_short_errors
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self._log.at(self._options.starting, is_start=True).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.offsets_per_trigger_max is not None:
            return ReadMaxRows(self._options.offsets_per_trigger_max)
        if self._options.offsets_per_trigger_min is not None:
            return ReadMinRows(self._options.offsets_per_trigger_min)
        return ReadAllAvailable()

    @with_short_errors
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._final = self._latest()

    @with_short_errors
    def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        before = Offsets.from_json(start)
        latest = self._latest() if self._final is None else self._final
        self._reported = latest.to_json()
        planner = RangePlanner(self._options, self._log)
        backlog = planner.backlog(before, latest)
        waiting = sum(max(0, end - begin) for begin, end in backlog.values())
        if waiting and self._holds_back(waiting, limit):
            return dict(start)
        self._waits_since_s = None
        idle_ms = before.idle_ms if waiting else self._idle_ms(before.idle_ms)
        if waiting:
            self._quiet_since_s = None
        if isinstance(limit, ReadMaxRows):
            stops = limited(backlog, limit.max_rows)
            return Offsets(stops, latest.topic_ids, idle_ms).to_json()
        ends = {partition: end for partition, (_, end) in backlog.items()}
        return Offsets(ends, latest.topic_ids, idle_ms).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """The end offsets as of the last check; the difference to the query's offsets is its lag."""
        return self._reported

    @with_short_errors
    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[InputPartition]:
        planner = RangePlanner(self._options, self._log)
        begin, stop = Offsets.from_json(start), Offsets.from_json(end)
        markers = [] if stop.idle_ms in (None, begin.idle_ms) else [IdlePartition(stop.idle_ms or 0)]
        return [*[RangePartition(found) for found in planner.ranges(begin, stop)], *markers]

    @with_short_errors
    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(self._options, partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """No effect: the checkpoint has the offsets. For lag in a consumer group see `progress_groups`."""

    def stop(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    @property
    def _log(self) -> LogView:
        if self._view is None:
            self._view = _open_view(self._options)
        return self._view

    def _latest(self) -> Offsets:
        topics = self._log.topics()
        return Offsets(self._log.latest(self._log.partitions(topics)), self._log.ids(topics))

    def _idle_ms(self, last_ms: int | None) -> int | None:
        """The event time of the marker row that is due, or that of the last one: a source without new records is
        taken to be at ``idleAfter`` before now, told once in that time.
        """
        after_s = self._options.idle_after_s
        if after_s is None or self._final is not None:
            return last_ms
        now_s = self._log.monotonic_s()
        if self._quiet_since_s is None:
            self._quiet_since_s = now_s
        if now_s - self._quiet_since_s < after_s:
            return last_ms
        self._quiet_since_s = now_s
        return max(last_ms or 0, self._log.wall_ms() - round(after_s * 1000))

    def _holds_back(self, waiting: int, limit: ReadLimit) -> bool:
        """Whether to wait for more records (``minOffsetsPerTrigger``, for at most ``maxTriggerDelay``)."""
        least = limit.min_rows if isinstance(limit, ReadMinRows) else self._options.offsets_per_trigger_min
        if least is None or waiting >= least or self._final is not None or isinstance(limit, ReadAllAvailable):
            return False
        now_s = self._log.monotonic_s()
        if self._waits_since_s is None:
            self._waits_since_s = now_s
        return now_s - self._waits_since_s < self._options.trigger_delay_max_s


def _open_view(options: SourceOptions) -> LogView:
    """Open the log view; imported lazily, because Spark plans in separate processes and only some of them need the
    client."""
    from millbeck.pipeline.log_view import LogView

    return LogView(options)


def _read(options: SourceOptions, partition: InputPartition) -> Iterator[Any]:
    """Read a range; imported lazily, because only tasks need the modules for reading."""
    from millbeck.pipeline.range_task import read_marker, read_range

    if isinstance(partition, IdlePartition):
        return read_marker(options, partition.at_ms)
    assert isinstance(partition, RangePartition)
    return read_range(options, partition.range)


class RangePlanner:
    """Plans the ranges between two offsets, and checks that the topics and offsets still exist."""

    def __init__(self, options: SourceOptions, view: LogView) -> None:
        self._options = options
        self._view = view

    def backlog(self, start: Offsets, end: Offsets) -> dict[TopicPartition, tuple[int, int]]:
        """Start and end offset of each partition; new partitions start at their first record."""
        begins: dict[TopicPartition, int] = {}
        fresh: list[TopicPartition] = []
        for partition in end:
            begin = start.get(partition)
            topic = partition.topic
            if begin is not None and not start.same_topic(topic, end.topic_ids.get(topic)):
                self._lost(
                    TopicChanged(
                        f"topic {topic} was deleted and created again since this query's checkpoint was written: "
                        "its offsets are not valid for the new topic. Use a new checkpoint, or failOnDataLoss=false to "
                        "read the new topic from its beginning"
                    )
                )
                begin = None
            if begin is None:
                fresh.append(partition)
            else:
                begins[partition] = begin
        if fresh:
            begins |= self._view.earliest(fresh)
        return {partition: (begins[partition], end.by_partition[partition]) for partition in end}

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        topics = self._view.topics()
        ids = self._view.ids(topics)
        there = set(self._view.partitions(topics))
        wanted: dict[TopicPartition, tuple[int, int]] = {}
        for partition, (begin, stop) in self.backlog(start, end).items():
            topic = partition.topic
            if not end.same_topic(topic, ids.get(topic)):
                self._lost(
                    TopicChanged(
                        f"topic {topic} was deleted and created again while a batch of it was planned or running. "
                        "Use a new checkpoint, or failOnDataLoss=false to skip the lost records"
                    )
                )
            elif partition not in there:
                self._lost(
                    RecordsLost(f"{partition} no longer exists, but offsets {begin} to {stop} of it were to be read")
                )
            elif begin < stop:
                wanted[partition] = (begin, stop)
            elif begin > stop:
                self._lost(
                    RecordsLost(
                        f"{partition} ends at {stop} now, but the query has read up to {begin} already: {_LOST}"
                    )
                )
        return split(
            self._readable(wanted, ids),
            count_min=self._options.partitions_min,
            rows_max=self._options.records_per_partition_max,
        )

    def _readable(self, wanted: Mapping[TopicPartition, tuple[int, int]], ids: Mapping[str, Uuid]) -> list[OffsetRange]:
        """The existing part of the ranges: the log start offset may have advanced."""
        found: list[OffsetRange] = []
        if not wanted:
            return found
        earliest = self._view.earliest(wanted)
        for partition, (begin, stop) in wanted.items():
            first = earliest[partition]
            if begin < first:
                self._lost(
                    RecordsLost(
                        f"{partition} begins at offset {first} now; offsets {begin} to {min(first, stop) - 1} were "
                        f"deleted before they were read: {_LOST}"
                    )
                )
            topic_id = ids.get(partition.topic, ZERO_UUID)
            found.append(OffsetRange(partition=partition, start=max(begin, first), end=stop, topic_id=topic_id))
        return [each for each in found if each.size > 0]

    def _lost(self, error: RecordsLost) -> None:
        if self._options.fails_on_data_loss:
            raise error
        log.warning("%s; continuing because failOnDataLoss is false", error)


_LOST: Final = (
    "retention or DeleteRecords removed them before they were read. Give the topic a longer retention, or set "
    "failOnDataLoss=false to continue without them"
)
