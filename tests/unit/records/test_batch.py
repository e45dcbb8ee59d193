"""Batches: the header to the byte, and two other clients' writers and readers as oracles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from aiokafka.record.memory_records import MemoryRecords as AiokafkaRecords
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder
from kafka.record.memory_records import MemoryRecords as KafkaPythonRecords

from millbeck.kernel.errors import CorruptMessage, InvalidRecord
from millbeck.records import batch
from millbeck.records.batch import Codec
from millbeck.records.compression import DecompressionLimit
from millbeck.records.record import Record
from tests.unit.records.strategies import records

SAMPLE = [
    Record(-1, 1_700_000_000_000, b"k0", b"value", (("trace", b"1"), ("trace", b"1"), ("none", None))),
    Record(-1, 1_700_000_000_003, None, b""),
    Record(-1, 1_699_999_999_990, b"", None, (("é", b""),)),
]


def fields(found: Sequence[Any]) -> list[tuple[object, ...]]:
    """Records of any library as plain values."""
    return [
        (record.offset, record.timestamp, record.key, record.value, tuple(tuple(header) for header in record.headers))
        for record in found
    ]


def numbered(given_records: list[Record], base_offset: int = 0) -> list[tuple[object, ...]]:
    return [
        (base_offset + index, record.timestamp, record.key, record.value, record.headers)
        for index, record in enumerate(given_records)
    ]


def test_a_compacted_batch_keeps_its_end_and_its_gaps() -> None:
    kept = [Record(11, 5, b"k", b"v"), Record(14, 6, b"k", b"v")]
    data = batch.build(kept, base_offset=10, last_offset=19)
    assert batch.read_header(data).last_offset == 19
    assert [record.offset for record in batch.records_of(data)] == [11, 14]
    emptied = batch.build([], base_offset=10, last_offset=19)
    assert batch.read_header(emptied).record_count == 0
    assert batch.records_of(emptied) == []


def test_a_batch_needs_records_or_an_end() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        batch.build([])
    with pytest.raises(ValueError, match="does not fit"):
        batch.build(SAMPLE, last_offset=1)


PEERS = {
    "aiokafka": (AiokafkaBuilder, AiokafkaRecords, list(Codec)),
    # It knows snappy and zstd only with packages that are not installed for tests.
    "kafka-python": (KafkaPythonBuilder, KafkaPythonRecords, [Codec.NONE, Codec.GZIP, Codec.LZ4]),
}
PAIRS = [(name, codec) for name, (_, _, codecs) in PEERS.items() for codec in codecs]


@pytest.mark.parametrize(("peer", "codec"), PAIRS)
def test_others_read_what_we_write(peer: str, codec: Codec) -> None:
    records_type: Any = PEERS[peer][1]
    many = SAMPLE + [Record(-1, 1_700_000_000_000 + index, b"k%d" % index, b"v" * index) for index in range(500)]
    data = batch.build(many, base_offset=9, codec=codec)
    reader = records_type(data)
    found = reader.next_batch()
    assert found.validate_crc()
    assert fields(list(found)) == numbered(many, 9)
    assert not reader.has_next()


@pytest.mark.parametrize(("peer", "codec"), PAIRS)
def test_we_read_what_others_write(peer: str, codec: Codec) -> None:
    builder_type: Any = PEERS[peer][0]
    many = SAMPLE + [Record(-1, 1_700_000_000_000 + index, b"k%d" % index, b"v" * index) for index in range(500)]
    builder = builder_type(2, int(codec), 0, 5, 6, 7, 1 << 20)
    for offset, record in enumerate(many):
        builder.append(
            offset, timestamp=record.timestamp, key=record.key, value=record.value, headers=list(record.headers)
        )
    data = bytes(builder.build())
    header = batch.verify(data)
    assert header.codec is codec
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 6, 7)
    assert fields(batch.records_of(data)) == numbered(many)


@given(records(), st.sampled_from(Codec))
@settings(max_examples=60)
def test_round_trip_and_agreement_with_aiokafka(given_records: list[Record], codec: Codec) -> None:
    data = batch.build(given_records, base_offset=3, codec=codec)
    assert fields(batch.records_of(data)) == numbered(given_records, 3)
    assert fields(list(AiokafkaRecords(data).next_batch())) == numbered(given_records, 3)


def test_split_yields_each_batch_with_its_place() -> None:
    sizes = [1, 3, 2]
    parts = [batch.build(SAMPLE[:size], base_offset=size) for size in sizes]
    found = list(batch.split(b"".join(parts)))
    assert [bytes(one.data) for one in found] == parts
    assert [one.position for one in found] == [0, len(parts[0]), len(parts[0]) + len(parts[1])]
    assert [one.header.base_offset for one in found] == sizes
    assert list(batch.split(b"")) == []


def test_a_cut_off_tail_ends_the_iteration_only_when_asked() -> None:
    data = batch.build(SAMPLE) + batch.build(SAMPLE)
    for size in range(len(data) // 2 + 1, len(data)):
        assert len(list(batch.split(data[:size], partial_tail=True))) == 1
        with pytest.raises(CorruptMessage):
            list(batch.split(data[:size]))


def with_field(data: bytes, position: int, value: int, size: int) -> bytes:
    return data[:position] + value.to_bytes(size, "big", signed=True) + data[position + size :]


GOOD = batch.build(SAMPLE)
BAD_HEADERS = {
    "too short": GOOD[:60],
    "old magic": with_field(GOOD, 16, 1, 1),
    "unknown magic": with_field(GOOD, 16, 3, 1),
    "negative length": with_field(GOOD, 8, -1, 4),
    "length below the header's": with_field(GOOD, 8, 48, 4),
}


@pytest.mark.parametrize("data", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_impossible_headers_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptMessage):
        batch.read_header(data)
    with pytest.raises(CorruptMessage):
        list(batch.split(data))


def test_every_flipped_byte_after_the_checksum_is_noticed() -> None:
    for position in range(17, len(GOOD)):
        broken = bytearray(GOOD)
        broken[position] ^= 0x40
        with pytest.raises(CorruptMessage):
            batch.verify(broken)
        with pytest.raises(CorruptMessage):
            batch.records_of(broken)


def test_a_cut_off_batch_is_corrupt() -> None:
    for read in (batch.verify, batch.records_of, batch.payload_of):
        with pytest.raises(CorruptMessage):
            read(GOOD[:-1])
    with pytest.raises(CorruptMessage):
        batch.records_of(GOOD[:-1], check_crc=False)


def test_an_unknown_codec_is_corrupt() -> None:
    data = with_field(GOOD, 21, 5, 2)
    with pytest.raises(CorruptMessage, match="codec 5"):
        batch.records_of(data, check_crc=False)


def test_size_at_reads_the_first_twelve_bytes() -> None:
    assert batch.size_at(b"xx" + GOOD[:12], 2) == len(GOOD)
    with pytest.raises(CorruptMessage):
        batch.size_at(GOOD[:11])
    with pytest.raises(CorruptMessage):
        batch.size_at(with_field(GOOD, 8, 48, 4))


def test_reading_respects_a_limit() -> None:
    data = batch.build([Record(-1, 0, None, bytes(100_000))], codec=Codec.ZSTD)
    assert len(batch.records_of(data)) == 1
    with pytest.raises(DecompressionLimit):
        batch.records_of(data, limit_bytes=50_000)


def test_a_record_count_that_lies_is_refused() -> None:
    for count in (2, 4, 2**31 - 1, -1):
        with pytest.raises(InvalidRecord):
            batch.records_of(with_field(GOOD, 57, count, 4), check_crc=False)


@given(
    st.sampled_from([batch.build(SAMPLE, codec=codec) for codec in Codec]),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=4),
    st.integers(0, 200),
)
@settings(max_examples=200)
def test_mutated_batches_raise_only_typed_errors(data: bytes, mutations: list[tuple[int, int]], cut: int) -> None:
    broken = bytearray(data)
    for position, byte in mutations:
        broken[position % len(broken)] = byte
    del broken[len(broken) - cut % 10 :]
    try:
        found = batch.records_of(broken, check_crc=False, limit_bytes=1 << 20)
    except (CorruptMessage, InvalidRecord):
        return
    assert len(found) == batch.read_header(broken).record_count
