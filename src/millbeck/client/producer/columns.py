"""Needs pyarrow and numpy: Arrow columns as batches of the producer, without an object per record.

Rows go where `Producer.send` would send them: to the partition in the column ``partition``, else by key; rows without a
key go to one partition per record batch. Their batches take their turn behind records sent before, with the producer's
sequences and in its transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from millbeck.client.columns.arrow import null_mask
from millbeck.client.columns.rows import BORDER, UnsuitableColumns, rows_of
from millbeck.client.producer.batch import ProducerBatch, RecordMetadata
from millbeck.kernel.ids import TopicPartition
from millbeck.records.builder import EncodedBatchBuilder
from millbeck.records.columns import RecordBuffer, partitions_of
from millbeck.records.compression import Codec


class EncodedRows(NamedTuple):
    """Encoded records of one partition."""

    partition: int
    payload: bytes
    record_count: int


def encoded(table: Any, partition_count: int, keyless: int, batch_bytes: int) -> Iterator[EncodedRows]:
    """The rows of an Arrow table or record batch as the records of batches; raises `UnsuitableColumns`."""
    for batch in table.to_batches() if hasattr(table, "to_batches") else [table]:
        if batch.num_rows == 0:
            continue
        rows = rows_of(batch)
        chosen = np.frombuffer(partitions_of(rows.keys, partition_count), dtype=BORDER)
        chosen = np.where(chosen < 0, keyless, chosen)
        if "partition" in batch.schema.names:
            column = batch.column("partition")
            chosen = np.where(null_mask(column), chosen, np.asarray(column.fill_null(-1)))
        if not 0 <= chosen.min() <= chosen.max() < partition_count:
            wrong = chosen.min() if chosen.min() < 0 else chosen.max()
            raise UnsuitableColumns(f"a row goes to partition {wrong}, but the topic has {partition_count} partitions")
        order = np.argsort(chosen, kind="stable")
        ordered = chosen[order]
        cuts = (np.flatnonzero(np.diff(ordered)) + 1).tolist()
        numbers = order.astype(BORDER).tobytes()
        for begin, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
            place = begin
            while place < end:
                buffer = RecordBuffer(batch_bytes)
                place = buffer.take(rows, numbers, place, end)
                yield EncodedRows(int(ordered[begin]), buffer.payload(), buffer.record_count)


class ColumnBatch(ProducerBatch):
    """A batch of encoded records with one future for all of them."""

    __slots__ = ("_count", "_timestamp")

    def __init__(
        self, topic: str, rows: EncodedRows, timestamp: int, codec: Codec, level: int | None, now_s: float
    ) -> None:
        builder = EncodedBatchBuilder(rows.payload, rows.record_count, timestamp, codec, level)
        super().__init__(TopicPartition(topic, rows.partition), builder, now_s)
        self.futures.append(asyncio.get_running_loop().create_future())
        self.timestamps.append(timestamp)
        self._count = rows.record_count

    @property
    def record_count(self) -> int:
        return self._count

    def halves(self, codec: Codec, level: int | None) -> list[ProducerBatch]:
        whole = self.futures[0]
        parts = [whole.get_loop().create_future() for _ in range(self._count)]
        asyncio.gather(*parts, return_exceptions=True).add_done_callback(
            lambda done: _complete_whole(whole, done.result())
        )
        self.futures = parts
        return super().halves(codec, level)


def _complete_whole(whole: asyncio.Future[RecordMetadata], results: list[Any]) -> None:
    if whole.done():
        return
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        whole.set_exception(errors[0])
    else:
        whole.set_result(results[0])
