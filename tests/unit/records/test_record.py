"""What `record` offers is the kernels' own class, not a copy of it."""

from __future__ import annotations

from millbeck.records import batch, record
from millbeck.records.native.record import Record


def test_a_record_that_was_read_is_a_record() -> None:
    (read,) = batch.records_of(batch.build([record.Record(record.UNASSIGNED, record.NO_TIMESTAMP, None, b"v")]))
    assert type(read) is record.Record is Record
    assert (read.offset, read.timestamp) == (0, -1)
