"""Batches one after another, in chunks of any size."""

from __future__ import annotations

import pytest

from millbeck.records import batch as batches
from millbeck.records.record import Record
from millbeck.storage.compaction.job import SourceRemoved, SourceSegment, UncleanableLog
from millbeck.storage.compaction.source_reader import SourceReader


class Memory:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, size: int, position: int) -> bytes:
        return self.content[position : position + size]

    def close(self) -> None:
        return None


def batch(offset: int, size: int = 10) -> bytes:
    return batches.build([Record(-1, 5, b"k", b"v" * size)], base_offset=offset, producer_id=7, producer_epoch=1)


def reader_of(content: bytes, *, size: int | None = None, upper: int = 100, read_bytes: int = 200) -> SourceReader:
    source = SourceSegment(0, upper, "0.log", len(content) if size is None else size)
    return SourceReader(source, Memory(content), read_bytes, lambda size: None)


def read_all(reader: SourceReader) -> None:
    while reader.advance():
        pass


@pytest.mark.parametrize("read_bytes", [1, 61, 100, 5000])
def test_every_batch_is_met_whole(read_bytes: int) -> None:
    content = batch(0) + batch(3, size=500) + batch(9)
    reader = reader_of(content, read_bytes=read_bytes)
    met = []
    while reader.advance():
        assert (reader.producer_id, reader.producer_epoch, reader.record_count) == (7, 1, 1)
        met.append(bytes(reader.chunk[reader.start : reader.end]))
        assert reader.base_offset == reader.last_offset
    assert b"".join(met) == content
    assert len(met) == 3


@pytest.mark.parametrize(
    ("content", "position"),
    [
        (batch(5) + batch(5), len(batch(5))),
        (batch(100), 0),
        (batch(0) + b"\0" * 30, len(batch(0))),
        (batch(0) + b"\0" * 100, len(batch(0))),
        (batch(0)[:-1], 0),
        (batch(0)[:16] + b"\1" + batch(0)[17:], 0),
    ],
    ids=["offsets fall", "beyond the segment", "a few bytes more", "zeros", "cut short", "another format"],
)
def test_what_is_no_batch_is_uncleanable(content: bytes, position: int) -> None:
    with pytest.raises(UncleanableLog) as raised:
        read_all(reader_of(content))
    assert raised.value.position == position


def test_a_file_shorter_than_it_was_is_gone() -> None:
    with pytest.raises(SourceRemoved):
        reader_of(batch(0), size=1000, read_bytes=1000).advance()
