"""The rules of idempotent and transactional producers, each with the case that fails without it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from millbeck.records.control import EndTransaction
from millbeck.storage import producer_state
from millbeck.storage.producer_state import AppendOrigin, BatchTrace, CompletedTransaction, ProducerStateManager
from tests.unit.server.harness.method_patches import needs_sources

SEQUENCE_MAX = 2**31 - 1


class Producer:
    """Appends to a state as a log would, giving offsets."""

    def __init__(self, state: ProducerStateManager | None = None) -> None:
        self.state = state or ProducerStateManager()
        self.offset = 0

    def stage(
        self,
        sequence: int,
        count: int = 1,
        *,
        epoch: int = 0,
        transactional: bool = False,
        producer_id: int = 7,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> BatchTrace | None:
        found = self.state.stage_data(
            producer_id, epoch, sequence, count - 1, self.offset, 1000 + self.offset, transactional, origin
        )
        if found is None:
            self.offset += count
        return found

    def send(self, sequence: int, count: int = 1, **options: object) -> BatchTrace | None:
        found = self.stage(sequence, count, **options)  # type: ignore[arg-type]
        self.state.commit()
        return found

    def mark(
        self,
        *,
        committed: bool = True,
        epoch: int = 0,
        coordinator_epoch: int = 0,
        producer_id: int = 7,
        version: int = 0,
        origin: AppendOrigin = AppendOrigin.COORDINATOR,
    ) -> CompletedTransaction | None:
        marker = EndTransaction(committed=committed, coordinator_epoch=coordinator_epoch)
        completed = self.state.stage_marker(producer_id, epoch, marker, self.offset, 5000, origin, version)
        self.offset += 1
        return completed


def test_sequences_must_follow() -> None:
    producer = Producer()
    producer.send(0, 3)
    producer.send(3)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(5)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(3, 2)
    assert producer.send(4) is None


def test_sequences_wrap_to_zero() -> None:
    producer = Producer()
    producer.send(SEQUENCE_MAX - 1, 2)
    assert producer.send(0, 2) is None
    crossing = Producer()
    crossing.send(SEQUENCE_MAX, 3)
    assert crossing.state.producers[7].last_sequence == 1
    assert crossing.send(2) is None


def test_an_unknown_producer_may_begin_anywhere() -> None:
    assert Producer().send(1234) is None


@needs_sources
def test_the_number_of_producers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may make up ids, and timestamps that never expire."""
    monkeypatch.setattr(producer_state, "PRODUCERS_MAX", 8)
    producer = Producer()
    producer.send(0, producer_id=1, transactional=True)
    for producer_id in range(2, 9):
        producer.send(0, producer_id=producer_id)
    producer.send(1, producer_id=2)
    assert len(producer.state.producers) == 8
    producer.send(0, producer_id=9)
    assert list(producer.state.producers) == [1, 2, 5, 6, 7, 8, 9], "3 and 4 wrote longest ago, 1 has a transaction"
    assert producer.send(5, producer_id=3) is None, "who was forgotten may go on"


def test_a_duplicate_of_the_last_five_gets_the_old_answer() -> None:
    producer = Producer()
    for sequence in range(0, 12, 2):
        producer.send(sequence, 2)
    for index, sequence in enumerate(range(2, 12, 2)):
        found = producer.send(sequence, 2)
        assert found == (sequence + 1, sequence + 1, 1, 1000 + 2 + 2 * index)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(0, 2)


def test_a_duplicate_must_match_in_both_ends() -> None:
    producer = Producer()
    producer.send(0, 3)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(1, 2)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(0, 2)


def test_a_duplicate_of_something_staged_is_found_before_it_is_written() -> None:
    producer = Producer()
    assert producer.stage(0, 2) is None
    assert producer.stage(0, 2) == (1, 1, 1, 1000)
    producer.state.drop()
    assert producer.stage(0, 2) is None


def test_dropping_undoes_all_that_was_staged() -> None:
    producer = Producer()
    producer.send(0)
    before = dict(producer.state.producers)
    producer.stage(1)
    producer.stage(0, producer_id=8, transactional=True)
    producer.state.drop()
    assert producer.state.producers == before
    assert producer.state.open_transactions == {}
    assert producer.send(1) is None


