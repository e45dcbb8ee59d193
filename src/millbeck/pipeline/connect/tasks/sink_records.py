"""The records of a sink's share, as the connector gets them: fetched, converted, transformed, counted."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final

from millbeck.client.consumer.fetched_columns import Columns
from millbeck.client.consumer.range_reader import CHUNK_BYTES_MAX, RangeReader, RangeUnreadable
from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.connect.connectors.interface import OffsetRange, SinkShare
from millbeck.pipeline.connect.errors import ConnectError, RetriableError
from millbeck.pipeline.connect.model.record import SinkRecord
from millbeck.pipeline.connect.tasks.conversion import EncodedRecord, StoredRecord
from millbeck.pipeline.connect.tasks.log_writer import LogWriter
from millbeck.pipeline.connect.tasks.process import LogClient, Prepared
from millbeck.pipeline.connect.tasks.tolerance import RecordFailed, Retries, Stage, java_class_of, letter_headers

_ROW: Final = Struct("<6q")
_SLOT: Final = Struct("<4q")
LOGGED_MAX: Final = 100


class ShareRecords:
    """`SinkRecords` of one share. ``letters`` writes dead letters."""

    def __init__(
        self, prepared: Prepared, share: SinkShare, task: int, client: LogClient, letters: LogWriter | None,
        retries: Retries,
    ) -> None:  # fmt: skip
        self._prepared = prepared
        self._share = share
        self._task = task
        self._client = client
        self._letters = letters
        self._retries = retries
        self._stops: dict[TopicPartition, int] = {}
        self._stored: StoredRecord | None = None
        self._is_over = False
        self.place = ""
        """The record that is being worked on."""
        self.read_count = self.record_count = self.filtered_count = self.skipped_count = self.letter_count = 0
        self.logged: list[str] = []

    # SinkRecords

    def __iter__(self) -> Iterator[SinkRecord]:
        prepared = self._prepared
        for found in self._share.ranges:
            origin = found.partition
            for columns in self._columns(found, with_headers=True):
                for stored in records_of(columns):
                    self._stored = stored
                    self.read_count += 1
                    self.place = f"{origin}@{stored.offset}"
                    try:
                        record = self._retries.run(prepared.conversion.decoded, origin, stored)
                    except RecordFailed as error:
                        self._leave_out(origin, stored, error)
                        continue
                    if record is None:
                        self.filtered_count += 1
                        continue
                    self.record_count += 1
                    yield record
        self.place = ""
        self._end()

    def raw_batches(self) -> Iterator[Any] | None:
        if self._prepared.conversion.stages:
            return None
        return self._raw()

    def _raw(self) -> Iterator[Any]:
        from millbeck.client.columns.arrow import record_batch

        for found in self._share.ranges:
            for columns in self._columns(found, with_headers=False):
                self.read_count += columns.row_count
                self.record_count += columns.row_count
                yield record_batch(columns, *found.partition, with_headers=False)
        self._end()

    def reject(self, record: SinkRecord, error: Exception) -> None:
        if isinstance(error, RetriableError):
            raise error
        assert record.origin is not None
        connector = self._prepared.connector
        failed = RecordFailed(Stage.TASK_PUT, f"{type(connector).__module__}.{type(connector).__qualname__}", error)
        stored = self._stored
        if stored is None or stored.offset != record.offset:
            stored = self._again(record)
        self._leave_out(record.origin, stored, failed)
        self.record_count -= 1
        if self._is_over and self._letters is not None:
            self._letters.finish()

    def stop_at(self, partition: TopicPartition, offset: int) -> None:
        self._stops[partition] = offset

    # the outcome

    def positions(self) -> dict[TopicPartition, int]:
        """Up to where each partition is written. Raises `ConnectError` when the connector has left records unread."""
        unread = [found.partition for found in self._share.ranges if found.partition not in self._stops]
        if unread and not self._is_over:
            raise ConnectError(
                f"{self._prepared.settings.class_name} has not read all records of {unread[0]}: write() reads them to"
                " the end, or says with stop_at() how far it has come"
            )
        found: dict[TopicPartition, int] = {}
        for partition, start, end in self._share.ranges:
            position = self._stops.get(partition, end)
            if not start <= position <= end:
                raise ConnectError(f"stop_at: {partition} is read from {start} to {end}, not to {position}")
            found[partition] = position
        return found

    # inside

    def _end(self) -> None:
        """All records are read. Dead letters are stored before the connector can make its records final."""
        self._is_over = True
        if self._letters is not None:
            self._letters.finish()

    def _columns(self, found: OffsetRange, *, with_headers: bool) -> Iterator[Columns]:
        client = self._client
        reader = RangeReader(
            client.cluster, client.consumer, found.partition, found.start, found.end, with_headers=with_headers,
            chunk_bytes_max=CHUNK_BYTES_MAX,
        )  # fmt: skip
        try:
            while True:
                try:
                    chunk = client.run(reader.next_chunk())
                except RangeUnreadable as error:
                    if not self._go_on_behind(error, found, reader):
                        return
                    continue
                if chunk is None:
                    return
                yield from (columns for columns in chunk.columns() if columns.row_count)
        finally:
            client.run(reader.close())

    def _go_on_behind(self, error: RangeUnreadable, found: OffsetRange, reader: RangeReader) -> bool:
        """Records that retention has deleted are skipped as a consumer does it, unless auto.offset.reset is none."""
        start = error.log_start_offset
        if start < 0 or self._prepared.settings.consumer.get("auto.offset.reset") == "none":
            raise error
        self.logged.append(f"{found.partition}: records from {reader.next_offset} on are deleted: it starts at {start}")
        reader.next_offset = start
        return start < found.end

    def _again(self, record: SinkRecord) -> StoredRecord:
        """The stored form of a record that was read some time ago."""
        assert record.origin is not None
        only = OffsetRange(record.origin, record.offset, record.offset + 1)
        for columns in self._columns(only, with_headers=True):
            for stored in records_of(columns):
                return stored
        raise RetriableError(f"{record.origin}@{record.offset} cannot be read again for the dead-letter topic")

    def _leave_out(self, origin: TopicPartition, stored: StoredRecord, failed: RecordFailed) -> None:
        policy = self._prepared.policy
        place = f"{origin}@{stored.offset}"
        if not policy.tolerates:
            self.place = place
            raise failed
        self.skipped_count += 1
        if policy.logs and len(self.logged) < LOGGED_MAX:
            where = f" at {place}" if policy.logs_records else ""
            self.logged.append(
                f"{failed.stage.value} of {failed.class_name} failed{where}: {java_class_of(failed.cause)}"
                f" {failed.cause}"
            )
        if self._letters is None:
            return
        headers = stored.headers
        if policy.has_letter_headers:
            headers += letter_headers(
                failed, topic=origin.topic, partition=origin.partition, offset=stored.offset,
                connector=self._prepared.settings.name, task=self._task,
            )  # fmt: skip
        timestamp = stored.timestamp if stored.timestamp >= 0 else None
        self._letters.write(EncodedRecord(policy.letter_topic, None, timestamp, stored.key, stored.value, headers))
        self.letter_count += 1


def records_of(columns: Columns) -> Iterator[StoredRecord]:
    """The records of columns, one by one."""
    payload = columns.payload
    slots = _SLOT.iter_unpack(columns.header_slots)
    counts = memoryview(columns.header_counts).cast("q") if columns.header_counts else None
    for number, row in enumerate(_ROW.iter_unpack(columns.rows)):
        key_begin, key_size, begin, size, offset, timestamp = row
        headers: tuple[tuple[str, bytes | None], ...] = ()
        if counts is not None and counts[number]:
            headers = tuple(_header(payload, next(slots)) for _ in range(counts[number]))
        yield StoredRecord(
            offset,
            timestamp,
            None if key_size < 0 else bytes(payload[key_begin : key_begin + key_size]),
            None if size < 0 else bytes(payload[begin : begin + size]),
            headers,
        )


def _header(payload: bytes, slot: tuple[int, ...]) -> tuple[str, bytes | None]:
    name_begin, name_size, begin, size = slot
    name = bytes(payload[name_begin : name_begin + name_size]).decode("utf-8", "replace")
    return name, None if size < 0 else bytes(payload[begin : begin + size])
