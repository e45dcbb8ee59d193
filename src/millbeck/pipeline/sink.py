"""Needs pyspark: ``format("millbeck")`` as a sink, batch and streaming.

For every batch Spark creates a writer in a Python process beside the driver and pickles it to the tasks; each task
writes its rows and returns what it wrote. Another writer, created beside the driver, receives all results in
``commit``. Without transactions nothing is left to do there: a task returns only after the brokers have acknowledged
its rows.

With ``delivery=exactly_once`` a writer begins its transaction when it is pickled, since only the writer for the tasks
is pickled, not the one for ``commit``; the tickets come back with the tasks' messages. A task that Spark retries would
repeat the sequences of its first attempt, so it is refused: the batch fails and is run again.

Each of these processes lives only briefly, for every batch: it imports only what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from millbeck.pipeline.errors import NotExactlyOnce
from millbeck.pipeline.short_errors import with_short_errors
from millbeck.pipeline.sink_options import SinkOptions

if TYPE_CHECKING:
    from millbeck.client.producer.shared_transaction import TransactionHandle
    from millbeck.pipeline.exactly_once import BatchTransaction
    from millbeck.pipeline.row_writer import Written

Messages = list[WriterCommitMessage | None]


class TaskWritten(WriterCommitMessage):
    """The result of one task: records written, transaction and query."""

    def __init__(
        self,
        written: Written,
        ticket: TransactionHandle | None = None,
        query: str | None = None,
        batch: int = -1,
        is_repeated: bool = False,
    ) -> None:
        self.written = written
        self.ticket = ticket
        self.query = query
        self.batch = batch
        self.is_repeated = is_repeated
        """Whether the batch was committed before, so that nothing was written now."""


class TaskIdentity(NamedTuple):
    """The ids of a task, from Spark's context."""

    query: str | None
    batch: int | None
    is_first_attempt: bool


class _Writer:
    """Code shared by the batch and the streaming writer."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._begun: BatchTransaction | None = None

    @with_short_errors
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
                "this is another attempt of a task that failed or was slow: with delivery=exactly_once the whole "
                "batch is repeated instead. See the first attempt for the error"
            )
        if not is_streaming:
            return TaskWritten(write_rows(self._options, iterator, ticket), ticket)
        if task.query is None or task.batch is None:
            raise NotExactlyOnce(
                "this version of Spark does not pass the batch id to its tasks: a repeated batch is not recognised"
            )
        if self._begun.has_been_written(task.query, task.batch):
            for _ in iterator:
                # Spark requires that the rows are consumed anyway.
                pass
            return TaskWritten({}, ticket, task.query, task.batch, is_repeated=True)
        return TaskWritten(write_rows(self._options, iterator, ticket), ticket, task.query, task.batch)

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
    @with_short_errors
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._write(iterator, is_streaming=self._options.is_each_batch)

    @with_short_errors
    def commit(self, messages: Messages) -> None:
        self._commit(messages, max([each.batch for each in messages if isinstance(each, TaskWritten)], default=-1))

    @with_short_errors
    def abort(self, messages: Messages) -> None:
        self._abort(messages)


class StreamWriter(_Writer, DataSourceStreamArrowWriter):
    @with_short_errors
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return self._write(iterator, is_streaming=True)

    @with_short_errors
    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._commit(messages, batchId)

    @with_short_errors
    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        self._abort(messages)


def write_rows(options: SinkOptions, batches: Iterator[Any], ticket: TransactionHandle | None = None) -> Written:
    from millbeck.pipeline.row_writer import RowWriter

    outgoing = RowWriter(options, ticket=ticket)
    try:
        for batch in batches:
            outgoing.write(batch)
        return outgoing.finish()
    finally:
        outgoing.close()


def task_identity() -> TaskIdentity:
    """The task's ids from Spark's context; these properties are undocumented and may be missing in a later version."""
    context = TaskContext.get()
    if context is None:
        return TaskIdentity(None, None, True)
    batch = context.getLocalProperty("streaming.sql.batchId")
    return TaskIdentity(
        context.getLocalProperty("sql.streaming.queryId"),
        int(batch) if batch is not None and batch.isdigit() else None,
        context.attemptNumber() == 0,
    )


def _one_ticket(messages: list[TaskWritten]) -> TransactionHandle | None:
    tickets = {message.ticket for message in messages if message.ticket is not None}
    if len(tickets) > 1:
        raise NotExactlyOnce("the tasks of one batch wrote into different transactions")
    return next(iter(tickets), None)
