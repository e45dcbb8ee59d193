"""The shard: what is written when, and what is taken up after a crash."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.transaction.listing import Filters
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.coordinator.transaction.transaction import EPOCH_MAX, LAST_EPOCH_SHOWN, Transaction
from millbeck.kernel import errors
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.units import INT_MAX
from millbeck.records import batch

PLACE, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def begin(stage: Any, name: str = "x", **details: Any) -> tuple[int, int]:
    producer = stage.init(name, **details).response
    assert producer.error_code == 0
    assert stage.add(name, producer[:2], PLACE, OTHER).response == 0
    found: tuple[int, int] = producer[:2]
    return found


def test_a_transaction_from_beginning_to_end(stage: Any) -> None:
    producer = begin(stage)
    assert producer == (101, 0)
    answer = stage.end("x", producer, True)
    assert answer.response[:3] == (101, 1, 0)
    assert [(each.producer_epoch, each.partitions) for each in stage.sent] == [(1, (PLACE, OTHER))]
    assert stage.of("x").status is TransactionState.PREPARE_COMMIT
    assert isinstance(stage.add("x", (101, 1), PLACE).error, errors.ConcurrentTransactions)
    assert stage.complete().response is True
    assert stage.of("x").status is TransactionState.COMPLETE_COMMIT
    assert stage.complete().response is False
    assert stage.add("x", (101, 1), PLACE).response == 0


def test_markers_of_an_earlier_transaction_complete_nothing(stage: Any) -> None:
    producer = begin(stage)
    stage.end("x", producer, True)
    (old,) = stage.sent
    stage.complete()
    stage.add("x", (101, 1), PLACE)
    stage.end("x", (101, 1), False)
    assert stage.run(lambda shard: shard.complete(old, 0)).response is False
    assert stage.of("x").status is TransactionState.PREPARE_ABORT


def test_markers_follow_the_committed_decision_and_the_answer_too(stage: Any) -> None:
    producer = begin(stage)
    answer = stage.end("x", producer, True, commits=False)
    assert not answer.is_done
    assert stage.sent == []
    stage.commit()
    assert answer.is_done
    assert len(stage.sent) == 1


def test_a_decision_that_is_not_written_is_none(stage: Any) -> None:
    producer = begin(stage)
    answer = stage.end("x", producer, True, commits=False)
    stage.log.take_back(2)
    stage.host.write_failed(2, errors.KafkaStorageError(), 0)
    assert isinstance(answer.error, errors.NotCoordinator)
    assert stage.sent == []
    assert stage.of("x").status is TransactionState.ONGOING
    assert stage.end("x", producer, False).response[:3] == (101, 1, 0)
    assert [each.is_committed for each in stage.sent] == [False]


def test_what_was_decided_is_taken_up_after_a_crash(stage: Any) -> None:
    producer = begin(stage)
    stage.end("x", producer, True)
    before = stage.sent
    later = stage.reload()
    assert later.sent == before
    assert later.complete().response is True
    assert later.reload().sent == []


def test_a_new_producer_fences_the_old_one(stage: Any) -> None:
    old = begin(stage)
    answer = stage.init("x")
    assert answer.response.error_code == errors.ConcurrentTransactions.code
    assert [each.is_committed for each in stage.sent] == [False]
    assert isinstance(stage.add("x", old, PLACE).error, errors.ProducerFenced)
    assert isinstance(stage.end("x", old, True).error, errors.ConcurrentTransactions)
    assert isinstance(stage.init("x").error, errors.ConcurrentTransactions)
    stage.complete()
    assert isinstance(stage.end("x", old, True).error, errors.InvalidTxnState)
    assert stage.init("x").response[:3] == (101, 2, 0)
    assert isinstance(stage.end("x", old, True).error, errors.ProducerFenced)


def test_who_is_unknown_is_told_so(stage: Any) -> None:
    assert isinstance(stage.add("y", (1, 0), PLACE).error, errors.InvalidProducerIdMapping)
    assert isinstance(stage.end("y", (1, 0), True).error, errors.InvalidProducerIdMapping)
    producer = begin(stage)
    assert isinstance(stage.add("x", (producer[0] + 1, 0), PLACE).error, errors.InvalidProducerIdMapping)


def verified(stage: Any, name: str, who: tuple[int, int], *partitions: TopicPartition) -> Any:
    outcome = stage.worlds.Outcome()
    stage.host.read(lambda shard, at: shard.verify_partitions(name, *who, partitions, at), outcome.reply)
    assert outcome.is_done, "a read waits for nothing"
    return outcome


def test_partitions_are_verified_without_waiting_for_commits(stage: Any) -> None:
    first, second = begin(stage, "x"), begin(stage, "y")
    third = TopicPartition("t", 2)
    added = stage.run(
        lambda shard: shard.add_partitions("y", *second, [third], client_version=0, now_ms=stage.scheduler.now_ms),
        commits=False,
    )
    assert not added.is_done
    assert verified(stage, "x", first, PLACE).response == {PLACE: 0}
    assert verified(stage, "x", first, third).response == {third: errors.TransactionAbortable.code}
    assert verified(stage, "y", second, PLACE).response == {PLACE: 0}
    assert isinstance(verified(stage, "y", second, third).error, errors.ConcurrentTransactions), "not committed yet"
    stage.commit()
    assert verified(stage, "y", second, third).response == {third: 0}
    stage.end("y", second, True, commits=False)
    assert isinstance(verified(stage, "y", second, third).error, errors.ConcurrentTransactions), "it may be ended"


def test_partitions_are_verified_against_the_open_transaction(stage: Any) -> None:
    producer = begin(stage)
    third = TopicPartition("t", 2)

    def verify(who: tuple[int, int]) -> Any:
        return verified(stage, "x", who, PLACE, third)

    assert verify(producer).response == {PLACE: 0, third: errors.TransactionAbortable.code}
    assert isinstance(verify((producer[0], 5)).error, errors.ProducerFenced)
    stage.end("x", producer, True)
    assert isinstance(verify((producer[0], 1)).error, errors.ConcurrentTransactions)
    stage.complete()
    assert verify((producer[0], 1)).response[PLACE] == errors.TransactionAbortable.code


def test_adding_what_is_there_writes_nothing(stage: Any) -> None:
    producer = begin(stage)
    end_offset = stage.log.end_offset
    assert stage.add("x", producer, OTHER).response == 0
    assert stage.log.end_offset == end_offset


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(stage: Any) -> None:
    producer = begin(stage, timeout_ms=15_000)
    stage.advance(10_000)
    assert stage.sent == []
    stage.advance(10_001)
    assert [(each.is_committed, each.producer_epoch) for each in stage.sent] == [(False, 1)]
    assert isinstance(stage.add("x", producer, PLACE).error, errors.ProducerFenced)
    assert stage.host.shard.timed_out_count == 1
    stage.complete()
    # An abort by the one whose transaction it was is a retry of what was done; it goes on with the next epoch.
    assert stage.end("x", producer, False).response[:3] == (101, 1, 0)


def test_without_a_timeout_nothing_is_aborted(stage: Any) -> None:
    begin(stage, timeout_ms=2**31 - 1)
    stage.advance(10**6)
    assert stage.of("x").status is TransactionState.ONGOING


def test_many_late_transactions_are_aborted_step_by_step(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.coordinator.runtime.sweep.STEP_WEIGHT_MAX", 100)
    for index in range(5):
        begin(stage, f"x{index}", timeout_ms=1)
    stage.advance(10_000)
    assert len(stage.sent) == 2
    stage.advance(10)
    assert len(stage.sent) == 5


def age(stage: Any, name: str, epoch: int, **changes: Any) -> tuple[int, int]:
    """Let the id's producer have reached that epoch."""
    aged = replace(stage.of(name), producer_epoch=epoch, **changes)
    stage.run(lambda _: Result(records=[TransactionRecord(name, aged)], response=True))
    return aged.producer_id, epoch


