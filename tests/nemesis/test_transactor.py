"""What a transactor does when transactions are refused, against a log that only counts."""

from __future__ import annotations

import io
import json
import threading
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from nemesis import transactor
from nemesis.clients import Notes
from nemesis.transactor import ABANDON_EVERY, ABORT_EVERY, Transactor, transformed


class FakeMessage:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"%d" % self._offset


class FakeLog:
    """A partition of the source, what is committed of the target, and a position that transactions move."""

    def __init__(self, record_count: int) -> None:
        self.record_count = record_count
        self.position = 0
        self.committed_offset = 0
        self.target: list[bytes] = []
        self.pending: list[bytes] = []
        self.pending_offset = 0
        self.producers = 0
        self.consumers = 0
        self.is_deaf = False
        self.refusals: list[KafkaError] = []
        self.is_over = threading.Event()

    # A consumer

    def subscribe(self, topics: list[str]) -> None:
        assert topics == ["source"]
        self.consumers += 1
        self.position, self.is_deaf = self.committed_offset, False

    def consume(self, count: int, seconds: float) -> list[FakeMessage]:
        if self.committed_offset == self.record_count:
            self.is_over.set()
        first = self.position
        self.position = min(first + count, self.record_count)
        return [FakeMessage(offset) for offset in range(first, self.position)]

    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition("source", 0)]

    def committed(self, places: list[TopicPartition], seconds: float) -> list[TopicPartition]:
        if self.is_deaf:
            raise KafkaException(refusal())
        return [TopicPartition("source", 0, self.committed_offset or -1001)]

    def seek(self, place: TopicPartition) -> None:
        self.position = place.offset

    def poll(self, seconds: float) -> None:
        return None

    def consumer_group_metadata(self) -> None:
        return None

    def close(self) -> None:
        self.is_over.set()

    # A producer

    def init_transactions(self, seconds: float) -> None:
        self.producers += 1
        self.pending = []

    def begin_transaction(self) -> None:
        assert self.pending == []

    def produce(self, topic: str, *, value: bytes, partition: int) -> None:
        self.pending.append(value)

    def send_offsets_to_transaction(self, offsets: list[TopicPartition], metadata: None, seconds: float) -> None:
        self.pending_offset = offsets[0].offset

    def flush(self, seconds: float) -> int:
        return 0

    def commit_transaction(self, seconds: float) -> None:
        if self.refusals:
            raise KafkaException(self.refusals.pop(0))
        self.target += self.pending
        self.committed_offset, self.pending = self.pending_offset, []

    def abort_transaction(self, seconds: float) -> None:
        self.pending = []


def carry_out(monkeypatch: pytest.MonkeyPatch, log: FakeLog) -> list[str]:
    """The kinds of the notes."""
    monkeypatch.setattr(transactor, "Consumer", lambda settings: log)
    monkeypatch.setattr(transactor, "Producer", lambda settings: log)
    out = io.StringIO()
    Transactor("b", "source", "target", Notes(out), name="t0", records_max=2, is_over=log.is_over).run()
    kinds: list[str] = [json.loads(line)[1] for line in out.getvalue().splitlines()]
    assert log.target == [transformed(b"%d" % offset) for offset in range(log.record_count)]
    return kinds


def test_some_transactions_are_aborted_and_some_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    log = FakeLog(2 * ABANDON_EVERY)
    kinds = carry_out(monkeypatch, log)
    assert kinds.count("committed") == ABANDON_EVERY
    assert kinds.count("aborted") == kinds.count("given up") + ABANDON_EVERY // ABORT_EVERY + 1
    assert kinds.count("given up") == log.producers - 1 == 1


def refusal(**how: Any) -> KafkaError:
    return KafkaError(KafkaError._FAIL, "no", **how)


def test_what_may_be_tried_again_is(monkeypatch: pytest.MonkeyPatch) -> None:
    log = FakeLog(2)
    log.refusals = [refusal(retriable=True)] * 3
    assert carry_out(monkeypatch, log) == ["committed", "end"]


def test_what_must_be_aborted_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = FakeLog(2)
    log.refusals = [refusal(txn_requires_abort=True)]
    assert carry_out(monkeypatch, log) == ["failed", "aborted", "committed", "end"]
    assert log.producers == 1


def test_who_cannot_go_on_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (refusal(fatal=True), refusal()):
        log = FakeLog(2)
        log.refusals = [error]
        kinds = carry_out(monkeypatch, log)
        assert kinds[-3:] == ["given up", "committed", "end"]
        assert log.producers == 2


def test_a_consumer_that_answers_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactor, "REWIND_S", 0.01)
    log = FakeLog(2)
    log.refusals = [refusal(txn_requires_abort=True)]
    abort = log.abort_transaction

    def abort_transaction(seconds: float) -> None:
        abort(seconds)
        log.is_deaf = True

    log.abort_transaction = abort_transaction  # type: ignore[method-assign]
    kinds = carry_out(monkeypatch, log)
    assert [kind for kind in kinds if kind != "rewinding"] == ["failed", "aborted", "replaced", "committed", "end"]
    assert log.consumers == 2
