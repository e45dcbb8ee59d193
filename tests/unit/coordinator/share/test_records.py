from __future__ import annotations

import pytest

from millbeck.coordinator.share import records
from millbeck.coordinator.share.records import (
    RecordedBatch,
    ShareRecord,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from millbeck.coordinator.share.states import StateBatch
from millbeck.wire.errors import DecodeError

TOPIC_ID = bytes(range(16))
SNAPSHOT = ShareRecord(
    ShareSnapshotKey("group", TOPIC_ID, 3),
    ShareSnapshotValue(1, 2, 3, 40, 50, 60, [RecordedBatch(40, 44, 2, 1)], 5),
)
UPDATE = ShareRecord(ShareUpdateKey("group", TOPIC_ID, 3), ShareUpdateValue(1, 3, -1, [RecordedBatch(45, 45, 4, 5)]))


@pytest.mark.parametrize("record", [SNAPSHOT, UPDATE, ShareRecord(ShareSnapshotKey("g", TOPIC_ID, 0), None)])
def test_a_record_comes_back_as_it_went(record: ShareRecord) -> None:
    assert records.decode(*records.encode(record)) == record


def test_the_bytes_are_those_of_kafka() -> None:
    key, value = records.encode(SNAPSHOT)
    assert key.hex() == "0000" + "0005" + b"group".hex() + TOPIC_ID.hex() + "00000003"
    assert value is not None
    assert value.hex() == (
        "0000"
        "00000001" "00000002" "00000003"
        "0000000000000028" "0000000000000032" "000000000000003c"
        "02" "0000000000000028" "000000000000002c" "02" "0001" "00"
        "01" "00" "04" "00000005"
    )  # fmt: skip


def test_a_record_of_another_type_is_skipped() -> None:
    assert records.decode(b"\x00\x07whatever", b"") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"", None),
        (records.encode(UPDATE)[0] + b"x", None),
        (records.encode(UPDATE)[0][:-1], None),
        (records.encode(UPDATE)[0], b"\x00"),
        (records.encode(UPDATE)[0], b"\x00\x09"),
    ],
)
def test_bytes_that_are_wrong_are_refused(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        records.decode(key, value)


def test_batches_are_the_same_in_records_and_in_memory() -> None:
    batches = [StateBatch(1, 2, 0, 1), StateBatch(3, 3, 4, 5)]
    assert records.batches_of(ShareUpdateValue(state_batches=records.recorded(batches))) == batches