@pytest.mark.parametrize("version", [0, 2])
def test_a_client_can_not_begin_with_the_epoch_that_is_for_markers(stage: Any, version: int) -> None:
    """The attack: be fenced with the last epoch that is given out, and go on with the one that fenced it."""
    stage.version = version
    stage.init("x")
    stage.init("other", timeout_ms=5000)
    last = age(stage, "x", LAST_EPOCH_SHOWN)
    assert stage.add("x", last, PLACE).response == 0
    assert stage.init("x").response.error_code == errors.ConcurrentTransactions.code
    assert [each.producer_epoch for each in stage.sent] == [EPOCH_MAX]
    stage.complete()
    beyond = (last[0], EPOCH_MAX)
    refusal = errors.ProducerFenced if version == 0 else errors.InvalidProducerIdMapping
    for outcome in (stage.add("x", beyond, PLACE), stage.end("x", beyond, True), stage.end("x", beyond, False)):
        assert isinstance(outcome.error, refusal)
    assert isinstance(verified(stage, "x", beyond, PLACE).error, refusal)
    stage.add("other", (102, 0), PLACE)
    stage.advance(15_000)
    assert stage.of("other").status is TransactionState.PREPARE_ABORT
    again = stage.init("x").response
    assert (again.error_code, again.producer_id != last[0]) == (0, True)
    assert again.producer_epoch == (0 if version == 0 else 1)


