"""The second pass: rewrite the batches with the records that are retained.

A data record is retained when it is above the offset map, or has a key and no later record has the same one; a
tombstone only until the delete horizon of its batch. Aborted records are removed. The first pass over a batch with a
clean tombstone, or over a marker whose transaction has no data left, sets the horizon to ``now +
delete.retention.ms``, stored in place of the base timestamp (KIP-534). Tombstones above the map are not clean yet, so
no horizon is set for them.

Three kinds of batch are retained even without records, as a header only: the last data batch of a live producer, which
holds its sequence number (or its last marker, which holds its epoch), and the last batch of each new segment. The
latter keeps the end offset of the segment: the log end offset does not change, and recovery of an interrupted swap
knows which segments the new one replaces.

A batch that is retained whole is copied unchanged, with its checksum and compression, and neighbouring ones as one
slice. From other batches the retained records are copied byte for byte: base offset and base timestamp do not change,
so neither do the deltas in the records.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import CorruptMessage, InvalidRecord
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.records.compression import Codec, compress
from millbeck.records.header import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    LOG_APPEND_TIME_BIT,
    TRANSACTIONAL_BIT,
)
from millbeck.records.native.compaction import choose, rebase
from millbeck.storage.compaction.job import NO_OFFSET, CompactionJob, CompactionStats
from millbeck.storage.compaction.offset_map import OffsetMap
from millbeck.storage.compaction.output import Output
from millbeck.storage.compaction.payload import damaged, records_of
from millbeck.storage.compaction.source_reader import SourceReader
from millbeck.storage.compaction.transactions import CleanedTransactionMetadata
from millbeck.storage.time_index import NO_TIMESTAMP

_NO_HORIZON: Final = -1
_CLEAN: Final = -(1 << 62)
"""The number of every clean record; lower than that of any dirty record."""


class Rewriter:
    """Rewrites all sources in order, from the log's first batch on."""

    __slots__ = (
        "_dead",
        "_delete_retention_ms",
        "_first_dirty_offset",
        "_latest",
        "_latest_offset",
        "_now_ms",
        "_number",
        "_producers",
        "_run_begin",
        "_run_end",
        "_statistics",
        "_transactions",
    )

    def __init__(self, job: CompactionJob, offset_map: OffsetMap, statistics: CompactionStats) -> None:
        self._producers = job.producers
        self._now_ms = job.now_ms
        self._delete_retention_ms = job.delete_retention_ms
        self._latest = offset_map.latest
        self._latest_offset = offset_map.latest_offset
        self._dead = offset_map.dead
        self._first_dirty_offset = offset_map.first_offset
        self._number = 0
        """Number of the next record that is in the offset map's numbering."""
        self._transactions = CleanedTransactionMetadata(job.aborted)
        self._statistics = statistics
        self._run_begin = 0
        self._run_end = 0

    def rewrite(self, reader: SourceReader, output: Output, *, ends_segment: bool) -> None:
        """Write the retained part of one source to ``output``; ``ends_segment`` when its last batch is the segment's
        last.
        """
        self._run_begin = self._run_end = 0
        statistics = self._statistics
        chunk = reader.chunk
        while reader.advance():
            if reader.chunk is not chunk:
                self._end_run(chunk, output)
                chunk = reader.chunk
                self._run_begin = self._run_end = reader.start
            statistics.batches_read += 1
            statistics.bytes_read += reader.size
            is_last = ends_segment and reader.position + reader.size == reader.source.size
            if reader.attributes & CONTROL_BIT:
                self._rewrite_control(reader, output, is_last)
            else:
                self._rewrite_data(reader, output, is_last)
        self._end_run(chunk, output)

    def _rewrite_data(self, reader: SourceReader, output: Output, is_last: bool) -> None:
        is_aborted = False
        if reader.attributes & TRANSACTIONAL_BIT:
            is_aborted = self._transactions.is_aborted(reader.producer_id, reader.base_offset)
        count = reader.record_count
        if is_aborted or not count:
            self._statistics.records_dropped += count
            self._keep_empty(reader, output, is_last)
            return
        if reader.base_offset > self._latest_offset:
            self._keep(reader, output)
            return
        horizon = reader.base_timestamp if reader.attributes & DELETE_HORIZON_BIT else _NO_HORIZON
        payload = records_of(reader)
        runs: list[int] = []
        dead = b""
        number = _CLEAN
        if reader.last_offset >= self._first_dirty_offset:
            number = self._number
            self._number += count
            if reader.base_offset >= self._first_dirty_offset:
                dead = bytes(self._dead[number : self._number])
        problem, kept, tombstones, max_timestamp, keyless = choose(
            payload,
            0,
            count,
            reader.base_timestamp,
            self._latest,
            number,
            dead,
            horizon != _NO_HORIZON and horizon <= self._now_ms,
            runs,
        )
        if problem:
            raise damaged(reader, "its records are malformed")
        statistics = self._statistics
        statistics.records_read += count
        statistics.records_dropped += count - kept
        statistics.keyless_records += keyless
        if not kept:
            self._keep_empty(reader, output, is_last)
            return
        sets_horizon = tombstones > 0 and horizon == _NO_HORIZON
        if kept == count and not sets_horizon:
            self._keep(reader, output)
            return
        if kept < count:
            payload = b"".join([payload[runs[at] : runs[at + 1]] for at in range(0, len(runs), 2)])
        self._replace(reader, output, payload, kept, max_timestamp, sets_horizon)

    def _rewrite_control(self, reader: SourceReader, output: Output, is_last: bool) -> None:
        if not reader.record_count:
            self._keep_empty(reader, output, is_last)
            return
        if self._is_needed(reader, output):
            self._keep(reader, output)
            return
        has_horizon = reader.attributes & DELETE_HORIZON_BIT != 0
        if has_horizon and reader.base_timestamp <= self._now_ms:
            self._statistics.records_dropped += reader.record_count
            self._keep_empty(reader, output, is_last)
        elif has_horizon or reader.last_offset > self._latest_offset:
            self._keep(reader, output)
        else:
            payload = records_of(reader)
            self._replace(reader, output, payload, reader.record_count, reader.max_timestamp, sets_horizon=True)

    def _is_needed(self, reader: SourceReader, output: Output) -> bool:
        """Whether a control batch must be kept unchanged: data of its transaction was seen, or it is not a transaction
        marker.
        """
        records_of(reader)
        try:
            batch = reader.chunk[reader.start : reader.end]
            marker = control.decode(batches.records_of(batch, check_crc=False)[0])
        except (CorruptMessage, InvalidRecord) as error:
            raise damaged(reader, str(error)) from error
        if not isinstance(marker, control.EndTransaction):
            return True
        if marker.committed:
            return self._transactions.end_committed(reader.producer_id)
        ended = self._transactions.end_aborted(reader.producer_id, reader.last_offset)
        if ended is None:
            return False
        output.aborted.append(ended)
        return True

    def _keep(self, reader: SourceReader, output: Output) -> None:
        """Keep the whole batch: extend the current run."""
        output.note(reader.last_offset, reader.max_timestamp, reader.size)
        if reader.start != self._run_end:
            self._end_run(reader.chunk, output)
            self._run_begin = reader.start
        self._run_end = reader.end

    def _end_run(self, chunk: bytes, output: Output) -> None:
        if self._run_end > self._run_begin:
            output.add(memoryview(chunk)[self._run_begin : self._run_end])
        self._run_begin = self._run_end

    def _keep_empty(self, reader: SourceReader, output: Output, is_last: bool) -> None:
        """No record is retained: keep the header if it is needed."""
        if not is_last and not self._is_last_of_producer(reader):
            self._statistics.batches_dropped += 1
        elif not reader.record_count:
            self._keep(reader, output)
        else:
            kept_bits = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
            self._add_batch(
                reader, output, b"", 0, attributes=reader.attributes & kept_bits, base_timestamp=NO_TIMESTAMP
            )

    def _is_last_of_producer(self, reader: SourceReader) -> bool:
        if reader.producer_id < 0:
            return False
        last = self._producers.get(reader.producer_id)
        if last is None:
            return False
        if last.last_data_offset != NO_OFFSET:
            return last.last_data_offset == reader.last_offset
        return reader.attributes & CONTROL_BIT != 0 and reader.producer_epoch == last.epoch

    def _replace(
        self,
        reader: SourceReader,
        output: Output,
        payload: bytes,
        count: int,
        max_timestamp: int,
        sets_horizon: bool,
    ) -> None:
        """Write a new batch with the retained records."""
        attributes, base_timestamp = reader.attributes, reader.base_timestamp
        if attributes & LOG_APPEND_TIME_BIT:
            max_timestamp = reader.max_timestamp
        if sets_horizon:
            horizon = self._now_ms + self._delete_retention_ms
            payload = rebase(payload, 0, base_timestamp - horizon)
            attributes |= DELETE_HORIZON_BIT
            base_timestamp = horizon
        number = attributes & CODEC_MASK
        if number:
            payload = compress(Codec(number), payload)
        self._add_batch(
            reader,
            output,
            payload,
            count,
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
        )

    def _add_batch(
        self,
        reader: SourceReader,
        output: Output,
        payload: bytes,
        count: int,
        *,
        attributes: int,
        base_timestamp: int,
        max_timestamp: int | None = None,
    ) -> None:
        self._statistics.batches_rewritten += 1
        if max_timestamp is None:
            max_timestamp = reader.max_timestamp
        batch = batches.assemble(
            payload,
            record_count=count,
            last_offset_delta=reader.last_offset - reader.base_offset,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            base_offset=reader.base_offset,
            partition_leader_epoch=reader.leader_epoch,
            attributes=attributes,
            producer_id=reader.producer_id,
            producer_epoch=reader.producer_epoch,
            base_sequence=reader.base_sequence,
        )
        self._end_run(reader.chunk, output)
        output.note(reader.last_offset, max_timestamp, len(batch))
        output.add(batch)
