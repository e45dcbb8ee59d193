"""The file connectors, without a log: plans, lines, and what is in a file after an interrupted attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.files.sink import FileSink, Note, note_path
from millbeck.pipeline.connect.connectors.files.source import SHARE_BYTES, FileSource, lines_of
from millbeck.pipeline.connect.connectors.interface import Backlog, ConnectorContext, OffsetRange, SinkShare
from millbeck.pipeline.connect.errors import ConfigError, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.worker.runner import Positions

A, B = TopicPartition("a", 0), TopicPartition("b", 0)

LINES = {
    "unix": (b"one\ntwo\n", [b"one", b"two"]),
    "windows": (b"one\r\ntwo\r\n", [b"one", b"two"]),
    "old mac": (b"one\rtwo\rthree", [b"one", b"two"]),
    "no end yet": (b"one\ntw", [b"one"]),
    "half an end": (b"one\ntwo\r", [b"one"]),
    "empty lines": (b"\n\n\r\n", [b"", b"", b""]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("data", "lines"), LINES.values(), ids=LINES.keys())
def test_lines_end_as_in_java(data: bytes, lines: list[bytes]) -> None:
    found = list(lines_of(data))
    assert [line for line, _ in found] == lines
    whole = data[: sum(length for _, length in found)]
    assert [line for line, _ in lines_of(whole + b"x\n")][:-1] == lines or whole.endswith(b"\r")


def _source(path: Path) -> FileSource:
    source = FileSource({"file": str(path), "topic": "t", "batch.size": 1}, ConnectorContext(name="s"))
    source.start()
    return source


def _at(path: Path, position: int) -> Positions:
    return Positions([({"filename": str(path)}, {"position": position})])


def test_a_source_reads_on_from_its_position(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    source = _source(path)
    assert not source.plan(Positions(())).shares
    path.write_text("one\ntwo\nthr")
    (share,) = source.plan(_at(path, 4)).shares
    (record,) = list(source.read(share))
    assert (record.value, record.topic) == ("two", "t")
    assert (record.source_partition, record.source_offset) == ({"filename": str(path)}, {"position": 8})
    # A line without its end is not read again and again.
    (share,) = source.plan(_at(path, 8)).shares
    assert not list(source.read(share))
    assert not source.plan(_at(path, 8)).shares
    path.write_text("one\ntwo\nthree\n")
    (share,) = source.plan(_at(path, 8)).shares
    assert [record.value for record in source.read(share)] == ["three"]


def test_a_line_longer_than_a_share_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes(b"x" * (SHARE_BYTES + 10) + b"\nend\n")
    source = _source(path)
    plan = source.plan(Positions(()))
    (record,) = list(source.read(plan.shares[0]))
    assert len(record.value) == SHARE_BYTES + 10
    assert plan.again_s == 0


def test_a_truncated_file_is_an_outage_and_a_missing_setting_is_not(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\n")
    with pytest.raises(RetriableError, match="truncated"):
        _source(path).plan(_at(path, 5))
    with pytest.raises(ConfigError, match="file"):
        FileSource({"file": None, "topic": "t"}, ConnectorContext(name="s")).start()


class _Records:
    """The values of a share, of which some may be followed by the end of the process."""

    def __init__(self, values: Iterable[Any], dies: bool = False) -> None:
        self._values = values
        self._dies = dies

    def __iter__(self) -> Iterator[SinkRecord]:
        for value in self._values:
            yield SinkRecord(topic="a", value=value)
        if self._dies:
            raise KeyboardInterrupt

    def raw_batches(self) -> None:
        return None

    def reject(self, record: SinkRecord, error: Exception) -> None:
        raise error

    def stop_at(self, partition: TopicPartition, offset: int) -> None:
        raise AssertionError


def _share(start: int, end: int, partition: TopicPartition = A) -> SinkShare:
    return SinkShare(ranges=(OffsetRange(partition, start, end),))


def _sink(path: Path) -> FileSink:
    sink = FileSink({"file": str(path)}, ConnectorContext(name="s", tasks_max=4))
    sink.start()
    return sink


def test_a_sink_writes_a_line_for_each_record(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before\n")
    sink = _sink(path)
    sink.write(_share(0, 4), _Records(["one", 2, None, {"b": True}]))
    assert path.read_text() == "before\none\n2\nnull\n{b=true}\n"
    assert sink.positions({A: 0, B: 7}) == {A: 4, B: 7}


def test_an_interrupted_attempt_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    sink = _sink(path)
    sink.write(_share(0, 1), _Records(["one"]))
    with pytest.raises(KeyboardInterrupt):
        sink.write(_share(1, 900_000), _Records(["x" * 1000] * 2000, dies=True))
    assert path.stat().st_size > 4
    assert _sink(path).positions({A: 0}) == {A: 1}
    _sink(path).write(_share(1, 2), _Records(["two"]))
    assert path.read_text() == "one\ntwo\n"


def test_an_interrupted_first_attempt_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("mine\n")
    with pytest.raises(KeyboardInterrupt):
        _sink(path).write(_share(0, 9), _Records(["x" * 1000] * 2000, dies=True))
    _sink(path).write(_share(0, 1), _Records(["one"]))
    assert path.read_text() == "mine\none\n"


def test_a_share_that_another_attempt_has_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    _sink(path).write(_share(0, 1), _Records(["one"]))
    with pytest.raises(RetriableError, match="another attempt"):
        _sink(path).write(_share(0, 1), _Records(["one"]))
    assert path.read_text() == "one\n"


def test_lines_that_other_software_has_written_stay(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    _sink(path).write(_share(0, 1), _Records(["one"]))
    with path.open("a") as file:
        file.write("by another worker\n")
    # Its positions are in the consumer group.
    assert _sink(path).positions({A: 2}) == {A: 2}
    _sink(path).write(_share(2, 3), _Records(["three"]))
    assert path.read_text() == "one\nby another worker\nthree\n"


def test_altered_positions_count(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    _sink(path).write(_share(0, 2), _Records(["one", "two"]))
    _sink(path).alter_positions({A: 1})
    assert _sink(path).positions({A: 1}) == {A: 1}
    _sink(path).write(_share(1, 2), _Records(["two"]))
    assert path.read_text() == "one\ntwo\ntwo\n"


def test_one_task_writes_the_file(tmp_path: Path) -> None:
    plan = _sink(tmp_path / "out.txt").plan({A: Backlog(0, 5), B: Backlog(0, 3)})
    assert len(plan.shares) == 1


def test_what_is_wrong_with_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        _sink(tmp_path / "no" / "out.txt").write(_share(0, 1), _Records(["one"]))
    path = tmp_path / "out.txt"
    path.touch()
    Path(note_path(str(path))).write_text("{}")
    with pytest.raises(ConfigError, match="remove it"):
        Note.read(note_path(str(path)))