def test_used_up_epochs_are_replaced_when_the_producer_is_fenced(stage: Any) -> None:
    stage.init("x")
    last = age(stage, "x", LAST_EPOCH_SHOWN)
    stage.add("x", last, PLACE)
    stage.init("x")
    stage.complete()
    after = stage.of("x")
    assert (after.status, after.producer_epoch) == (TransactionState.COMPLETE_ABORT, 0)
    assert after.producer_id == stage.next_producer_id
    assert stage.reload().of("x").producer_id == after.producer_id


@pytest.mark.parametrize("spare", [None, 900])
def test_used_up_epochs_are_no_obstacle_to_a_timeout(stage: Any, spare: int | None) -> None:
    stage.spare_producer_id = spare
    stage.init("x", timeout_ms=1000)
    last = age(stage, "x", LAST_EPOCH_SHOWN)
    stage.add("x", last, PLACE)
    stage.advance(10_000)
    assert [each.producer_epoch for each in stage.sent] == [EPOCH_MAX]
    stage.complete()
    after = stage.of("x")
    assert (after.producer_id, after.producer_epoch) == ((last[0], EPOCH_MAX) if spare is None else (900, 0))
    answer = stage.init("x").response
    assert answer.error_code == 0
    assert answer.producer_id != last[0]


def test_a_transaction_that_a_log_has_with_the_last_epoch_is_aborted_and_its_id_goes_on(stage: Any) -> None:
    """What could be written before the last epoch was refused."""
    bad = begin(stage, "bad", timeout_ms=1000)
    begin(stage, "kept", timeout_ms=1000)
    begin(stage, "good", timeout_ms=1000)
    bad = age(stage, "bad", EPOCH_MAX)
    age(stage, "kept", EPOCH_MAX, next_producer_id=900, next_producer_epoch=4)
    stage = stage.reload()
    assert isinstance(stage.end("bad", bad, True).error, errors.ProducerFenced)
    stage.advance(10_000)
    assert {each.transactional_id: each.producer_epoch for each in stage.sent} == {
        "bad": EPOCH_MAX,
        "kept": EPOCH_MAX,
        "good": 1,
    }
    for markers in stage.sent:
        stage.run(lambda shard, markers=markers: shard.complete(markers, stage.scheduler.now_ms))
    assert {each.status for each in stage.host.shard.transactions()} == {TransactionState.COMPLETE_ABORT}
    assert stage.of("kept").client == (900, 5)
    assert stage.init("bad").response.producer_epoch == 0
    assert stage.host.failure_count == 0


