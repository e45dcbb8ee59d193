"""The note that makes a batch count once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.errors import NoBrokerReachable, UnsupportedByBroker
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.kernel.errors import ProducerFenced
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline import exactly_once
from millbeck.pipeline.errors import BrokerUnreachable, NotExactlyOnce, PipelineError
from millbeck.pipeline.exactly_once import (
    OTHERS_MAX,
    BatchTransaction,
    abort,
    batches_of,
    begin,
    commit,
    note_of,
    sweep,
)
from millbeck.pipeline.sink_options import parse_sink_options

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
TICKET = TransactionHandle("t", 7, 3)
OPTIONS = parse_sink_options(
    {"kafka.bootstrap.servers": "h:1", "delivery": "exactly_once", "kafka.transactional.id": "t", "topic": "a"}
)


class FakeTransaction:
    def __init__(self, calls: list[Any], error: Exception | None = None) -> None:
        self.calls = calls
        self.error = error
        self.kept: dict[TopicPartition, CommittedOffset] = {}
        self.committed: dict[TopicPartition, CommittedOffset] = {}

    async def begin(self) -> TransactionHandle:
        if self.error is not None:
            raise self.error
        self.calls.append("begin")
        return TICKET

    async def notes(self, group: str) -> dict[TopicPartition, CommittedOffset]:
        self.calls.append(("notes", group))
        return self.kept

    async def commit(self, group: str, notes: dict[TopicPartition, CommittedOffset]) -> None:
        self.calls.append(("commit", group, notes))
        self.committed = notes

    async def abort(self) -> None:
        self.calls.append("abort")


class FakeBlocking:
    def __enter__(self) -> FakeBlocking:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(coroutine)


@pytest.fixture
def transaction(monkeypatch: pytest.MonkeyPatch) -> FakeTransaction:
    fake = FakeTransaction([])
    monkeypatch.setattr(exactly_once, "Blocking", FakeBlocking)
    monkeypatch.setattr(exactly_once, "_open", lambda options, blocking, ticket=None: fake)
    return fake


def test_a_note_comes_back() -> None:
    written = {A1: (5, 40), A0: (3, 30)}
    notes = note_of(written, "q", 12, {})
    assert list(notes) == [A0]
    assert notes[A0].offset == 30
    assert batches_of(notes) == {"q": 12}
    assert note_of(written, None, 12, {}) == {}
    assert note_of({A0: (3, -1)}, "q", 1, {})[A0].offset == 0


def test_notes_of_others_are_left_alone() -> None:
    notes = {
        A0: CommittedOffset(1, -1, ""),
        A1: CommittedOffset(1, -1, "[]"),
        B0: CommittedOffset(1, -1, '{"query":"q"}'),
        TopicPartition("b", 4): CommittedOffset(1, -1, '{"query":"q","batch":99,"others":[7]}'),
        TopicPartition("b", 5): CommittedOffset(1, -1, '{"query":"q","batch":99,"others":{"older":"many"}}'),
        TopicPartition("b", 1): CommittedOffset(1, -1, '{"query":"q","batch":4}'),
        TopicPartition("b", 2): CommittedOffset(1, -1, '{"query":"q","batch":9}'),
        TopicPartition("b", 3): CommittedOffset(1, -1, '{"query":"older","batch":70}'),
    }
    assert batches_of(notes) == {"q": 9, "older": 70}


def test_two_queries_under_one_transactional_id_keep_both_notes(transaction: FakeTransaction) -> None:
    """The second one commits its note for the same partition; the first one's last batch may still be repeated."""
    transaction.kept = note_of({A0: (3, 30)}, "first", 7, {})
    commit(OPTIONS, TICKET, [{A0: (3, 33)}], "second", 0)
    transaction.kept |= transaction.committed
    begun = begin(OPTIONS)
    assert begun.noted == {"first": 7, "second": 0}
    assert begun.has_been_written("first", 7)
    commit(OPTIONS, TICKET, [{A0: (3, 36)}], "first", 8)
    transaction.kept |= transaction.committed
    assert begin(OPTIONS).noted == {"first": 8, "second": 0}


