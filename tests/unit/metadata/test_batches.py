from __future__ import annotations

import pytest

from millbeck.metadata.batches import BatchTooLarge, control_batch, data_batch, read_batch, read_batches
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.records import ConfigRecord, NoOpRecord, TopicRecord
from millbeck.records import batch as record_batch
from millbeck.records.control import LeaderChange, VoterId
from millbeck.records.record import Record

TOPIC = TopicRecord(name="orders", topic_id=b"1" * 16)
LEADER_CHANGE = LeaderChange(leader_id=1, voters=(VoterId(node_id=1),), granting_voters=(VoterId(node_id=1),))

# The first two batches that Apache Kafka 4.3 wrote into a new log: LeaderChange, then the bootstrap records.
KAFKA_LEADER_CHANGE = bytes.fromhex(
    "0000000000000000" "0000004f" "00000001" "02" "fd3960f1" "0020" "00000000" "000001a1e3bf9397" "000001a1e3bf9397"
    "ffffffffffffffff" "ffff" "ffffffff" "00000001" "3a0000000800000002260000000000010200000001000200000001000000"
)  # fmt: skip


def test_a_leader_change_is_the_batch_that_kafka_writes() -> None:
    written = control_batch([LEADER_CHANGE], base_offset=0, epoch=1, timestamp_ms=0x1A1E3BF9397)
    assert written == KAFKA_LEADER_CHANGE
    assert read_batch(written).control_values == (LEADER_CHANGE,)


def test_a_data_batch_says_where_it_is_and_what_it_holds() -> None:
    data = data_batch([TOPIC, NoOpRecord()], base_offset=7, epoch=3, timestamp_ms=99)
    batch = read_batch(data)
    assert (batch.base_offset, batch.last_offset, batch.epoch, batch.timestamp_ms) == (7, 8, 3, 99)
    assert batch.records == (TOPIC, NoOpRecord())
    assert batch.size_bytes == len(data)
    header = record_batch.read_header(data)
    assert (header.producer_id, header.base_sequence, header.is_control) == (-1, -1, False)
    assert [record.key for record in record_batch.records_of(data)] == [None, None]


def test_batches_are_read_one_after_another() -> None:
    data = data_batch([TOPIC], base_offset=0, epoch=1, timestamp_ms=1)
    data += control_batch([LEADER_CHANGE], base_offset=1, epoch=2, timestamp_ms=2)
    assert [(batch.base_offset, len(batch.records)) for batch in read_batches(data)] == [(0, 1), (1, 0)]


def test_a_batch_is_bounded() -> None:
    large = ConfigRecord(name="x", value="y" * (9 << 20))
    with pytest.raises(BatchTooLarge, match="make a batch of"):
        data_batch([large], base_offset=0, epoch=1, timestamp_ms=1)


def _damaged() -> bytes:
    data = bytearray(data_batch([TOPIC], base_offset=0, epoch=1, timestamp_ms=1))
    data[-3] ^= 1
    return bytes(data)


FAULTS = {
    "bad checksum": _damaged(),
    "cut off": data_batch([TOPIC], base_offset=0, epoch=1, timestamp_ms=1)[:-1],
    "no value": record_batch.build([Record(-1, 1, None, None)]),
    "unknown control type": record_batch.build([Record(-1, 1, b"\0\0\0\x63", b"")], is_control=True),
    "control without key": record_batch.build([Record(-1, 1, None, b"")], is_control=True),
}


@pytest.mark.parametrize("data", FAULTS.values(), ids=FAULTS.keys())
def test_damage_is_a_fault(data: bytes) -> None:
    with pytest.raises(MetadataFault):
        list(read_batches(data))