def test_one_bad_id_does_not_stop_the_abort_of_the_others(
    stage: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    original = Transaction.fenced

    def fenced(self: Transaction, **details: Any) -> Transaction:
        assert self.transactional_id != "bad"
        return original(self, **details)

    monkeypatch.setattr(Transaction, "fenced", fenced)
    for name in ("a", "bad", "c"):
        begin(stage, name, timeout_ms=1)
    stage.advance(10_000)
    assert {each.transactional_id for each in stage.sent} == {"a", "c"}
    begin(stage, "d", timeout_ms=1)
    stage.advance(10_000)
    assert {each.transactional_id for each in stage.sent} == {"a", "c", "d"}
    assert stage.host.failure_count == 2
    assert [record.getMessage() for record in caplog.records] == [
        "('abort-timed-out', 'bad') failed, continuing with the others"
    ]


def test_aborts_do_not_depend_on_fitting_one_batch(stage: Any) -> None:
    stage.log.max_message_bytes = 2000
    for index in range(30):
        producer = stage.init(f"x{index}", timeout_ms=1).response[:2]
        assert stage.add(f"x{index}", producer, *(TopicPartition("t", place) for place in range(200))).response == 0
    stage.advance(10_100)
    assert len({each.transactional_id for each in stage.sent}) == 30


def test_a_transaction_too_large_for_the_log_is_refused_and_one_that_just_fits_still_ends(stage: Any) -> None:
    stage.log.max_message_bytes = 2000
    stage.spare_producer_id = 900
    stage.init("x", timeout_ms=1)
    producer = age(stage, "x", LAST_EPOCH_SHOWN)
    count = 0
    while (outcome := stage.add("x", producer, TopicPartition("t", count))).error is None:
        count += 1
    assert isinstance(outcome.error, errors.UnknownServerError), "as in Kafka"
    assert len(stage.of("x").partitions) == count > 400
    # The end of it takes a few bytes more; and the limit may have been lowered since.
    stage.log.max_message_bytes = 500
    stage.advance(10_000)
    assert len(stage.sent[-1].partitions) == count
    assert stage.complete().response is True
    assert stage.of("x").producer_id == 900


def test_ids_that_can_not_be_forgotten_do_not_keep_the_others(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millbeck.coordinator.runtime.sweep.STEP_WEIGHT_MAX", 3)
    long = "long" * 200
    for name in ("a", long, "b", "c"):
        stage.init(name)
    stage.log.max_message_bytes = 500
    stage.log.batch_size_bytes_max = 400
    stage.advance(8 * 86_400_000)
    assert [each.transactional_id for each in stage.host.shard.transactions()] == [long]
    assert stage.host.failure_count > 1


def test_markers_of_one_transaction_that_can_not_be_sent_again_do_not_keep_the_others(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "bad", "c"):
        stage.end(name, begin(stage, name), True)
    original = stage.__class__.send

    def send(self: Any, markers: Any) -> None:
        assert markers.transactional_id != "bad"
        original(self, markers)

    monkeypatch.setattr(stage.__class__, "send", send)
    later = stage.reload()
    assert [each.transactional_id for each in later.sent] == ["a", "c"]
    begin(later, "d", timeout_ms=1)
    later.advance(10_000)
    assert [each.transactional_id for each in later.sent] == ["a", "c", "d"], "timers run as well"


def test_ids_that_nobody_uses_are_forgotten(stage: Any) -> None:
    begin(stage, "open", timeout_ms=2**31 - 1)
    stage.init("idle")
    week_ms = 7 * 86_400_000
    stage.scheduler.now_ms += week_ms - 3_600_000
    stage.advance(1)
    assert {each.transactional_id for each in stage.host.shard.transactions()} == {"open", "idle"}
    stage.advance(2 * 3_600_000)
    assert {each.transactional_id for each in stage.host.shard.transactions()} == {"open"}
    assert {each.transactional_id for each in stage.reload().host.shard.transactions()} == {"open"}


def test_the_feature_decides_what_is_written(older_stage: Any) -> None:
    begin(older_stage)
    values = [record.value for data in older_stage.log.batches for record in batch.records_of(data)]
    assert {value[:2] for value in values if value is not None} == {b"\0\0"}
    older_stage.version = 1
    older_stage.init("y")
    assert (batch.records_of(older_stage.log.batches[-1])[0].value or b"")[:2] == b"\0\1"


def test_epochs_do_not_go_up_with_the_end_below_version_2(older_stage: Any) -> None:
    producer = begin(older_stage)
    assert older_stage.end("x", producer, True).response[:3] == (101, 0, 0)
    assert [each.producer_epoch for each in older_stage.sent] == [0]
    older_stage.complete()
    assert older_stage.end("x", producer, True).response[:3] == (101, 0, 0)
    assert older_stage.add("x", producer, PLACE).response == 0


def test_listing_and_describing_see_what_is_committed(stage: Any) -> None:
    producer = begin(stage)
    stage.end("x", producer, True, commits=False)
    shard, at = stage.host.shard, stage.host.committed_offset
    assert [each.transaction_state for each in shard.list_transactions(Filters(), 0, at)] == ["Ongoing"]
    assert shard.describe_transaction("x", at).transaction_state == "Ongoing"
    assert shard.describe_transaction("y", at).error_code == errors.TransactionalIdNotFound.code
    assert shard.counts()[TransactionState.PREPARE_COMMIT] == 1


def kept(stage: Any, name: str = "x") -> Any:
    return stage.init(name, keeps_prepared=True)


def test_an_open_transaction_is_kept_for_who_is_to_end_it(stage: Any) -> None:
    stage.version = 3
    producer = begin(stage)
    answer = kept(stage).response
    assert answer[:3] == (101, 1, 0)
    assert (answer.ongoing_producer_id, answer.ongoing_producer_epoch) == producer
    assert stage.of("x").status is TransactionState.ONGOING
    for late in (stage.add("x", producer, PLACE), stage.end("x", producer, True)):
        assert isinstance(late.error, errors.ProducerFenced), "whoever had it before is fenced"
    assert isinstance(stage.add("x", (101, 1), PLACE).error, errors.InvalidTxnState), "nothing more gets into it"
    ended = stage.end("x", (101, 1), True)
    assert ended.response[:3] == (101, 2, 0)
    # The markers carry the pair that wrote the transaction, bumped.
    assert (stage.sent[-1].producer_id, stage.sent[-1].producer_epoch) == (101, 1)
    assert isinstance(stage.end("x", (101, 1), True).error, errors.ConcurrentTransactions)
    stage.complete()
    assert stage.end("x", (101, 1), True).response[:3] == (101, 2, 0), "the retry"
    assert isinstance(stage.end("x", (101, 1), False).error, errors.InvalidTxnState)
    assert stage.add("x", (101, 2), PLACE).error is None


def test_what_is_kept_survives_a_failover_and_is_never_timed_out(stage: Any) -> None:
    stage.version = 3
    stage.init("x", timeout_ms=INT_MAX)
    stage.add("x", (101, 0), PLACE)
    kept_by = stage.init("x", timeout_ms=INT_MAX, keeps_prepared=True).response
    stage = stage.reload()
    stage.advance(8 * 86_400_000)
    assert stage.of("x").status is TransactionState.ONGOING
    again = stage.init("x", timeout_ms=INT_MAX, keeps_prepared=True).response
    assert (again.ongoing_producer_id, again.ongoing_producer_epoch) == (101, 0)
    assert again[:2] == (101, 2) > kept_by[:2]
    stage = stage.reload()
    assert isinstance(stage.end("x", kept_by[:2], False).error, errors.ProducerFenced)
    assert stage.end("x", again[:2], False).response[:2] == (101, 3)
    stage = stage.reload()
    assert (stage.sent[-1].producer_epoch, stage.sent[-1].is_committed) == (1, False)
    stage.complete()
    assert (stage.of("x").producer_epoch, stage.of("x").next_producer_epoch) == (3, -1)


def test_a_producer_that_does_not_keep_it_aborts_it(stage: Any) -> None:
    stage.version = 3
    begin(stage)
    kept_by = kept(stage).response
    assert stage.init("x").response.error_code == errors.ConcurrentTransactions.code
    assert (stage.sent[-1].producer_epoch, stage.sent[-1].is_committed) == (1, False)
    assert stage.sent[-1].transaction_version == 2
    stage.complete()
    assert isinstance(stage.end("x", kept_by[:2], True).error, errors.InvalidTxnState)
    assert stage.init("x").response[:2] == (101, 3)


def test_nothing_to_keep_is_no_obstacle(stage: Any) -> None:
    stage.version = 3
    first = kept(stage).response
    assert first == (101, 0, 0, -1, -1)
    stage.add("x", first[:2], PLACE)
    stage.end("x", first[:2], True)
    assert isinstance(kept(stage).error, errors.ConcurrentTransactions)
    stage.complete()
    assert kept(stage).response == (101, 2, 0, -1, -1)


def test_a_transaction_whose_markers_can_not_be_sent_does_not_unload_the_shard(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(self: Any, markers: Any) -> None:
        assert not markers.transactional_id.startswith("bad")
        self.sent.append(markers)

    monkeypatch.setattr(stage.__class__, "send", send)
    begin(stage, "bad 1", timeout_ms=1)
    stage.advance(10_000)
    stage.end("bad 2", begin(stage, "bad 2"), True)
    stage.end("good", begin(stage, "good"), True)
    assert [each.transactional_id for each in stage.sent] == ["good"]
    assert stage.host.failure_count == 2