def test_an_older_epoch_is_fenced() -> None:
    producer = Producer()
    producer.send(0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        producer.send(1, epoch=2)


def test_a_new_epoch_begins_at_zero() -> None:
    producer = Producer()
    producer.send(0, 5)
    with pytest.raises(OutOfOrderSequenceNumber):
        producer.send(5, epoch=1)
    assert producer.send(0, epoch=1) is None
    assert producer.send(1, epoch=1) is None
    with pytest.raises(InvalidProducerEpoch):
        producer.send(0, 5)


def test_replication_takes_what_the_leader_took() -> None:
    producer = Producer()
    producer.send(0, epoch=3)
    assert producer.send(77, epoch=2, origin=AppendOrigin.REPLICATION) is None
    assert producer.state.producers[7].last_sequence == 77


def test_coordinators_are_not_asked_for_sequences() -> None:
    producer = Producer()
    producer.send(0, origin=AppendOrigin.COORDINATOR)
    assert producer.send(9, origin=AppendOrigin.COORDINATOR) is None
    with pytest.raises(InvalidProducerEpoch):
        producer.send(0, epoch=-1, origin=AppendOrigin.COORDINATOR)


def test_a_transaction_is_open_from_its_first_batch_to_its_marker() -> None:
    producer = Producer()
    producer.send(0, 2, transactional=True)
    producer.send(2, transactional=True)
    assert producer.state.open_transactions == {0: 7}
    assert producer.state.last_stable_offset(3) == 0
    assert producer.mark() == CompletedTransaction(7, 0, 3, is_aborted=False)
    assert producer.state.commit() == []
    assert producer.state.open_transactions == {}
    assert producer.mark() is None


def test_a_write_outside_the_open_transaction_is_refused() -> None:
    producer = Producer()
    producer.send(0, transactional=True)
    with pytest.raises(InvalidTxnState):
        producer.send(1)


def test_the_stable_offset_waits_for_the_marker_to_be_replicated() -> None:
    producer = Producer()
    producer.send(0, 5, transactional=True)
    producer.mark()
    producer.state.commit()
    assert producer.state.last_stable_offset(5) == 0
    assert producer.state.last_stable_offset(6) == 6


def test_an_aborted_transaction_is_indexed_with_the_stable_offset_then() -> None:
    producer = Producer()
    producer.send(0, transactional=True)
    producer.send(0, transactional=True, producer_id=8)
    producer.mark(committed=False)
    assert producer.state.commit() == [(7, 0, 2, 1)]
    producer.mark(committed=False, producer_id=8)
    assert producer.state.commit() == [(8, 1, 3, 4)]


def test_a_marker_of_an_old_coordinator_is_fenced() -> None:
    producer = Producer()
    producer.mark(coordinator_epoch=4)
    producer.state.commit()
    with pytest.raises(TransactionCoordinatorFenced):
        producer.mark(coordinator_epoch=3)
    assert producer.mark(coordinator_epoch=4) is None


def test_a_marker_of_an_old_producer_epoch_is_fenced() -> None:
    producer = Producer()
    producer.send(0, epoch=2, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        producer.mark(epoch=1)


def test_from_version_two_a_marker_needs_a_higher_epoch_unless_it_is_a_retry() -> None:
    producer = Producer()
    producer.send(0, epoch=2, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        producer.mark(epoch=2, version=2)
    assert producer.mark(epoch=3, version=2) is not None
    producer.state.commit()
    assert producer.mark(epoch=3, version=2) is None
    exhausted = Producer()
    exhausted.send(0, epoch=2**15 - 1, transactional=True)
    assert exhausted.mark(epoch=2**15 - 1, version=2) is not None


def test_a_marker_with_a_new_epoch_starts_sequences_over() -> None:
    producer = Producer()
    producer.send(0, 3, transactional=True)
    producer.mark(epoch=1, version=2)
    producer.state.commit()
    assert producer.send(0, epoch=1, transactional=True) is None
    same = Producer()
    same.send(0, 3, transactional=True)
    same.mark()
    same.state.commit()
    assert same.send(3, transactional=True) is None


def test_idle_producers_expire_unless_a_transaction_is_open() -> None:
    producer = Producer()
    producer.send(0)
    producer.send(0, producer_id=8, transactional=True)
    producer.state.expire(now_ms=1999, expiration_ms=1000)
    assert sorted(producer.state.producers) == [7, 8]
    producer.state.expire(now_ms=10_000, expiration_ms=1000)
    assert sorted(producer.state.producers) == [8]


def test_loading_restores_open_transactions_in_the_order_of_their_offsets() -> None:
    producer = Producer()
    for producer_id in (9, 8, 7):
        producer.send(0, producer_id=producer_id, transactional=True)
    loaded = ProducerStateManager()
    loaded.load(sorted(producer.state.producers.values(), key=lambda entry: entry.producer_id))
    assert list(loaded.open_transactions.items()) == [(0, 9), (1, 8), (2, 7)]
    assert loaded.producers == producer.state.producers


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(1, 3), st.booleans()), max_size=30))
def test_staging_together_is_staging_one_by_one(batches: list[tuple[int, int, bool]]) -> None:
    together, one_by_one = Producer(), Producer()
    sequences = {1: 0, 2: 0}
    for producer_id, count, _ in batches:
        together.stage(sequences[producer_id], count, producer_id=producer_id)
        one_by_one.send(sequences[producer_id], count, producer_id=producer_id)
        sequences[producer_id] += count
    together.state.commit()
    assert together.state.producers == one_by_one.state.producers