def test_a_note_carries_a_bounded_number_of_other_queries_the_latest_ones() -> None:
    notes: dict[TopicPartition, CommittedOffset] = {}
    query_ids = [f"00000000-0000-0000-0000-{number:012}" for number in range(OTHERS_MAX + 5)]
    for query in query_ids:
        notes = note_of({A0: (1, 1)}, query, 123_456_789, notes)
    assert list(batches_of(notes)) == query_ids[: -OTHERS_MAX - 2 : -1]
    assert len(notes[A0].metadata) < 2048


def test_a_note_of_the_format_before_is_carried_on() -> None:
    before = {A0: CommittedOffset(30, -1, '{"query":"first","batch":7}')}
    after = note_of({A0: (1, 31)}, "second", 0, before)
    assert after[A0] == CommittedOffset(31, -1, '{"query":"second","batch":0,"others":{"first":7}}')
    assert note_of({A1: (1, 31)}, "second", 0, before)[A1].metadata == '{"query":"second","batch":0}'
    assert note_of({A0: (1, 31)}, "first", 8, before)[A0].metadata == '{"query":"first","batch":8}'


def test_what_has_been_written() -> None:
    begun = BatchTransaction(ticket=TICKET, noted={"q": 9})
    assert [begun.has_been_written("q", batch) for batch in (8, 9, 10)] == [True, True, False]
    assert not begun.has_been_written("a new checkpoint", 0)


def test_the_last_transaction_is_decided_before_its_note_is_looked_for(transaction: FakeTransaction) -> None:
    transaction.kept = note_of({A0: (1, 1)}, "q", 5, {})
    assert begin(OPTIONS) == BatchTransaction(ticket=TICKET, noted={"q": 5})
    assert transaction.calls == ["begin", ("notes", "t")]


def test_a_batch_is_committed_with_its_note(transaction: FakeTransaction) -> None:
    commit(OPTIONS, TICKET, [{A0: (3, 30)}, {A1: (5, 40)}, {}], "q", 12)
    assert transaction.calls == [("notes", "t"), ("commit", "t", note_of({A0: (3, 30)}, "q", 12, {}))]


def test_an_empty_batch_needs_no_transaction(transaction: FakeTransaction) -> None:
    commit(OPTIONS, TICKET, [{}, {}], "q", 12)
    assert transaction.calls == []


def test_two_tasks_for_one_partition_are_refused(transaction: FakeTransaction) -> None:
    with pytest.raises(NotExactlyOnce, match="rows for a-1 came from two tasks"):
        commit(OPTIONS, TICKET, [{A0: (3, 30), A1: (1, 8)}, {A1: (5, 40)}], "q", 12)
    assert transaction.calls == ["abort"]


def test_aborting_and_sweeping(transaction: FakeTransaction) -> None:
    abort(OPTIONS, TICKET)
    sweep({"bootstrap.servers": "h:1"}, ["t", "u"])
    assert transaction.calls == ["abort", "begin", ("notes", "t"), "begin", ("notes", "t")]


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (UnsupportedByBroker("transaction.version is below 2"), NotExactlyOnce, "not possible: transaction.version"),
        (NoBrokerReachable("nobody"), BrokerUnreachable, "no broker answers for transaction t at h:1"),
        (ProducerFenced("another"), PipelineError, "the transaction t failed: another"),
    ],
)
def test_errors_are_for_the_user(
    transaction: FakeTransaction, error: Exception, kind: type[Exception], words: str
) -> None:
    transaction.error = error
    with pytest.raises(kind, match=words):
        begin(OPTIONS)


def test_records_that_were_left_out_stand_in_the_note() -> None:
    note = note_of({A0: (1, 5)}, "q", 3, {}, ["orders:0:12"])
    assert note[A0].metadata == '{"query":"q","batch":3,"skipped":["orders:0:12"]}'
    assert batches_of(note) == {"q": 3}
