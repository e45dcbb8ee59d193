"""The host with a shard of one map: what is decided, when it is seen, and what is left of it when a write fails."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest

from millbeck.coordinator.runtime import shard_runner
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.shard_runner import (
    ProducerIdAndEpoch,
    ShardRunner,
    ShardState,
    TransactionEnd,
    coordinator_error,
)
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.errors import ApiError
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.records import batch

Pair = tuple[str, str]
BAD_PRODUCER = 666


class MapShard:
    """Keys and values; the value "bad" cannot be replayed, the value "unspeakable" cannot be encoded."""

    def __init__(self, registry: SnapshotRegistry, timers: Timers[Pair]) -> None:
        self.values: TimelineDict[str, str] = TimelineDict(registry)
        self.pending: TimelineDict[int, Pair] = TimelineDict(registry)
        self.timers = timers
        self.offsets: list[int] = []
        self.unloaded_with: ApiError | None = None
        self.loaded_at_ms = 0

    def encode(self, record: Pair) -> tuple[bytes, bytes | None]:
        if record[1] == "unspeakable":
            raise ValueError(record)
        return record[0].encode(), record[1].encode()

    def decode(self, key: bytes, value: bytes | None) -> Pair | None:
        return key.decode(), (value or b"").decode()

    def replay(self, record: Pair, *, offset: int, producer_id: int) -> None:
        if record[1] == "bad":
            raise errors.UnknownMemberId("even an expected error is not expected here")
        if producer_id >= 0:
            self.pending[producer_id] = record
            return
        self.values[record[0]] = record[1]
        self.offsets.append(offset)

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None:
        if producer_id == BAD_PRODUCER:
            raise ValueError(producer_id)
        record = self.pending.pop(producer_id, None)
        if record is not None and is_committed:
            self.values[record[0]] = record[1]

    def on_loaded(self, now_ms: int) -> None:
        self.loaded_at_ms = now_ms

    def on_unloaded(self, error: ApiError) -> None:
        self.unloaded_with = error


class Stage:
    def __init__(self, worlds: ModuleType) -> None:
        self.worlds = worlds
        self.log = worlds.Log()
        self.scheduler = worlds.Scheduler(0)
        self.host: ShardRunner[MapShard, Pair] = ShardRunner(
            MapShard, appender=self.log, scheduler=self.scheduler, commit_timeout_ms=5000
        )

    def load(self) -> Stage:
        self.host.loaded(end_offset=0, high_watermark=0, now_ms=7)
        return self

    @property
    def shard(self) -> MapShard:
        return self.host.shard

    def put(self, key: str, value: str, **details: Any) -> Any:
        return self.write(lambda _: Result(records=[(key, value)], response=f"{key}={value}", **details))

    def write(self, operation: Callable[[MapShard], Result[Pair, Any]]) -> Any:
        outcome = self.worlds.Outcome()
        self.host.write(operation, outcome.reply, self.scheduler.now_ms)
        return outcome

    def put_in_transaction(self, key: str, value: str, producer: ProducerIdAndEpoch) -> Any:
        outcome = self.worlds.Outcome()
        self.host.write(
            lambda _: Result(records=[(key, value)], response="put"), outcome.reply, self.scheduler.now_ms, producer
        )
        return outcome

    def end(self, producer: ProducerIdAndEpoch, is_committed: bool) -> Any:
        outcome = self.worlds.Outcome()
        self.host.end_transaction(TransactionEnd(*producer, 1, is_committed), outcome.reply, self.scheduler.now_ms)
        return outcome

    def read(self, key: str) -> Any:
        outcome = self.worlds.Outcome()
        self.host.read(lambda shard, at: shard.values.get_at(key, at, "nothing"), outcome.reply)
        return outcome.response

    def commit(self, offset: int | None = None) -> None:
        self.host.on_high_watermark_advanced(self.log.end_offset if offset is None else offset, self.scheduler.now_ms)

    def take_back(self, offset: int) -> None:
        self.log.take_back(offset)
        self.host.write_failed(offset, errors.KafkaStorageError(), self.scheduler.now_ms)


@pytest.fixture
def stage(worlds: ModuleType) -> Stage:
    return Stage(worlds).load()


def test_nothing_is_taken_before_the_load_is_over(worlds: ModuleType) -> None:
    stage = Stage(worlds)
    assert isinstance(stage.put("a", "1").error, errors.CoordinatorLoadInProgress)
    stage.load()
    assert stage.shard.loaded_at_ms == 7
    assert stage.put("a", "1").error is None


def test_a_failed_load_leaves_the_coordinator_unavailable(worlds: ModuleType) -> None:
    stage = Stage(worlds)
    stage.host.on_load_failed()
    assert isinstance(stage.put("a", "1").error, errors.CoordinatorNotAvailable)
    assert stage.host.state is ShardState.FAILED


def test_the_answer_waits_for_the_high_watermark(stage: Stage) -> None:
    first, second = stage.put("a", "1"), stage.put("b", "2")
    assert not first.is_done
    stage.commit(1)
    assert (first.response, second.is_done) == ("a=1", False)
    stage.commit(2)
    assert second.response == "b=2"
    assert stage.shard.offsets == [0, 1]


def test_later_operations_see_what_is_not_committed_and_readers_do_not(stage: Stage) -> None:
    stage.put("a", "1")
    seen = stage.write(lambda shard: Result(response=shard.values["a"]))
    assert not seen.is_done, "what it saw is not committed"
    assert stage.read("a") == "nothing"
    stage.commit()
    assert seen.response == "1"
    assert stage.read("a") == "1"


def test_an_operation_without_records_is_answered_at_once_when_all_is_committed(stage: Stage) -> None:
    assert stage.write(lambda _: Result(response="pong")).response == "pong"
    assert stage.host.deferred_count == 0


def test_a_refused_append_changes_nothing(stage: Stage) -> None:
    stage.put("a", "1")
    stage.commit()
    stage.log.refusal = errors.NotLeaderOrFollower()
    failures: list[ApiError] = []

    def operation(shard: MapShard) -> Result[Pair, str]:
        shard.values["draft"] = "x"
        return Result(records=[("a", "2")], response="done", on_failed=lambda error, _: failures.append(error))

    outcome = stage.write(operation)
    assert isinstance(outcome.error, errors.NotCoordinator)
    assert [type(error) for error in failures] == [errors.NotCoordinator]
    assert dict(stage.shard.values) == {"a": "1"}
    stage.log.refusal = None
    assert stage.put("a", "3").error is None


def test_a_write_that_is_taken_back_takes_the_state_with_it(stage: Stage) -> None:
    kept = stage.put("a", "1")
    lost, watching = stage.put("b", "2"), stage.write(lambda shard: Result(response=shard.values["b"]))
    lost_too = stage.put("a", "9")
    stage.take_back(1)
    assert not kept.is_done
    for outcome in (lost, watching, lost_too):
        assert isinstance(outcome.error, errors.NotCoordinator)
    assert dict(stage.shard.values) == {"a": "1"}
    stage.commit()
    assert kept.response == "a=1"
    assert stage.put("c", "3").error is None
    stage.commit()
    assert stage.read("c") == "3"


def test_an_answer_that_survives_a_take_back_still_times_out(stage: Stage) -> None:
    kept = stage.put("a", "1")
    stage.put("b", "2")
    stage.take_back(1)
    stage.scheduler.advance(5000)
    assert isinstance(kept.error, errors.CoordinatorNotAvailable)


def test_an_expected_error_is_the_answer(stage: Stage) -> None:
    def operation(_: MapShard) -> Result[Pair, str]:
        raise errors.UnknownMemberId()

    assert isinstance(stage.write(operation).error, errors.UnknownMemberId)
    assert stage.host.state is ShardState.ACTIVE


def test_a_bug_before_the_append_costs_one_answer(stage: Stage) -> None:
    def operation(_: MapShard) -> Result[Pair, str]:
        raise ZeroDivisionError

    assert isinstance(stage.write(operation).error, errors.UnknownServerError)
    assert isinstance(stage.put("a", "unspeakable").error, errors.UnknownServerError)
    assert stage.put("a", "1").error is None
    assert stage.log.end_offset == 1


def test_a_bug_in_replay_unloads_the_shard(stage: Stage) -> None:
    waiting = stage.put("a", "1")
    broken = stage.put("a", "bad")
    for outcome in (waiting, broken, stage.put("a", "2")):
        assert isinstance(outcome.error, errors.CoordinatorNotAvailable)
    assert stage.host.state is ShardState.FAILED
    assert isinstance(stage.shard.unloaded_with, errors.CoordinatorNotAvailable)
    assert stage.read("a") is None


def test_a_bug_on_commit_unloads_the_shard(stage: Stage) -> None:
    def bug(_: int) -> None:
        raise ZeroDivisionError

    outcome, later = stage.put("a", "1", on_committed=bug), stage.put("b", "2")
    stage.commit()
    assert isinstance(outcome.error, errors.CoordinatorNotAvailable)
    assert later.response == "b=2", "its records are committed too"
    assert stage.host.state is ShardState.FAILED


def test_closing_answers_everything_that_waits(stage: Stage) -> None:
    waiting = stage.put("a", "1")
    stage.host.close()
    stage.host.close()
    assert isinstance(waiting.error, errors.NotCoordinator)
    assert isinstance(stage.put("b", "2").error, errors.NotCoordinator)
    assert isinstance(stage.shard.unloaded_with, errors.NotCoordinator)
    stage.scheduler.advance(60_000)
    stage.commit()


def test_a_commit_that_takes_too_long_is_given_up_but_stays(stage: Stage) -> None:
    failures: list[ApiError] = []
    late: list[ApiError] = []
    committed: list[int] = []
    outcome = stage.put(
        "a",
        "1",
        on_failed=lambda error, _: failures.append(error),
        on_timeout=late.append,
        on_committed=committed.append,
    )
    stage.scheduler.advance(4999)
    assert not outcome.is_done
    stage.scheduler.advance(1)
    assert isinstance(outcome.error, errors.CoordinatorNotAvailable)
    assert [type(error) for error in late] == [errors.CoordinatorNotAvailable]
    assert committed == []
    stage.commit()
    assert (committed, failures) == ([5000], []), "nothing was undone, since it could still be committed"
    assert stage.read("a") == "1"


def test_what_is_taken_back_is_undone_the_newest_first(stage: Stage) -> None:
    undone: list[str] = []
    for name in ("first", "second", "third"):
        stage.put(name, "1", on_failed=lambda _, __, name=name: undone.append(name))
    stage.take_back(1)
    assert undone == ["third", "second"]


def test_records_the_shard_already_shows_are_not_replayed(stage: Stage) -> None:
    committed: list[int] = []
    stage.scheduler.advance(30)
    stage.put("a", "1", is_replayed=False, on_committed=committed.append)
    stage.commit()
    assert dict(stage.shard.values) == {}
    assert committed == [30]


def test_a_long_result_is_cut_into_batches_only_where_it_may_be(stage: Stage) -> None:
    stage.log.batch_size_bytes_max = 100
    pairs = [(f"key{index}", "v") for index in range(10)]
    assert not stage.write(lambda _: Result(records=pairs, response="cut", is_atomic=False)).is_done
    assert len(stage.log.batches) == 5
    assert stage.shard.offsets == list(range(10))
    stage.write(lambda _: Result(records=pairs, response="whole"))
    assert len(stage.log.batches) == 6


def test_timers_write_records_too_and_are_tried_again(stage: Stage) -> None:
    stage.shard.timers.schedule(("t",), 10, lambda _: Result(records=[("timer", "ran")]), retry_ms=50)
    stage.log.refusal = errors.NotEnoughReplicas()
    stage.scheduler.advance(10)
    assert stage.log.end_offset == 0
    stage.log.refusal = None
    stage.scheduler.advance(50)
    stage.commit()
    assert stage.read("timer") == "ran"


def test_a_timer_with_a_bug_harms_nothing(stage: Stage) -> None:
    def bug(_: int) -> Result[Pair, None]:
        raise ZeroDivisionError

    stage.shard.timers.schedule(("t",), 10, bug)
    stage.scheduler.advance(10)
    assert stage.host.state is ShardState.ACTIVE
    assert stage.put("a", "1").error is None


def test_replies_wait_for_what_was_loaded_but_not_committed(worlds: ModuleType) -> None:
    stage = Stage(worlds)
    stage.log.end_offset = 5
    stage.host.loaded(end_offset=5, high_watermark=3, now_ms=0)
    outcome = stage.write(lambda _: Result(response="seen"))
    assert not outcome.is_done
    stage.commit(5)
    assert outcome.response == "seen"


def test_a_log_that_loses_what_was_loaded_leaves_no_state_to_go_back_to(worlds: ModuleType) -> None:
    stage = Stage(worlds)
    stage.log.end_offset = 5
    stage.host.loaded(end_offset=5, high_watermark=3, now_ms=0)
    waiting = stage.put("a", "1")
    stage.take_back(4)
    assert isinstance(waiting.error, errors.CoordinatorNotAvailable)
    assert stage.host.state is ShardState.FAILED


MAPPED = {
    errors.NotEnoughReplicas: errors.CoordinatorNotAvailable,
    errors.RequestTimedOut: errors.CoordinatorNotAvailable,
    errors.UnknownTopicOrPartition: errors.CoordinatorNotAvailable,
    errors.NotLeaderOrFollower: errors.NotCoordinator,
    errors.KafkaStorageError: errors.NotCoordinator,
    errors.MessageTooLarge: errors.UnknownServerError,
    errors.RecordListTooLarge: errors.UnknownServerError,
    errors.InvalidRequest: errors.InvalidRequest,
}


@pytest.mark.parametrize(("error", "expected"), MAPPED.items())
def test_errors_of_the_partition_become_errors_of_the_coordinator(
    error: type[ApiError], expected: type[ApiError]
) -> None:
    assert type(coordinator_error(error())) is expected


@pytest.mark.parametrize("is_committed", [True, False])
def test_what_a_transaction_writes_counts_when_its_marker_is_committed(stage: Stage, is_committed: bool) -> None:
    producer = ProducerIdAndEpoch(7, 3)
    put = stage.put_in_transaction("a", "1", producer)
    stage.commit()
    assert put.response == "put"
    assert stage.read("a") == "nothing"
    end = stage.end(producer, is_committed)
    assert not end.is_done
    assert stage.read("a") == "nothing"
    stage.commit()
    assert end.response is True
    assert stage.read("a") == ("1" if is_committed else "nothing")
    headers = [batch.read_header(data) for data in stage.log.batches]
    assert [(each.producer_id, each.producer_epoch, each.is_transactional) for each in headers] == [(7, 3, True)] * 2
    assert [each.is_control for each in headers] == [False, True]


def test_a_marker_that_is_taken_back_leaves_the_transaction_open(stage: Stage) -> None:
    producer = ProducerIdAndEpoch(7, 3)
    stage.put_in_transaction("a", "1", producer)
    stage.commit()
    end = stage.end(producer, True)
    stage.take_back(1)
    assert isinstance(end.error, errors.NotCoordinator)
    assert stage.shard.pending[7] == ("a", "1")
    stage.end(producer, False)
    stage.commit()
    assert stage.read("a") == "nothing"


def test_a_marker_that_is_refused_or_cannot_be_replayed(stage: Stage, worlds: ModuleType) -> None:
    stage.log.refusal = errors.TransactionCoordinatorFenced()
    assert isinstance(stage.end(ProducerIdAndEpoch(7, 3), True).error, errors.TransactionCoordinatorFenced)
    stage.log.refusal = None
    assert isinstance(stage.end(ProducerIdAndEpoch(BAD_PRODUCER, 3), True).error, errors.CoordinatorNotAvailable)
    assert stage.host.state is ShardState.FAILED
    assert isinstance(Stage(worlds).end(ProducerIdAndEpoch(7, 3), True).error, errors.CoordinatorLoadInProgress)


def _return(result: Any, _: Any) -> Any:
    return result


def test_what_can_not_be_written_is_passed_over_where_nobody_waits_for_it(stage: Stage) -> None:
    stage.log.batch_size_bytes_max, stage.log.max_message_bytes = 100, 161
    pairs = [("a", "1"), ("long", "x" * 200), ("b", "unspeakable"), ("c", "3")]
    stage.write(lambda _: Result(records=pairs, is_atomic=False))
    stage.commit()
    assert dict(stage.shard.values) == {"a": "1", "c": "3"}
    assert stage.shard.offsets == [0, 1]
    assert stage.host.failure_count == 2
    for bad in pairs[1:3]:
        result = Result(records=[("d", "4"), bad], response="?", is_atomic=False)
        outcome = stage.write(partial(_return, result))
        assert isinstance(outcome.error, errors.UnknownServerError), "who waits is told"


def test_the_end_of_what_was_accepted_may_be_above_the_limit(stage: Stage) -> None:
    stage.log.max_message_bytes = 100
    assert isinstance(stage.put("a", "x" * 100).error, errors.UnknownServerError)
    stage.put("a", "x" * 100, is_size_limited=False)
    assert len(stage.shard.values["a"]) == 100


def test_each_result_of_a_timer_fails_by_itself(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    ran: list[int] = []
    results: list[Result[Pair, None]] = [
        Result(records=[("a", "1")], on_committed=ran.append),
        Result(records=[("b", "unspeakable")], on_committed=ran.append),
        Result(records=[("c", "3")], on_committed=ran.append),
    ]
    for _ in range(2):
        stage.shard.timers.schedule(("t",), 10, lambda _: results)
        stage.scheduler.advance(10)
        stage.commit()
    assert dict(stage.shard.values) == {"a": "1", "c": "3"}
    assert ran == [10, 10, 20, 20]
    assert stage.host.failure_count == 2
    assert [record.getMessage() for record in caplog.records].count("('t',) failed, continuing with the others") == 1


def test_a_timer_whose_results_unload_the_shard_goes_no_further(stage: Stage) -> None:
    results: list[Result[Pair, None]] = [Result(records=[("a", "bad")]), Result(records=[("b", "2")])]
    stage.shard.timers.schedule(("t",), 10, lambda _: results)
    stage.scheduler.advance(10)
    assert stage.host.state is ShardState.FAILED
    assert stage.log.end_offset == 1


def test_the_example_of_the_loop_runs() -> None:
    result = doctest.testmod(shard_runner)
    assert result.attempted > 0
    assert result.failed == 0
