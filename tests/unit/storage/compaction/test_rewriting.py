"""What of each batch stays."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.records import batch as batches
from millbeck.records.compression import Codec
from millbeck.records.record import Record


def headers(table: Any) -> list[tuple[int, int, int]]:
    """Base offset, last offset and record count of every batch."""
    return [(one.header.base_offset, one.header.last_offset, one.header.record_count) for one in table.batches()]


def test_a_batch_of_which_all_stays_is_copied_byte_for_byte(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"), codec=Codec.LZ4)
    table.put((b"c", b"1"), codec=Codec.GZIP)
    before = [bytes(one.data) for one in table.batches()]
    table.compact()
    assert [bytes(one.data) for one in table.batches()] == before


def test_a_batch_keeps_its_bounds_and_its_producer(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"), (b"c", b"1"), producer_id=7, epoch=2)
    table.put((b"a", b"2"), (b"c", b"2"))
    before = table.batches()[0].header
    table.compact()
    after = table.batches()[0].header
    assert headers(table)[0] == (0, 2, 1)
    for field in ("producer_id", "producer_epoch", "base_sequence", "partition_leader_epoch", "base_timestamp"):
        assert getattr(after, field) == getattr(before, field)
    assert after.max_timestamp == before.max_timestamp - 1


def test_a_batch_with_append_time_keeps_it(table: Any) -> None:
    table.put((b"a", b"1"), (b"b", b"1"), append_timestamp=777)
    table.put((b"b", b"2"))
    table.compact()
    assert batches.records_of(table.batches()[0].data)[0].timestamp == 777


def test_records_without_a_key_go(table: Any) -> None:
    table.put((None, b"1"), (b"a", b"1"), (None, None))
    (outcome,) = table.compact()
    assert table.records() == [(1, b"a", b"1")]
    assert outcome.statistics.keyless_records == 2


def test_headers_and_timestamps_survive(table: Any) -> None:
    kept = Record(0, 12345, b"a", b"1", (("name", b"value"), ("none", None)))
    table.world.append(batches.build([kept, Record(-1, 12346, b"b", b"1")]))
    table.put((b"b", b"2"))
    table.compact()
    assert batches.records_of(table.batches()[0].data) == [kept]


class TestTombstones:
    def test_kept_for_their_retention_from_when_they_are_clean(self, table: Any) -> None:
        table.put((b"a", b"1"))
        table.put((b"a", None), (b"b", b"1"))
        written = batches.records_of(table.batches()[1].data)
        table.world.clock_ms += 50_000
        table.compact()
        assert table.records() == [(1, b"a", None), (2, b"b", b"1")]
        header = table.batches()[0].header
        assert header.delete_horizon_ms == table.now_ms + 1000
        assert batches.records_of(table.batches()[0].data) == written
        assert header.max_timestamp == written[-1].timestamp

        table.world.clock_ms += 999
        table.again()
        assert table.records() == [(1, b"a", None), (2, b"b", b"1")]
        assert table.batches()[0].header == header

        table.world.clock_ms += 1
        table.again()
        assert table.records() == [(2, b"b", b"1")]
        assert table.batches()[0].header.delete_horizon_ms == header.delete_horizon_ms

    @pytest.mark.parametrize("codec", list(Codec))
    def test_whatever_the_codec(self, table: Any, codec: Codec) -> None:
        table.put((b"a", None), (b"b", b"1"), codec=codec)
        table.put((b"x", b"1"))
        table.compact()
        assert table.records() == [(0, b"a", None), (1, b"b", b"1"), (2, b"x", b"1")]
        assert table.batches()[0].header.codec is codec
        table.world.clock_ms += 1000
        table.again()
        assert table.records() == [(1, b"b", b"1"), (2, b"x", b"1")]

    def test_one_that_a_value_follows_goes_at_once(self, table: Any) -> None:
        table.put((b"a", None), (b"b", b"1"))
        table.put((b"a", b"2"))
        table.compact()
        assert table.records() == [(1, b"b", b"1"), (2, b"a", b"2")]
        assert table.batches()[0].header.delete_horizon_ms is None

    def test_time_does_not_begin_for_one_beyond_the_map(self, table: Any) -> None:
        for number in range(10):
            table.put((b"k%d" % number, None))
        table.put((b"x", b"1"))
        table.roll()
        table.map_bytes_max = 400
        outcome = table.round()
        assert 0 < outcome.cleaned_offset < 10
        for one in table.batches()[:10]:
            assert (one.header.delete_horizon_ms is not None) == (one.header.base_offset < outcome.cleaned_offset)


class TestTransactions:
    def test_aborted_records_go_and_the_marker_stays_until_its_time_is_over(self, table: Any) -> None:
        table.put((b"a", b"1"))
        table.put((b"a", b"2"), (b"b", b"2"), producer_id=5, transactional=True)
        table.put((b"c", b"1"), producer_id=5, transactional=True)
        marker = table.world.end_transaction(5, committed=False).first_offset
        table.put((b"d", b"1"), producer_id=5, epoch=1)
        table.put((b"x", b"1"))
        table.compact()
        assert table.records() == [(0, b"a", b"1"), (5, b"d", b"1"), (6, b"x", b"1")]
        assert headers(table) == [(0, 0, 1), (marker, marker, 1), (5, 5, 1), (6, 6, 1)]
        assert table.log.aborted_transactions(0, 7) == [(5, 1, 4, 5)]

        # No data is left: the marker's time begins, and nobody has to be told of the transaction any more.
        table.again()
        assert table.batches()[1].header.delete_horizon_ms == table.now_ms + 1000
        assert table.log.aborted_transactions(0, 7) == []
        table.world.clock_ms += 999
        table.again()
        assert marker in [base for base, _, _ in headers(table)]
        table.world.clock_ms += 1
        table.again()
        assert marker not in [base for base, _, _ in headers(table)]

    def test_a_commit_marker_stays_while_data_of_it_does(self, table: Any) -> None:
        table.put((b"a", b"1"), producer_id=5, transactional=True)
        marker = table.world.end_transaction(5, committed=True).first_offset
        table.put((b"y", b"1"), producer_id=5, epoch=1)
        table.put((b"x", b"1"))
        for _ in range(3):
            table.compact()
            table.again()
            table.world.clock_ms += 5000
        assert headers(table)[:2] == [(0, 0, 1), (marker, marker, 1)]
        assert table.batches()[1].header.delete_horizon_ms is None

        table.put((b"a", b"2"))
        table.compact()
        assert headers(table)[0] == (marker, marker, 1)
        table.again()
        assert table.batches()[0].header.delete_horizon_ms is not None
        table.world.clock_ms += 1000
        table.again()
        assert headers(table)[0] == (2, 2, 1)

    def test_the_marker_beyond_the_compacted_part_still_decides(self, table: Any) -> None:
        table.put((b"a", b"1"))
        table.put((b"a", b"2"), producer_id=5, transactional=True)
        table.roll()
        table.world.end_transaction(5, committed=False)
        table.compact(roll=False)
        assert table.records() == [(0, b"a", b"1")]
        assert table.log.aborted_transactions(0, 3) == [(5, 1, 2, 3)]


class TestHeaderKept:
    def test_the_last_batch_of_a_live_producer(self, table: Any) -> None:
        table.put((b"a", b"1"), producer_id=7)
        table.put((b"a", b"2"), (b"b", b"2"), producer_id=7)
        table.put((b"a", b"3"), (b"b", b"3"))
        table.compact()
        assert headers(table) == [(1, 2, 0), (3, 4, 2)]
        kept = table.batches()[0].header
        assert (kept.producer_id, kept.base_sequence, kept.last_sequence) == (7, 1, 2)
        before = table.log.producer_state.producers[7]
        log = table.world.kill_and_reopen()
        assert log.producer_state.producers[7].last_sequence == before.last_sequence
        table.again()
        assert headers(table) == [(1, 2, 0), (3, 4, 2)]

    def test_and_no_longer_when_the_producer_is_forgotten(self, table: Any) -> None:
        table.put((b"a", b"1"), producer_id=7)
        table.put((b"a", b"2"))
        table.log.expire_producers(table.now_ms + 10**9)
        table.compact()
        assert headers(table) == [(1, 1, 1)]

    def test_the_last_marker_of_a_producer_without_data(self, table: Any) -> None:
        table.put((b"a", b"1"), producer_id=7, transactional=True)
        marker = table.world.end_transaction(7, committed=False, epoch=1).first_offset
        table.put((b"x", b"1"))
        table.compact()
        table.again()
        table.world.clock_ms += 1000
        table.again()
        assert headers(table) == [(marker, marker, 0), (2, 2, 1)]
        kept = table.batches()[0].header
        assert kept.is_control
        assert kept.producer_epoch == 1
        table.again()
        assert headers(table) == [(marker, marker, 0), (2, 2, 1)]

    def test_the_last_batch_of_a_segment(self, table: Any) -> None:
        table.put((b"a", b"1"))
        table.put((None, b"1"), (None, b"2"))
        table.compact()
        assert headers(table) == [(0, 0, 1), (1, 2, 0)]
        assert table.batches()[1].header.max_timestamp == table.now_ms + 1
        table.put((b"b", b"1"))
        table.compact()
        assert headers(table) == [(0, 0, 1), (3, 3, 1)]
