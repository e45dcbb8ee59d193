"""The object-store sink: whole files, whose names and contents are a function of the records alone.

A share is read from a cut on, and ends at the last complete one (`SinkRecords.stop_at`): what is behind it is read
again when there is more. So nothing stays open between turns, and a repetition writes the same objects. Files of a cut
are written in the order of their offsets, so a reader that sees one sees all before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.connector_class import Delivery, SettingProblem
from millbeck.pipeline.connect.connectors.interface import (
    RECORDS_PER_SHARE_MAX,
    Backlog,
    ConnectorContext,
    OffsetRange,
    Plan,
    SinkConnector,
    SinkRecords,
    SinkReport,
    SinkShare,
    dealt_out,
)
from millbeck.pipeline.connect.connectors.objects.clock import now_ms
from millbeck.pipeline.connect.connectors.objects.cuts import Cut, CutRules
from millbeck.pipeline.connect.connectors.objects.formats import FileFormat, FileWriter, format_of
from millbeck.pipeline.connect.connectors.objects.partitioners import PARTITIONERS, Partitioner, extractor_of
from millbeck.pipeline.connect.connectors.objects.settings import OBJECT_SINK, is_wallclock, simple_name
from millbeck.pipeline.connect.connectors.objects.stores import ObjectFiles
from millbeck.pipeline.connect.errors import ConnectError, InvalidValue
from millbeck.pipeline.connect.model.record import SinkRecord

_GROWTH: Final = 10
"""An incomplete file is read again when there is a tenth more of it: so each record is read some ten times at most."""


class ObjectSink(SinkConnector):
    """Writes files."""

    declared = OBJECT_SINK

    def __init__(self, values: Mapping[str, Any], context: ConnectorContext) -> None:
        super().__init__(values, context)
        self._files: ObjectFiles | None = None
        self._format: FileFormat | None = None
        self._partitioner: Partitioner | None = None
        self._read_again_from: dict[TopicPartition, tuple[int, int]] = {}
        self._flushed_ms: int | None = None

    @property
    def delivery(self) -> Delivery:
        is_by_clock = self.values["rotate.schedule.interval.ms"] > 0 or is_wallclock(self.values)
        return Delivery.AT_LEAST_ONCE if is_by_clock else Delivery.DETERMINISTIC

    # on the worker

    def check(self) -> Iterable[SettingProblem]:
        try:
            problem = self.files().problem()
        except ConnectError as error:
            problem = str(error)
        except Exception as error:  # the store's own checks of its settings
            problem = f"{type(error).__name__}: {error}"[:500]
        if problem is not None:
            yield SettingProblem("store.url" if self.values["store.url"] else "s3.bucket.name", problem)

    def start(self) -> None:
        self._read_again_from.clear()
        self._flushed_ms = now_ms()

    def plan(self, backlog: Mapping[TopicPartition, Backlog]) -> Plan[SinkShare]:
        """Partitions that may have a whole file, or all that have anything when it is time to flush."""
        interval_ms = self.values["rotate.schedule.interval.ms"]
        flushes, again_s = False, None
        if interval_ms > 0:
            now = now_ms()
            last = now if self._flushed_ms is None else self._flushed_ms
            flushes = now // interval_ms > last // interval_ms
            if flushes:
                self._flushed_ms = now
            again_s = (interval_ms - now % interval_ms) / 1000
        ready = {partition: found for partition, found in backlog.items() if flushes or self._may_end(partition, found)}
        plan = dealt_out(ready, self.context.tasks_max)
        shares = tuple(
            SinkShare(
                ranges=tuple(self._extended(range_, backlog[range_.partition]) for range_ in share.ranges),
                payload="flush" if flushes else None,
                is_long=share.is_long,
            )
            for share in plan.shares
        )
        return Plan(shares=shares, again_s=again_s if plan.again_s is None else plan.again_s)

    def _extended(self, range_: OffsetRange, found: Backlog) -> OffsetRange:
        """A range that is long enough for a whole file: twice as long as one that was not."""
        position, seen = self._read_again_from.get(range_.partition, (found.position, found.position))
        length = self.values["flush.size"] if position != found.position else 2 * (seen - position)
        length = max(length, self.values["flush.size"])
        return range_._replace(end=min(found.end, max(range_.end, range_.start + length)))

    def _may_end(self, partition: TopicPartition, found: Backlog) -> bool:
        """Whether new records may complete a file."""
        position, seen = self._read_again_from.get(partition, (found.position, found.position))
        if position != found.position:
            return True
        if found.size >= min(self.values["flush.size"], RECORDS_PER_SHARE_MAX) and found.size > seen - position:
            return True
        # By its timestamp or its schema, any record may begin the next file.
        return found.end - seen >= max(1, (seen - position) // _GROWTH)

    def commit(self, reports: Sequence[SinkReport]) -> None:
        for report in reports:
            for range_ in report.share.ranges:
                written = report.positions.get(range_.partition, range_.end)
                self._read_again_from[range_.partition] = (written, max(written, range_.end))

    # in a task

    def files(self) -> ObjectFiles:
        if self._files is None:
            self._files = ObjectFiles(self.values)
        return self._files

    def write(self, share: SinkShare, records: SinkRecords) -> list[str]:
        if self._format is None or self._partitioner is None:
            self._format = format_of(self.values)
            self._partitioner = PARTITIONERS[simple_name(self.values["partitioner.class"])](self.values)
        writer = _ShareWriter(self.values, self.files(), self._format, self._partitioner, records)
        return writer.run(share)


class _File:
    """A file of a cut, and the offset of its first record."""

    def __init__(self, path: str, start: int, writer: FileWriter) -> None:
        self.path = path
        self.start = start
        self.writer = writer
        self.record_count = 0


class _ShareWriter:
    def __init__(
        self,
        values: Mapping[str, Any],
        files: ObjectFiles,
        file_format: FileFormat,
        partitioner: Partitioner,
        records: SinkRecords,
    ) -> None:
        self._values = values
        self._files = files
        self._format = file_format
        self._partitioner = partitioner
        self._records = records
        interval_ms = values["rotate.interval.ms"]
        moment = extractor_of(values) if interval_ms > 0 else lambda record: 0
        self._rules = CutRules(flush_size=values["flush.size"], interval_ms=interval_ms, moment=moment)
        self._ignores_null: bool = values["behavior.on.null.values"].lower() == "ignore"
        self._cuts: dict[TopicPartition, Cut[_File]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._written: list[str] = []

    def run(self, share: SinkShare) -> list[str]:
        for record in self._records:
            assert record.origin is not None
            try:
                self._add(record, record.origin)
            except InvalidValue as error:
                self._records.reject(record, error)
        for range_ in share.ranges:
            cut = self._cuts.get(range_.partition)
            if cut is None or cut.record_count == 0:
                continue  # nothing is open: all records up to the end are in whole files, or in none
            if share.payload == "flush" or cut.is_full(self._rules):
                self._complete(range_.partition, cut)
            else:
                self._records.stop_at(range_.partition, self._ends.get(range_.partition, range_.start))
        return self._written

    def _add(self, record: SinkRecord, origin: TopicPartition) -> None:
        if record.value is None:
            if self._ignores_null:
                return
            raise InvalidValue("the record has no value: set behavior.on.null.values=ignore to leave such records out")
        path = self._partitioner.path(record)
        cut = self._cuts.setdefault(origin, Cut())
        if cut.is_before(record, path, self._rules):
            self._complete(origin, cut)
            cut = self._cuts[origin] = Cut()
        place = f"{record.topic}\0{path}"
        file = cut.files.get(place)
        if file is None:
            name = self._name(record, origin)
            file = _File(self._files.path(record.topic or "", path, name), record.offset,
                         self._format.writer(record.value_schema, name))  # fmt: skip
        file.writer.add(record)
        cut.files[place] = file
        cut.count(record, path, self._rules)

    def _name(self, record: SinkRecord, origin: TopicPartition) -> str:
        delimiter, width = self._values["file.delim"], self._values["filename.offset.zero.pad.width"]
        offset = str(record.offset).zfill(width)
        return f"{record.topic}{delimiter}{origin.partition}{delimiter}{offset}{self._format.extension}"

    def _complete(self, partition: TopicPartition, cut: Cut[_File]) -> None:
        for file in sorted(cut.files.values(), key=lambda each: each.start):
            self._files.put(file.path, file.writer.content())
            self._written.append(file.path)
        self._ends[partition] = cut.end
        self._cuts[partition] = Cut()
