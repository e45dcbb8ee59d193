"""What is read between two offsets, and what becomes of data and topics that are gone."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any, cast

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

from millbeck.client.metadata import PartitionMetadata, TopicView
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import RecordsLost, TopicChanged
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.offsets import Offsets
from millbeck.pipeline.range_task import read_marker
from millbeck.pipeline.source import BatchReader, IdlePartition, RangePartition, StreamReader
from millbeck.pipeline.source_options import Position, SourceOptions, parse_source_options

OLD, NEW = bytes(15) + b"1", bytes(15) + b"2"
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class FakeView:
    """A cluster with one topic, as a driver sees it."""

    ids = staticmethod(LogView.ids)

    def __init__(self, count: int = 1, topic_id: bytes = OLD) -> None:
        self.topic_id = topic_id
        self.count = count
        self.first = {A0: 0, A1: 0}
        self.end = {A0: 100, A1: 40}
        self.now_s = 0.0
        self.wall_start_ms = 1_700_000_000_000
        self.is_closed = False

    def topics(self) -> dict[str, TopicView]:
        return {
            "a": TopicView(
                "a", self.topic_id, False, {number: PartitionMetadata(number) for number in range(self.count)}
            )
        }

    def partitions(self, topics: dict[str, TopicView]) -> list[TopicPartition]:
        return [TopicPartition("a", number) for number in topics["a"].partitions]

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.first[partition] for partition in partitions}

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {partition: self.end[partition] for partition in partitions}

    def at(self, position: Position, *, is_start: bool) -> Offsets:
        found = self.earliest if is_start else self.latest
        return Offsets(found(self.partitions(self.topics())), {"a": self.topic_id})

    def monotonic_s(self) -> float:
        return self.now_s

    def wall_ms(self) -> int:
        return self.wall_start_ms + round(self.now_s * 1000)

    def close(self) -> None:
        self.is_closed = True


def options_of(**options: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a", **options}
    return parse_source_options(given, is_streaming=True)


def reader_of(view: FakeView, **options: str) -> StreamReader:
    reader = StreamReader(options_of(**options))
    reader._view = cast("LogView", view)
    return reader


def offsets(topic_id: bytes = OLD, **by_number: int) -> dict[str, Any]:
    found = {TopicPartition("a", int(number[1:])): offset for number, offset in by_number.items()}
    return Offsets(found, {"a": topic_id}).to_json()


def spans(reader: StreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[tuple[str, int, int]]:
    found = [cast("RangePartition", partition).range for partition in reader.partitions(start, end)]
    assert all(each.topic_id == OLD for each in found)
    return [(str(each.partition), each.start, each.end) for each in found]


def test_a_stream_goes_from_offset_to_offset() -> None:
    view = FakeView()
    reader = reader_of(view)
    start = reader.initialOffset()
    assert start == offsets(p0=0)
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert end == offsets(p0=100)
    assert spans(reader, start, end) == [("a-0", 0, 100)]
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert spans(reader, end, end) == []
    assert reader.reportLatestOffset() == end


def test_a_limit_holds_and_the_lag_is_still_told() -> None:
    reader = reader_of(FakeView(2), maxOffsetsPerTrigger="14")
    assert reader.getDefaultReadLimit() == ReadMaxRows(14)
    assert reader.latestOffset(offsets(p0=0, p1=0), ReadMaxRows(14)) == offsets(p0=10, p1=4)
    assert reader.reportLatestOffset() == offsets(p0=100, p1=40)
    assert reader.latestOffset(offsets(p0=0, p1=0), ReadAllAvailable()) == offsets(p0=100, p1=40)


def test_a_source_without_new_records_tells_the_time() -> None:
    view = FakeView()
    reader = reader_of(view, idleAfter="10s")
    end = reader.latestOffset(offsets(p0=0), ReadAllAvailable())
    assert reader.latestOffset(end, ReadAllAvailable()) == end == offsets(p0=100)
    view.now_s = 9.9
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    view.now_s = 10.0
    idle = reader.latestOffset(end, ReadAllAvailable())
    assert idle == {**end, "$idle": 1_700_000_000_000}
    assert Offsets.from_json(idle).to_json() == idle
    markers = [partition for partition in reader.partitions(end, idle) if isinstance(partition, IdlePartition)]
    assert [marker.at_ms for marker in markers] == [1_700_000_000_000]
    view.now_s = 19.9
    assert reader.latestOffset(idle, ReadAllAvailable()) == idle, "once in that time"
    view.now_s = 20.0
    view.end[A0] = 101
    more = reader.latestOffset(idle, ReadAllAvailable())
    assert more == {**offsets(p0=101), "$idle": 1_700_000_000_000}, "there are records again"
    assert spans(reader, idle, more) == [("a-0", 100, 101)]
    view.now_s = 21.0
    assert reader.latestOffset(more, ReadAllAvailable()) == more
    view.now_s = 31.0
    view.wall_start_ms -= 3_600_000
    assert reader.latestOffset(more, ReadAllAvailable()) == more, "a clock that was set back takes nothing back"


def test_a_marker_row_has_the_columns_of_a_record() -> None:
    pytest.importorskip("pyarrow")
    for headers in (False, True):
        [batch] = read_marker(options_of(includeHeaders=str(headers)), 1_700_000_000_000)
        [row] = batch.to_pylist()
        assert [name for name, value in row.items() if value is not None] == ["timestamp"]
        assert row["timestamp"].timestamp() == 1_700_000_000


def test_a_batch_waits_for_enough_but_not_for_ever() -> None:
    view = FakeView()
    reader = reader_of(view, minOffsetsPerTrigger="50", maxTriggerDelay="10s")
    limit = reader.getDefaultReadLimit()
    assert limit == ReadMinRows(50)
    start = offsets(p0=70)
    assert reader.latestOffset(start, limit) == start
    view.now_s = 9.0
    assert reader.latestOffset(start, limit) == start
    view.now_s = 10.0
    assert reader.latestOffset(start, limit) == offsets(p0=100)
    assert reader.latestOffset(offsets(p0=20), limit) == offsets(p0=100)


def test_available_now_ends_where_the_log_ended_when_it_began() -> None:
    view = FakeView()
    reader = reader_of(view)
    reader.prepareForTriggerAvailableNow()
    view.end[A0] = 500
    assert reader.latestOffset(offsets(p0=0), ReadAllAvailable()) == offsets(p0=100)


def test_a_new_partition_is_read_from_its_first_record() -> None:
    view = FakeView(2)
    view.first[A1] = 7
    reader = reader_of(view)
    end = reader.latestOffset(offsets(p0=90), ReadAllAvailable())
    assert spans(reader, offsets(p0=90), end) == [("a-0", 90, 100), ("a-1", 7, 40)]


def test_ranges_are_cut_as_asked() -> None:
    reader = reader_of(FakeView(), minPartitions="4")
    assert len(spans(reader, offsets(p0=0), offsets(p0=100))) == 4
    reader = reader_of(FakeView(), maxRecordsPerPartition="50")
    assert spans(reader, offsets(p0=0), offsets(p0=100)) == [("a-0", 0, 50), ("a-0", 50, 100)]


def test_deleted_offsets_fail_the_query_or_are_left_out() -> None:
    view = FakeView()
    view.first[A0] = 30
    with pytest.raises(RecordsLost, match="a-0 begins at offset 30 now; offsets 10 to 29 were deleted"):
        reader_of(view).partitions(offsets(p0=10), offsets(p0=100))
    assert spans(reader_of(view, failOnDataLoss="false"), offsets(p0=10), offsets(p0=100)) == [("a-0", 30, 100)]
    view.first[A0] = 100
    assert spans(reader_of(view, failOnDataLoss="false"), offsets(p0=10), offsets(p0=100)) == []


def test_a_log_that_went_back_fails_the_query() -> None:
    with pytest.raises(RecordsLost, match="ends at 50 now, but the query has read up to 100"):
        reader_of(FakeView()).partitions(offsets(p0=100), offsets(p0=50))


def test_a_partition_that_is_gone_fails_the_query_or_is_left_out() -> None:
    with pytest.raises(RecordsLost, match="a-1 no longer exists"):
        reader_of(FakeView(1)).partitions(offsets(p0=0, p1=0), offsets(p0=9, p1=9))
    reader = reader_of(FakeView(1), failOnDataLoss="false")
    assert spans(reader, offsets(p0=0, p1=0), offsets(p0=9, p1=9)) == [("a-0", 0, 9)]


def test_a_topic_created_anew_since_the_checkpoint_is_noticed() -> None:
    view = FakeView(topic_id=NEW)
    reader = reader_of(view)
    with pytest.raises(TopicChanged, match="deleted and created again since this query's checkpoint"):
        reader.latestOffset(offsets(OLD, p0=60), ReadAllAvailable())
    with pytest.raises(TopicChanged, match="while a batch of it was planned"):
        reader.partitions(offsets(OLD, p0=0), offsets(OLD, p0=60))
    tolerant = reader_of(view, failOnDataLoss="false")
    assert tolerant.latestOffset(offsets(OLD, p0=60), ReadAllAvailable()) == offsets(NEW, p0=100)
    found = tolerant.partitions(offsets(OLD, p0=60), offsets(NEW, p0=100))
    assert [cast("RangePartition", each).range.start for each in found] == [0]


def test_a_batch_reads_from_start_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    view = FakeView(2)

    monkeypatch.setattr("millbeck.pipeline.log_view.LogView", lambda options: view)
    found = BatchReader(options_of()).partitions()
    assert [(cast("RangePartition", each).range.start, cast("RangePartition", each).range.end) for each in found] == [
        (0, 100),
        (0, 40),
    ]
    assert view.is_closed


def test_a_reader_goes_to_workers_without_its_connection() -> None:
    view = FakeView()
    reader = reader_of(view)
    copy = pickle.loads(pickle.dumps(reader))
    assert copy._view is None
    assert copy._options == reader._options
    reader.commit(offsets(p0=1))
    reader.stop()
    assert view.is_closed
