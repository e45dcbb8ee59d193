from __future__ import annotations

from millbeck.coordinator.share.partition.acquisition import Acquired
from millbeck.records import control
from millbeck.server.share.fetched_batches import batches_in, bytes_of
from millbeck.storage.txn_index import AbortedTransaction
from tests.unit.server.harness.broker_harness import one_batch

PLAIN = one_batch(b"a", b"b", base_offset=5)
OPEN = one_batch(b"c", base_offset=7, producer_id=9, producer_epoch=0, base_sequence=0, is_transactional=True)
MARKER = control.marker_batch(
    control.EndTransaction(committed=False, coordinator_epoch=0),
    producer_id=9,
    producer_epoch=0,
    timestamp=0,
    base_offset=8,
)
LAST = one_batch(b"d", base_offset=12)


def test_batches_are_found_without_their_records() -> None:
    data = PLAIN + OPEN + MARKER + LAST
    found = batches_in(data + LAST[:-1])
    assert [(each.first_offset, each.last_offset, each.has_records, each.record_count) for each in found] == [
        (5, 6, True, 2),
        (7, 7, True, 1),
        (8, 8, False, 1),
        (12, 12, True, 1),
    ]
    assert data[found[1].position : found[1].end] == OPEN
    assert found[0].found == (5, 6, True)


def test_what_was_aborted_has_no_records() -> None:
    aborted = [AbortedTransaction(9, 7, 8, 8)]
    assert [each.has_records for each in batches_in(PLAIN + OPEN + LAST, aborted)] == [True, False, True]
    others = [AbortedTransaction(8, 7, 8, 8), AbortedTransaction(9, 20, 30, 30)]
    assert [each.has_records for each in batches_in(OPEN, others)] == [True]


def test_only_batches_with_something_acquired_are_sent() -> None:
    data = PLAIN + OPEN + MARKER + LAST
    found = batches_in(data)
    assert bytes_of(data, found, [Acquired(6, 6, 1)]) == PLAIN
    assert bytes_of(data, found, [Acquired(5, 7, 1)]) == PLAIN + OPEN
    assert bytes_of(data, found, [Acquired(5, 5, 1), Acquired(12, 12, 2)]) == PLAIN + LAST
    assert bytes_of(memoryview(data), found, [Acquired(5, 12, 1)]) == data
