from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from millbeck.cli.records.log_files import (
    BATCH,
    ENTRY,
    PROBLEM,
    RECORD,
    DumpEntry,
    DumpOptions,
    base_offset_of,
    batches_of,
    read_entries,
)
from millbeck.records import batch, control
from millbeck.records.compression import Codec
from millbeck.records.control import EndTransaction
from millbeck.records.crc import crc32c
from millbeck.records.record import Record

NAME = "00000000000000000100"


def built(base_offset: int, *values: bytes, codec: Codec = Codec.NONE, sequence: int = -1) -> bytes:
    records = [Record(-1, 1000 + number, b"k", value, (("h", b"1"),)) for number, value in enumerate(values)]
    return batch.build(
        records,
        base_offset=base_offset,
        codec=codec,
        producer_id=-1 if sequence < 0 else 9,
        producer_epoch=-1 if sequence < 0 else 0,
        base_sequence=sequence,
    )


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(built(100, b"a", b"b") + built(102, b"c", codec=Codec.LZ4, sequence=5))
    return path


def entries(path: Path, depth: DumpOptions | None = None) -> list[DumpEntry]:
    return list(read_entries(str(path), depth or DumpOptions()))


def test_batches_of_a_segment(segment: Path) -> None:
    first, second = entries(segment)
    assert (first.kind, second.kind) == (BATCH, BATCH)
    assert first.fields["baseOffset"] == 100
    assert first.fields["lastOffset"] == 101
    assert first.fields["count"] == 2
    assert first.fields["CreateTime"] == 1001
    assert first.fields["isvalid"] is True
    assert second.fields["position"] == first.fields["size"]
    assert second.fields["compresscodec"] == "lz4"
    assert (second.fields["baseSequence"], second.fields["lastSequence"]) == (5, 5)


def test_records_only_when_asked_for_and_payloads_likewise(segment: Path) -> None:
    kinds = [entry.kind for entry in entries(segment, DumpOptions(records=True))]
    assert kinds == [BATCH, RECORD, RECORD, BATCH, RECORD]
    record = entries(segment, DumpOptions(records=True))[1]
    assert record.fields == {
        "offset": 100,
        "CreateTime": 1000,
        "keySize": 1,
        "valueSize": 1,
        "sequence": -1,
        "headerKeys": ["h"],
    }
    payloads = [entry.fields.get("payload") for entry in entries(segment, DumpOptions(payloads=True))]
    assert payloads == [None, "a", "b", None, "c"]


def test_control_batches_tell_what_they_mean(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    marker = control.marker_batch(
        EndTransaction(committed=False, coordinator_epoch=2),
        base_offset=100,
        producer_id=9,
        producer_epoch=0,
        timestamp=1,
    )
    path.write_bytes(marker)
    _, record = entries(path, DumpOptions(records=True))
    assert record.fields["endTxnMarker"] == "ABORT"


def test_what_is_before_a_damage_is_shown_and_the_damage_named(segment: Path) -> None:
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-3])
    kinds = [entry.kind for entry in entries(segment)]
    assert kinds == [BATCH, PROBLEM]
    assert "from position" in str(entries(segment)[1].fields["problem"])


def test_a_wrong_checksum_does_not_end_the_file(segment: Path) -> None:
    damaged = bytearray(segment.read_bytes())
    damaged[70] ^= 0xFF
    segment.write_bytes(damaged)
    shown = entries(segment, DumpOptions(records=True))
    assert [entry.kind for entry in shown] == [BATCH, PROBLEM, BATCH, RECORD]
    assert shown[0].fields["isvalid"] is False


def test_limits(segment: Path) -> None:
    (problem,) = entries(segment, DumpOptions(batch_bytes_max=10))
    assert problem.kind == PROBLEM
    assert "above the maximum of 22" in str(problem.fields["problem"])
    assert [entry.kind for entry in entries(segment, DumpOptions(bytes_max=1))] == [BATCH]


def test_a_length_that_lies_allocates_nothing(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    lying = bytearray(built(100, b"a"))
    lying[8:12] = pack(">i", 2**31 - 1)
    path.write_bytes(lying)
    assert [entry.kind for entry in entries(path)] == [PROBLEM]


def test_an_offset_index(segment: Path) -> None:
    position = next(iter(batches_of(str(segment))))[1].size_bytes
    index = segment.with_suffix(".index")
    index.write_bytes(pack(">ii", 2, position))
    assert entries(index) == [DumpEntry(ENTRY, {"offset": 102, "position": position})]
    index.write_bytes(pack(">ii", 2, position) + bytes(16))
    assert len(entries(index)) == 1, "zeros behind the last entry are room that was set aside"
    index.write_bytes(pack(">ii", 2, 10_000))
    assert entries(index)[0].kind == PROBLEM
    index.write_bytes(b"abc")
    assert entries(index)[0].kind == PROBLEM


def test_a_time_index(segment: Path) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(pack(">qi", 1001, 1))
    assert entries(index) == [DumpEntry(ENTRY, {"timestamp": 1001, "offset": 101})]
    index.write_bytes(b"abc")
    assert entries(index)[0].kind == PROBLEM


def test_a_transaction_index(segment: Path) -> None:
    index = segment.with_suffix(".txnindex")
    index.write_bytes(pack(">hqqqq", 0, 9, 100, 105, 106))
    (entry,) = entries(index)
    assert entry.fields["producerId"] == 9
    assert (entry.fields["firstOffset"], entry.fields["lastOffset"]) == (100, 105)
    index.write_bytes(b"abc")
    assert entries(index)[0].kind == PROBLEM


def test_a_producer_snapshot(segment: Path) -> None:
    snapshot = segment.with_suffix(".snapshot")
    body = pack(">i", 1) + pack(">qhiqiqiq", 9, 1, 4, 104, 2, 1001, -1, -1)
    snapshot.write_bytes(pack(">hI", 1, crc32c(body)) + body)
    (entry,) = entries(snapshot)
    assert (entry.fields["producerId"], entry.fields["lastSequence"], entry.fields["lastOffset"]) == (9, 4, 104)
    snapshot.write_bytes(b"abc")
    assert entries(snapshot)[0].kind == PROBLEM


def test_names_tell_what_a_file_is(tmp_path: Path) -> None:
    assert base_offset_of(f"x/{NAME}.log") == 100
    assert base_offset_of("00000000000000000080-0000000001.checkpoint") == 80
    with pytest.raises(ValueError, match="does not begin with an offset"):
        base_offset_of("x/orders.index")
    with pytest.raises(ValueError, match="not the name of a segment"):
        read_entries(str(tmp_path / "notes.txt"), DumpOptions())
