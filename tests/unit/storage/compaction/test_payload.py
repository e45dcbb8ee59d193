"""A batch's records, verified."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.records import batch as batches
from millbeck.records.compression import Codec
from millbeck.records.record import Record
from millbeck.storage.compaction.job import SourceSegment, UncleanableLog
from millbeck.storage.compaction.payload import records_of
from millbeck.storage.compaction.source_reader import SourceReader


class Memory:
    def __init__(self, content: bytes) -> None:
        self.content = content

    def read(self, size: int, position: int) -> bytes:
        return self.content[position : position + size]

    def close(self) -> None:
        return None


def at_first(content: bytes) -> SourceReader:
    source = SourceSegment(0, 100, "0.log", len(content))
    reader = SourceReader(source, Memory(content), 1000, lambda size: None)
    assert reader.advance()
    return reader


@pytest.mark.parametrize("codec", list(Codec))
def test_records_are_found_whatever_the_codec(codec: Codec) -> None:
    records = [Record(-1, 5, b"k", b"v" * 100), Record(-1, 6, b"k", None)]
    assert records_of(at_first(batches.build(records, codec=codec))) == batches.payload_of(batches.build(records))


@pytest.mark.parametrize("damage", [(70, b"\xff"), (21, b"\x7f")])
def test_a_wrong_checksum_is_uncleanable(damage: Any) -> None:
    content = bytearray(batches.build([Record(-1, 5, b"k", b"v" * 100)]))
    position, data = damage
    content[position : position + 1] = data
    with pytest.raises(UncleanableLog, match="checksum"):
        records_of(at_first(bytes(content)))


@pytest.mark.parametrize("attributes", [3, 7])
def test_what_the_codec_cannot_read_is_uncleanable(attributes: int) -> None:
    batch = batches.assemble(
        b"nonsense", record_count=1, last_offset_delta=0, base_timestamp=0, max_timestamp=0, attributes=attributes
    )
    with pytest.raises(UncleanableLog):
        records_of(at_first(batch))
