"""When a copy of a table reads what was added, and when it begins anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline import table_copy
from millbeck.pipeline.errors import RecordsLost
from millbeck.pipeline.planning import OffsetRange
from millbeck.pipeline.source_options import SourceOptions, parse_source_options
from millbeck.pipeline.table_copy import TableCopy

PARTITION = TopicPartition("t", 0)
DAY_MS = 24 * 3600 * 1000


class FakeLog:
    """A topic of one partition, whose records are key and value, and the ranges that were read of it."""

    def __init__(self) -> None:
        self.records: list[tuple[bytes, bytes | None]] = []
        self.first = 0
        self.topic_id = b"1" * 16
        self.now_ms = 0
        self.reads: list[tuple[int, int]] = []

    def topics(self) -> dict[str, None]:
        return {"t": None}

    def ids(self, topics: object) -> dict[str, bytes]:
        return {"t": self.topic_id}

    def partitions(self, topics: object) -> list[TopicPartition]:
        return [PARTITION]

    def latest(self, partitions: object) -> dict[TopicPartition, int]:
        return {PARTITION: len(self.records)}

    def earliest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {PARTITION: self.first}

    def wall_ms(self) -> int:
        return self.now_ms

    def close(self) -> None: ...

    def read(self, options: SourceOptions, wanted: OffsetRange) -> Iterator[Any]:
        self.reads.append((wanted.start, wanted.end))
        if wanted.start < self.first:
            raise RecordsLost("gone")
        rows = list(enumerate(self.records))[wanted.start : wanted.end]
        keys, values = ([record[part] for _, record in rows] for part in (0, 1))
        times = pa.array([0] * len(rows), type=pa.timestamp("us", tz="UTC"))
        columns = {"key": keys, "value": values, "offset": [offset for offset, _ in rows]}
        arrays = [pa.array(columns[name], type=pa.int64() if name == "offset" else pa.binary()) for name in columns]
        yield pa.RecordBatch.from_arrays([*arrays, times], names=[*columns, "timestamp"])


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> FakeLog:
    log = FakeLog()
    monkeypatch.setattr(table_copy, "LogView", lambda options: log)
    monkeypatch.setattr(table_copy, "read_range", log.read)
    monkeypatch.setattr(table_copy, "tombstones_ms", lambda settings, topic: DAY_MS)
    return log


@pytest.fixture
def copy(log: FakeLog, tmp_path: Path) -> Iterator[TableCopy]:
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    copy = TableCopy(parse_source_options(given, is_streaming=False), str(tmp_path / "rows"))
    yield copy
    copy.close()


def found(copy: TableCopy, batch: str | None) -> dict[bytes, bytes]:
    return {key: row.value for key, row in copy.rows_of([b"a", b"b", b"c"], batch).items()}


def test_a_batch_reads_what_was_added_since_the_last_one(log: FakeLog, copy: TableCopy) -> None:
    log.records += [(b"a", b"1"), (b"b", b"2")]
    assert found(copy, "run 0") == {b"a": b"1", b"b": b"2"}
    log.records += [(b"a", b"3"), (b"b", None), (b"c", b"4")]
    assert found(copy, "run 0") == {b"a": b"1", b"b": b"2"}, "the same batch sees the same rows"
    assert found(copy, "run 1") == {b"a": b"3", b"c": b"4"}
    assert found(copy, "run 2") == {b"a": b"3", b"c": b"4"}
    assert log.reads == [(0, 2), (2, 5)]
    log.records.append((b"c", None))
    assert found(copy, None) == {b"a": b"3"}, "without a name each look is a batch"


def test_processes_of_a_machine_read_once_for_a_batch(log: FakeLog, copy: TableCopy, tmp_path: Path) -> None:
    log.records.append((b"a", b"1"))
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "t"}
    other = TableCopy(parse_source_options(given, is_streaming=False), str(tmp_path / "rows"))
    assert found(copy, "run 0") == {b"a": b"1"}
    log.records.append((b"a", b"2"))
    assert found(other, "run 0") == {b"a": b"1"}
    assert found(other, "run 1") == found(copy, "run 1") == {b"a": b"2"}
    assert log.reads == [(0, 1), (1, 2)]
    other.close()


def test_a_copy_begins_anew_when_it_may_have_missed_something(log: FakeLog, copy: TableCopy) -> None:
    log.records += [(b"a", b"1"), (b"b", b"2")]
    found(copy, "run 0")
    log.now_ms += DAY_MS // 2
    found(copy, "run 1")
    assert log.reads == [(0, 2)], "tombstones of that time are still there"
    log.now_ms += DAY_MS // 2 + 1
    # A tombstone of b has come and gone, with the record before it.
    log.records[1] = (b"a", b"1")
    assert found(copy, "run 2") == {b"a": b"1"}
    log.records[:] = [(b"c", b"3"), (b"c", b"4")]
    log.topic_id = b"2" * 16
    assert found(copy, "run 3") == {b"c": b"4"}
    log.records[:] = [(b"a", b"5")]
    assert found(copy, "run 4") == {b"a": b"5"}, "the topic is shorter than what was read of it"
    log.records += [(b"b", b"6"), (b"b", b"7"), (b"c", b"8")]
    log.first = 2
    assert found(copy, "run 5") == {b"b": b"7", b"c": b"8"}, "records were deleted before they were read"
    assert log.reads == [(0, 2), (0, 2), (0, 2), (0, 1), (1, 4), (2, 4)]
