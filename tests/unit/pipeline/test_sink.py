"""Writers hand each task's rows over; with transactions, what tasks and driver tell each other."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline import exactly_once, sink
from millbeck.pipeline.errors import NotExactlyOnce
from millbeck.pipeline.exactly_once import BatchTransaction
from millbeck.pipeline.sink import BatchWriter, StreamWriter, TaskIdentity, TaskWritten, task_identity
from millbeck.pipeline.sink_options import SinkOptions, parse_sink_options


class FakeOutgoing:
    made: list[FakeOutgoing] = []

    def __init__(self, options: SinkOptions, ticket: TransactionHandle | None = None) -> None:
        self.batches: list[str] = []
        self.ticket = ticket
        self.is_closed = False
        FakeOutgoing.made.append(self)

    def write(self, batch: str) -> None:
        if batch == "bad":
            raise ValueError(batch)
        self.batches.append(batch)

    def finish(self) -> dict[TopicPartition, tuple[int, int]]:
        return {TopicPartition("a", 0): (len(self.batches), 9)}

    def close(self) -> None:
        self.is_closed = True


TICKET = TransactionHandle("t", 7, 3)
PLAIN = parse_sink_options({"kafka.bootstrap.servers": "h:1", "topic": "a"})
ONCE = parse_sink_options(
    {"kafka.bootstrap.servers": "h:1", "topic": "a", "delivery": "exactly_once", "kafka.transactional.id": "t"}
)


@pytest.fixture(autouse=True)
def outgoing(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeOutgoing.made = []
    monkeypatch.setattr("millbeck.pipeline.row_writer.RowWriter", FakeOutgoing)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is done about transactions."""
    found: list[Any] = []

    def begin(options: SinkOptions) -> BatchTransaction:
        found.append("begin")
        return BatchTransaction(ticket=TICKET, noted={"q": 4})

    monkeypatch.setattr(exactly_once, "begin", begin)
    monkeypatch.setattr(exactly_once, "commit", lambda options, *given: found.append(("commit", *given)))
    monkeypatch.setattr(exactly_once, "abort", lambda options, ticket: found.append(("abort", ticket)))
    return found


def task(monkeypatch: pytest.MonkeyPatch, query: str | None = "q", batch: int | None = 5, first: bool = True) -> None:
    monkeypatch.setattr(sink, "task_identity", lambda: TaskIdentity(query, batch, first))


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_a_task(kind: Any, calls: list[Any]) -> None:
    writer = pickle.loads(pickle.dumps(kind(PLAIN)))
    message = writer.write(iter(["one", "two"]))
    assert pickle.loads(pickle.dumps(message)).written == {TopicPartition("a", 0): (2, 9)}
    with pytest.raises(ValueError, match="bad"):
        writer.write(iter(["bad"]))
    assert [made.is_closed for made in FakeOutgoing.made] == [True, True]
    assert calls == []


def test_without_transactions_nothing_is_left_for_the_driver(calls: list[Any]) -> None:
    StreamWriter(PLAIN).commit([TaskWritten({})], 5)
    StreamWriter(PLAIN).abort([TaskWritten({}), None], 5)
    BatchWriter(PLAIN).commit([TaskWritten({})])
    BatchWriter(PLAIN).abort([None])
    assert calls == []


def test_a_writer_for_tasks_takes_a_transaction_once(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    task(monkeypatch)
    driver = StreamWriter(ONCE)
    assert calls == []
    pickle.dumps(driver)
    worker = pickle.loads(pickle.dumps(driver))
    assert calls == ["begin"]
    message = worker.write(iter(["one"]))
    assert (message.ticket, message.query, message.is_repeated) == (TICKET, "q", False)
    assert FakeOutgoing.made[0].ticket == TICKET
    StreamWriter(ONCE).commit([message], 5)
    assert calls == ["begin", ("commit", TICKET, [message.written], "q", 5)]


def test_a_repeated_batch_is_not_written(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    task(monkeypatch, batch=4)
    worker = pickle.loads(pickle.dumps(StreamWriter(ONCE)))
    rows = iter(["one"])
    message = worker.write(rows)
    assert message.is_repeated
    assert next(rows, None) is None
    assert FakeOutgoing.made == []
    StreamWriter(ONCE).commit([message], 4)
    assert calls == ["begin"]


def test_another_attempt_is_refused(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    task(monkeypatch, first=False)
    worker = pickle.loads(pickle.dumps(StreamWriter(ONCE)))
    with pytest.raises(NotExactlyOnce, match="another attempt of a task"):
        worker.write(iter(["one"]))


@pytest.mark.parametrize(("query", "batch"), [(None, 5), ("q", None)])
def test_a_spark_that_does_not_tell_is_refused(
    monkeypatch: pytest.MonkeyPatch, calls: list[Any], query: str | None, batch: int | None
) -> None:
    task(monkeypatch, query=query, batch=batch)
    worker = pickle.loads(pickle.dumps(StreamWriter(ONCE)))
    with pytest.raises(NotExactlyOnce, match="does not pass the batch id to its tasks"):
        worker.write(iter(["one"]))


def test_a_batch_write_is_one_transaction(monkeypatch: pytest.MonkeyPatch, calls: list[Any]) -> None:
    task(monkeypatch, query=None, batch=None)
    worker = pickle.loads(pickle.dumps(BatchWriter(ONCE)))
    message = worker.write(iter(["one"]))
    BatchWriter(ONCE).commit([message])
    BatchWriter(ONCE).abort([None, message])
    assert calls == ["begin", ("commit", TICKET, [message.written], None, -1), ("abort", TICKET)]


def test_tickets_do_not_mix(calls: list[Any]) -> None:
    messages: list[Any] = [TaskWritten({}, TICKET, "q"), TaskWritten({}, TransactionHandle("t", 7, 4), "q")]
    with pytest.raises(NotExactlyOnce, match="different transactions"):
        StreamWriter(ONCE).commit(messages, 5)


def test_outside_of_a_task_nothing_is_known() -> None:
    assert task_identity() == TaskIdentity(None, None, True)
