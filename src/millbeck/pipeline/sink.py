"""Needs pyspark: ``format("millbeck")`` as a sink, batch and streaming.

Spark makes a writer in a Python process beside the driver and pickles it to the tasks; each task writes its rows and
returns what it wrote, and a writer that is made anew beside the driver hears of all of them in ``commit``. Without
transactions nothing is left to do there: what a task has returned is acknowledged by the brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.outgoing import Outgoing, Written
from millbeck.pipeline.sink_options import EXACTLY_ONCE, SinkOptions


class TaskWritten(WriterCommitMessage):
    """What one task wrote."""

    def __init__(self, written: Written) -> None:
        self.written = written


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = _supported(options)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_task(self._options, iterator)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions) -> None:
        self._options = _supported(options)

    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        return write_task(self._options, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing: every row is acknowledged already."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing: what was written stays, and the batch is written again."""


def write_task(options: SinkOptions, batches: Iterator[Any]) -> TaskWritten:
    outgoing = Outgoing(options)
    try:
        for batch in batches:
            outgoing.write(batch)
        return TaskWritten(outgoing.finish())
    finally:
        outgoing.close()


def _supported(options: SinkOptions) -> SinkOptions:
    if options.is_exactly_once:
        raise InvalidOption(f"delivery={EXACTLY_ONCE} is not supported yet")
    return options
