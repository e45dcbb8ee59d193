"""Needs pyspark: ``format("millbeck")`` as a sink, batch and streaming.

For every batch Spark makes a writer in a Python process beside the driver and pickles it to the tasks; each task writes
its rows and returns what it wrote, and a writer that is made anew beside the driver hears of all of them in ``commit``.
Without transactions nothing is left to do there: what a task has returned is acknowledged by the brokers.

With ``delivery=exactly_once`` a writer takes its transaction the moment it is pickled, since that is what sets the one
for the tasks apart from the one for ``commit``, and the tickets come back with the tasks' messages. A task that Spark
tries again would repeat sequences of its first attempt, and so it is refused: the batch fails and is run anew.

Each of these processes lives for a moment, for every batch: it loads only what it does itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from millbeck.pipeline.errors import NotExactlyOnce
from millbeck.pipeline.plainly import plainly
from millbeck.pipeline.sink_options import SinkOptions

if TYPE_CHECKING:
    from millbeck.client.producer.shared_transaction import Ticket
    from millbeck.pipeline.exactly_once import Begun
    from millbeck.pipeline.outgoing import Written

Messages = list[WriterCommitMessage | None]


class TaskWritten(WriterCommitMessage):
    """What one task wrote, in which transaction, for which query."""

    def __init__(
        self, written: Written, ticket: Ticket | None = None, query: str | None = None, is_repeated: bool = False
    ) -> None:
        self.written = written
        self.ticket = ticket
        self.query = query
        self.is_repeated = is_repeated
        """The whole batch has been written before; nothing was written now."""


class TaskIdentity(NamedTuple):
    """What a task knows of itself."""

    query: str | None
    batch: int | None
    is_first_attempt: bool


class _Writer:
    """What batch and streaming writers have in common."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._begun: Begun | None = None

    @plainly
    def __getstate__(self) -> Mapping[str, Any]:
        if self._options.is_exactly_once and self._begun is None:
            from millbeck.pipeline import exactly_once

            self._begun = exactly_once.begin(self._options)
        return {"_options": self._options, "_begun": self._begun}

    def _write(self, iterator: Iterator[Any], *, is_streaming: bool) -> TaskWritten:
        if not self._options.is_exactly_once:
            return TaskWritten(write_rows(self._options, iterator))
        assert self._begun is not None
        ticket = self._begun.ticket
        task = task_identity()
        if not task.is_first_attempt:
            raise NotExactlyOnce(
                "this is another attempt of a task that failed or was thought slow: with delivery=exactly_once the "
                "whole batch is run again instead. See the first attempt for what went wrong"
            )
        if not is_streaming:
            return TaskWritten(write_rows(self._options, iterator, ticket), ticket)
        if task.query is None or task.batch is None:
            raise NotExactlyOnce("this Spark does not tell its tasks which batch they run: a repeated one is unknown")
        if self._begun.has_been_written(task.query, task.batch):
            for _ in iterator:
                # Spark wants to be rid of them all the same.
                pass
            return TaskWritten({}, ticket, task.query, is_repeated=True)
        return TaskWritten(write_rows(self._options, iterator, ticket), ticket, task.query)

    def _commit(self, messages: Messages, batch: int) -> None:
        found = [message for message in messages if isinstance(message, TaskWritten)]
        ticket = _one_ticket(found)
        if ticket is None or any(message.is_repeated for message in found):
            return
        from millbeck.pipeline import exactly_once

        query = next((message.query for message in found), None)
        exactly_once.commit(self._options, ticket, [message.written for message in found], query, batch)

    def _abort(self, messages: Messages) -> None:
        ticket = _one_ticket([message for message in messages if isinstance(message, TaskWritten)])
        if ticket is not None:
            from millbeck.pipeline import exactly_once

            exactly_once.abort(self._options, ticket)


class BatchWriter(_Writer, DataSourceArrowWriter):
    @plainly
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._write(iterator, is_streaming=False)

    @plainly
    def commit(self, messages: Messages) -> None:
        self._commit(messages, -1)

    @plainly
    def abort(self, messages: Messages) -> None:
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    @plainly
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._write(iterator, is_streaming=True)

    @plainly
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._commit(messages, batchId)

    @plainly
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._abort(messages)


def write_rows(options: SinkOptions, batches: Iterator[Any], ticket: Ticket | None = None) -> Written:
    from millbeck.pipeline.outgoing import Outgoing

    outgoing = Outgoing(options, ticket=ticket)
    try:
        for batch in batches:
            outgoing.write(batch)
        return outgoing.finish()
    finally:
        outgoing.close()


def task_identity() -> TaskIdentity:
    """From Spark's context; the properties are not documented, so they may be missing one day."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(None, None, True)
    batch = context.getLocalProperty("streaming.sql.batchId")
    return TaskIdentity(
        context.getLocalProperty("sql.streaming.queryId"),
        int(batch) if batch is not None and batch.isdigit() else None,
        context.attemptNumber() == 0,
    )


def _one_ticket(messages: list[TaskWritten]) -> Ticket | None:
    tickets = {message.ticket for message in messages if message.ticket is not None}
    if len(tickets) > 1:
        raise NotExactlyOnce("the tasks of one batch wrote into different transactions")
    return next(iter(tickets), None)
