"""States have Kafka's numbers and names, and a decision is final."""

from __future__ import annotations

from millbeck.coordinator.transaction.status import BY_NAME, TransactionState, is_valid_transition


def test_numbers_and_names_are_kafkas() -> None:
    assert {status.shown: status.value for status in TransactionState} == {
        "Empty": 0,
        "Ongoing": 1,
        "PrepareCommit": 2,
        "PrepareAbort": 3,
        "CompleteCommit": 4,
        "CompleteAbort": 5,
        "Dead": 6,
        "PrepareEpochFence": 7,
    }
    assert BY_NAME["CompleteAbort"] is TransactionState.COMPLETE_ABORT


def test_a_decision_is_never_reversed() -> None:
    assert [after for after in TransactionState if is_valid_transition(TransactionState.PREPARE_COMMIT, after)] == [
        TransactionState.COMPLETE_COMMIT
    ]
    assert [after for after in TransactionState if is_valid_transition(TransactionState.PREPARE_ABORT, after)] == [
        TransactionState.COMPLETE_ABORT
    ]
    assert not is_valid_transition(TransactionState.EMPTY, TransactionState.PREPARE_COMMIT)
    assert not is_valid_transition(TransactionState.DEAD, TransactionState.EMPTY)


def test_idle_and_prepared_are_apart() -> None:
    assert [status for status in TransactionState if status.is_idle and status.is_prepared] == []
    assert not TransactionState.ONGOING.is_idle
    assert TransactionState.PREPARE_ABORT.is_prepared
