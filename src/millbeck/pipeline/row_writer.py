"""Needs pyarrow and numpy: write rows from Spark as batches, collected by partition and sent when full.

The columns are those of Spark's Kafka sink: ``value`` (required), ``key``, ``headers``, ``topic``, ``partition``; keys
and values are binary or string. A row without a partition is placed by its key, as with every Kafka client; rows
without a key go to one partition per Arrow batch, round robin.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millbeck.client.blocking import Blocking
from millbeck.client.columns import rows as columns
from millbeck.client.columns.arrow import null_mask, numeric_array
from millbeck.client.columns.rows import BORDER, MissingColumn, UnsuitableColumns, pieces_of
from millbeck.client.errors import Disconnected, NoBrokerReachable, RequestTimeout
from millbeck.client.producer.bulk import BatchProducer
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.kernel.errors import ApiError, InvalidConfig, InvalidTxnState, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.errors import BrokerUnreachable, InvalidOption, NotExactlyOnce, PipelineError, TopicMissing
from millbeck.pipeline.exactly_once import ONE_TASK_ONLY
from millbeck.pipeline.sink_options import SinkOptions
from millbeck.records.columns import Pieces, RecordBuffer, Rows, partitions_of

Written = dict[TopicPartition, tuple[int, int]]
"""The record count and the offset after the last record (-1 if unknown), by partition."""


class RowWriter:
    """Writes the rows of one task to the log."""

    def __init__(
        self, options: SinkOptions, blocking: Blocking | None = None, *, ticket: TransactionHandle | None = None
    ) -> None:
        self._options = options
        self._blocking = Blocking() if blocking is None else blocking
        try:
            self._producer = self._blocking.make(
                lambda environment: BatchProducer(environment, options.settings, ticket=ticket)
            )
        except InvalidConfig as error:
            raise InvalidOption(f"{error} (settings of the producer are options with the prefix kafka.)") from error
        self._open: dict[TopicPartition, RecordBuffer] = {}
        self._keyless_turn = self._blocking.environment.randomness.below(1 << 16)

    def close(self) -> None:
        self._blocking.close()

    def write(self, batch: Any) -> None:
        """Append the rows of a `pyarrow.RecordBatch`. Raises `PipelineError`."""
        if batch.num_rows == 0:
            return
        rows = rows_of(batch)
        for topic, members in self._topics(batch):
            partitions = self._partitions(batch, rows.keys, topic, members)
            order = np.argsort(partitions, kind="stable")
            ordered = partitions[order]
            cuts = np.flatnonzero(np.diff(ordered)) + 1
            numbers = (order if members is None else members[order]).astype(BORDER).tobytes()
            for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(order)], strict=True):
                self._gather(TopicPartition(topic, int(ordered[begin])), rows, numbers, begin, end)
        self._keyless_turn += 1

    def finish(self) -> Written:
        """Send the remaining rows and wait for all acknowledgements."""
        for partition, buffer in self._open.items():
            if buffer.record_count:
                self._send(partition, buffer)
        self._open.clear()
        written: Written = self._run(self._producer.finish(), "the rows")
        return written

    # partitioning

    def _topics(self, batch: Any) -> Iterator[tuple[str, Any]]:
        """The topics of a batch, each with the indexes of its rows (None for all rows)."""
        if self._options.topic is not None:
            yield self._options.topic, None
            return
        if "topic" not in batch.schema.names:
            raise InvalidOption('rows need a topic: set the option topic, or add a column "topic"')
        encoded = batch.column("topic").dictionary_encode()
        if encoded.null_count:
            raise PipelineError('a row has no topic: its column "topic" is null, and the option topic is not set')
        numbers = np.asarray(encoded.indices)
        for index, name in enumerate(encoded.dictionary.to_pylist()):
            yield name, np.flatnonzero(numbers == index)

    def _partitions(self, batch: Any, keys: Pieces, topic: str, members: Any) -> Any:
        try:
            count = self._run(self._producer.topic(topic), f"topic {topic}").partition_count
        except PipelineError as error:
            if isinstance(error.__cause__, UnknownTopicOrPartition):
                servers = self._options.settings["bootstrap.servers"]
                raise TopicMissing(
                    f"there is no topic {topic} at {servers} to write to; create it (millbeck topic create "
                    f"{topic}), or correct the name"
                ) from error
            raise
        chosen = np.frombuffer(partitions_of(keys, count), dtype=BORDER)
        keyless = self._keyless_turn % count
        chosen = np.where(chosen < 0, keyless, chosen)
        if "partition" in batch.schema.names:
            column = batch.column("partition")
            given = np.asarray(column.fill_null(-1))
            chosen = np.where(null_mask(column), chosen, given)
        if members is not None:
            chosen = chosen[members]
        if len(chosen) and not 0 <= chosen.min() <= chosen.max() < count:
            wrong = chosen.min() if chosen.min() < 0 else chosen.max()
            raise PipelineError(f"a row goes to partition {wrong}, but topic {topic} has {count} partitions")
        return chosen

    # batches

    def _gather(self, partition: TopicPartition, rows: Rows, order: bytes, begin: int, end: int) -> None:
        while begin < end:
            buffer = self._open.get(partition)
            if buffer is None:
                buffer = self._open[partition] = RecordBuffer(self._options.batch_bytes)
            begin = buffer.take(rows, order, begin, end)
            if begin < end:
                self._send(partition, buffer)
                del self._open[partition]

    def _send(self, partition: TopicPartition, buffer: RecordBuffer) -> None:
        sending = self._producer.put(partition, buffer.payload(), buffer.record_count)
        self._run(sending, str(partition))

    def _run(self, question: Any, what: str) -> Any:
        try:
            return self._blocking.run(question)
        except (NoBrokerReachable, Disconnected, RequestTimeout) as error:
            servers = self._options.settings["bootstrap.servers"]
            raise BrokerUnreachable(f"{what} could not be written: no broker answers at {servers}: {error}") from error
        except InvalidTxnState as error:
            raise NotExactlyOnce(f"{error}: {ONE_TASK_ONLY}") from error
        except ApiError as error:
            raise PipelineError(f"{what} could not be written: {error}") from error


def with_partitions(batch: Any, partition_counts: int | Mapping[str, int], turn: int) -> Any:
    """The batch with a column of target partitions; rows without a key are placed round robin, starting at ``turn``.

    ``partition_counts`` is that of every row, or those of the topics in the rows.
    """
    if isinstance(partition_counts, int):
        column = _placed(batch, partition_counts, turn)
    else:
        column = np.zeros(batch.num_rows, dtype=np.int32)
        encoded = batch.column("topic").dictionary_encode()
        topics = np.array([partition_counts[name] for name in encoded.dictionary.to_pylist()], dtype=np.int32)
        counts = topics[np.asarray(encoded.indices)] if batch.num_rows else topics
        for count in set(topics.tolist()):
            column = np.where(counts == count, _placed(batch, count, turn), column).astype(np.int32)
    arrays = [*batch.columns, numeric_array(pa.int32(), column)]
    return pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, "partition"])


def _placed(batch: Any, partition_count: int, turn: int) -> Any:
    if "key" in batch.schema.names:
        keys = pieces_of(batch.column("key"), "key")
        chosen = np.frombuffer(partitions_of(keys, partition_count), dtype=BORDER)
    else:
        chosen = np.full(batch.num_rows, -1, dtype=BORDER)
    in_turn = (np.arange(batch.num_rows) + turn) % partition_count
    return np.where(chosen < 0, in_turn, chosen).astype(np.int32)


def rows_of(batch: Any) -> Rows:
    """The batch's columns as the native kernel needs them; raises `PipelineError` for other column types."""
    try:
        return columns.rows_of(batch)
    except MissingColumn as error:
        raise InvalidOption(str(error)) from error
    except UnsuitableColumns as error:
        raise PipelineError(str(error)) from error
