"""Runs a shard's operations: append their records, replay them, and respond once they are committed.

States
    LOADING -> ACTIVE       every record of the partition was replayed (`loaded`)
    LOADING -> FAILED       a record could not be read or replayed
    ACTIVE  -> FAILED       replaying an appended record raised: memory and log would diverge
    any     -> CLOSED       another broker leads the partition, or the node shuts down (`close`)

Theory of operation. An operation reads the shard and returns a `Result`. Its records are appended to the shard's own
partition; if the append fails nothing has changed. They are replayed at once, so the next operation sees them, and a
snapshot is taken at the next offset. The response is parked in a queue ordered by offset until the high watermark
passes it; an operation without records waits for the commit of the records it may have read. If a write fails after the
append, the state is reverted to the snapshot at that offset and all responses parked after it fail. Snapshots below the
high watermark are deleted.

The loop, with a shard that is one dictionary. `server.coordinators.shard_driver` is the `PartitionWriter` of a node: it
appends to the partition's log and notifies the runner when the high watermark advances or a write fails.

>>> from types import SimpleNamespace
>>> from millbeck.kernel.timeline import TimelineDict
>>> class Names:
...     def __init__(self, registry, timers):
...         self.values = TimelineDict(registry)
...     def encode(self, record):
...         return record[0].encode(), record[1].encode()
...     def replay(self, record, *, offset, producer_id):
...         self.values[record[0]] = record[1]
...     def on_loaded(self, now_ms):
...         pass
>>> class Log:
...     batch_size_bytes_max = 1000
...     def __init__(self):
...         self.entries = []
...     def append(self, entries, now_ms):
...         self.entries += entries
...         return len(self.entries) - len(entries)
>>> log = Log()
>>> never = SimpleNamespace(after=lambda delay_ms, callback: SimpleNamespace(cancel=lambda: None))
>>> runner = ShardRunner(Names, appender=log, scheduler=never, commit_timeout_ms=5000)
>>> runner.loaded(end_offset=0, high_watermark=0, now_ms=0)

An operation reads the current state and returns records and a response. The records are appended and replayed at once;
the response is sent when they are committed:

>>> def put(shard):
...     return Result(records=[("a", "1")], response="stored")
>>> runner.write(put, ResponseCallback(print, print), now_ms=0)
>>> log.entries, runner.shard.values["a"], runner.deferred_count
([(b'a', b'1')], '1', 1)
>>> runner.on_high_watermark_advanced(1, now_ms=0)
stored

A failed write is reverted in the state, and its request fails:

>>> def change(shard):
...     return Result(records=[("a", "2")], response="stored")
>>> runner.write(change, ResponseCallback(print, lambda error: print(type(error).__name__)), now_ms=0)
>>> runner.write_failed(1, errors.KafkaStorageError(), now_ms=0)
NotCoordinator
>>> runner.shard.values["a"]
'1'
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID, Shard
from millbeck.coordinator.runtime.timer import Operation, TimerHandle, TimerKey, Timers, TimerService
from millbeck.kernel import errors
from millbeck.kernel.deferred import Deferred, DeferredQueue
from millbeck.kernel.errors import ApiError
from millbeck.kernel.isolation import Isolation
from millbeck.kernel.timeline import SnapshotRegistry

logger = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])
T = TypeVar("T")

Entry = tuple[bytes, bytes | None]

RECORD_OVERHEAD_BYTES = 32
"""Upper bound of one record's overhead in varints; used only to split a large result into batches."""


class PartitionWriter(Protocol):
    """Appends to the shard's partition."""

    @property
    def batch_size_bytes_max(self) -> int:
        """Approximate maximum size of one batch."""

    def append(
        self,
        entries: Sequence[Entry],
        now_ms: int,
        producer: ProducerIdAndEpoch | None = None,
        *,
        is_size_limited: bool = True,
    ) -> int:
        """Append one batch and return the offset of its first record; on `ApiError` nothing was appended.

        Raises `MessageTooLarge` for a batch larger than ``max.message.bytes``, unless ``is_size_limited`` is False.
        With ``producer`` the batch is part of that producer's transaction. If the write fails later,
        `ShardRunner.write_failed` is called; when it is committed, `ShardRunner.on_high_watermark_advanced`.
        """

    def append_marker(self, marker: TransactionEnd, now_ms: int) -> int:
        """Append a transaction marker; otherwise as `append`."""


class ProducerIdAndEpoch(NamedTuple):
    """The producer whose transaction records belong to."""

    producer_id: int
    producer_epoch: int


class TransactionEnd(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_committed: bool
    transaction_version: int = 0


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


_APPEND_ERRORS: dict[type[ApiError], type[ApiError]] = {
    errors.UnknownTopicOrPartition: errors.CoordinatorNotAvailable,
    errors.NotEnoughReplicas: errors.CoordinatorNotAvailable,
    errors.RequestTimedOut: errors.CoordinatorNotAvailable,
    errors.NotLeaderOrFollower: errors.NotCoordinator,
    errors.KafkaStorageError: errors.NotCoordinator,
    errors.MessageTooLarge: errors.UnknownServerError,
    errors.RecordListTooLarge: errors.UnknownServerError,
    errors.InvalidFetchSize: errors.UnknownServerError,
}


def coordinator_error(error: ApiError) -> ApiError:
    """Map an error of the append to the shard's partition to the error for the coordinator's client."""
    mapped = _APPEND_ERRORS.get(type(error))
    return error if mapped is None else mapped()


class _Answer:
    """The pending response and callbacks of one operation."""

    __slots__ = ("parked", "reply", "result", "timeout")

    def __init__(self, result: Result[Any, Any], reply: ResponseCallback[Any]) -> None:
        self.result = result
        self.reply = reply
        self.parked: Deferred[_Answer] | None = None
        self.timeout: TimerHandle | None = None

    def give(self, now_ms: int) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
        if self.result.on_committed is not None:
            self.result.on_committed(now_ms)
        if self.result.response is not None:
            self.reply.reply(self.result.response)

    def fail(self, error: ApiError, now_ms: int) -> None:
        if self.timeout is not None:
            self.timeout.cancel()
        if self.result.on_failed is not None:
            self.result.on_failed(error, now_ms)
        self.reply.fail(error)


class ShardRunner(Generic[S, R]):
    def __init__(
        self,
        build: Callable[[SnapshotRegistry, Timers[R]], S],
        *,
        appender: PartitionWriter,
        scheduler: TimerService,
        commit_timeout_ms: int,
        isolation: Isolation | None = None,
    ) -> None:
        """``isolation`` records errors that concern one entity of the shard and do not affect the others."""
        self._appender = appender
        self._scheduler = scheduler
        self._commit_timeout_ms = commit_timeout_ms
        self._registry = SnapshotRegistry()
        self._isolation = isolation or Isolation()
        self._timers: Timers[R] = Timers(scheduler, self._run_timer, self._isolation)
        self._parked: DeferredQueue[_Answer] = DeferredQueue()
        self.shard = build(self._registry, self._timers)
        self.state = ShardState.LOADING
        self.written_offset = 0
        """The offset after the last replayed record."""
        self.committed_offset = 0
        self.loaded_offset = 0
        """Log end offset when the shard was loaded."""

    @property
    def deferred_count(self) -> int:
        return len(self._parked)

    @property
    def failure_count(self) -> int:
        """The number of background operations (timers, sweeps) that failed for one entity without affecting the
        others."""
        return self._isolation.failure_count

    def unavailable(self) -> ApiError:
        """The error for requests while the shard is not active."""
        match self.state:
            case ShardState.LOADING:
                return errors.CoordinatorLoadInProgress()
            case ShardState.FAILED:
                return errors.CoordinatorNotAvailable()
            case _:
                return errors.NotCoordinator()

    # Operations

    def write(
        self,
        operation: Callable[[S], Result[R, T]],
        reply: ResponseCallback[T],
        now_ms: int,
        producer: ProducerIdAndEpoch | None = None,
    ) -> None:
        """Run ``operation``; ``reply`` is completed once its records, and the records it read, are committed.

        With ``producer`` the records are part of that producer's transaction and take effect when it commits.
        """
        if self.state is not ShardState.ACTIVE:
            reply.fail(self.unavailable())
            return
        try:
            result = operation(self.shard)
        except ApiError as error:
            reply.fail(error)
            return
        except Exception:
            logger.exception("coordinator operation failed before its records were written")
            reply.fail(errors.UnknownServerError())
            return
        self._complete(result, reply, now_ms, producer)

    def end_transaction(self, end: TransactionEnd, reply: ResponseCallback[bool], now_ms: int) -> None:
        """Write a transaction marker, and apply or discard the transaction's records in this shard."""
        if self.state is not ShardState.ACTIVE:
            reply.fail(self.unavailable())
            return
        answer = _Answer(Result(response=True), reply)
        try:
            offset = self._appender.append_marker(end, now_ms)
        except ApiError as error:
            # Return the log's error unmapped: the sender of markers handles it.
            answer.fail(error, now_ms)
            return
        try:
            self.shard.replay_end_transaction(producer_id=end.producer_id, is_committed=end.is_committed)
        except Exception:
            logger.exception("replaying a transaction marker failed; unloading the shard")
            self._unload(ShardState.FAILED, errors.CoordinatorNotAvailable())
            reply.fail(self.unavailable())
            return
        self._written(offset + 1)
        self._finish(answer, now_ms)

    def read(self, operation: Callable[[S, int], T], reply: ResponseCallback[T]) -> None:
        """Read committed state: ``operation`` gets the shard and the committed offset."""
        if self.state is not ShardState.ACTIVE:
            reply.fail(self.unavailable())
            return
        try:
            response = operation(self.shard, self.committed_offset)
        except ApiError as error:
            reply.fail(error)
        except Exception:
            logger.exception("coordinator read failed")
            reply.fail(errors.UnknownServerError())
        else:
            reply.reply(response)

    def _run_timer(self, key: TimerKey, operation: Operation[R], on_failed: Callable[[], None], now_ms: int) -> None:
        if self.state is not ShardState.ACTIVE:
            return
        try:
            results = operation(now_ms)
        except Exception as error:
            self._isolation.failed(key, error)
            on_failed()
            return

        def failed(error: ApiError) -> None:
            if isinstance(error, errors.UnknownServerError):
                # The error is in the records, not in the log.
                self._isolation.failed(key, error)
            on_failed()

        for result in results if isinstance(results, list) else [results]:
            if self.state is ShardState.ACTIVE:
                self._complete(result, ResponseCallback(lambda _: None, failed), now_ms)

    def _complete(
        self, result: Result[R, T], reply: ResponseCallback[T], now_ms: int, producer: ProducerIdAndEpoch | None = None
    ) -> None:
        answer = _Answer(result, reply)
        if result.records:
            error = self._write_records(result, now_ms, producer)
            if error is not None:
                # Also reverts timeline changes made by the operation itself.
                self._registry.revert_to(self.written_offset)
                answer.fail(error, now_ms)
                return
            if self.state is not ShardState.ACTIVE:
                reply.fail(self.unavailable())
                return
        self._finish(answer, now_ms)

    def _finish(self, answer: _Answer, now_ms: int) -> None:
        if self.committed_offset >= self.written_offset:
            answer.give(now_ms)
        else:
            self._park(answer)

    def _write_records(self, result: Result[R, T], now_ms: int, producer: ProducerIdAndEpoch | None) -> ApiError | None:
        """Append and replay the records; return the error if none (or, if not atomic, not all) were appended."""
        passes_over = not result.is_atomic and result.response is None
        records: list[R] = []
        entries: list[Entry] = []
        for record in result.records:
            try:
                entries.append(self.shard.encode(record))
            except Exception as error:
                if not passes_over:
                    logger.exception("failed to encode a coordinator record")
                    return errors.UnknownServerError()
                self._isolation.failed(("encode", type(record).__name__), error)
            else:
                records.append(record)
        for first, last in self._cut(entries, result.is_atomic):
            part = entries[first:last]
            try:
                base_offset = self._append(part, now_ms, producer, is_size_limited=result.is_size_limited)
            except ApiError as error:
                if passes_over and isinstance(error, errors.MessageTooLarge):
                    # A non-atomic part above the limit is a single record.
                    self._isolation.failed(("append", part[0][0]), error)
                    continue
                return coordinator_error(error)
            assert base_offset >= self.written_offset, f"appended at {base_offset}, below {self.written_offset}"
            producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
            try:
                if result.is_replayed:
                    for index, record in enumerate(records[first:last]):
                        self.shard.replay(record, offset=base_offset + index, producer_id=producer_id)
            except Exception:
                logger.exception("replaying a coordinator record failed; unloading the shard")
                self._unload(ShardState.FAILED, errors.CoordinatorNotAvailable())
                return None
            self._written(base_offset + last - first)
        return None

    def _append(
        self, entries: Sequence[Entry], now_ms: int, producer: ProducerIdAndEpoch | None, *, is_size_limited: bool
    ) -> int:
        if not is_size_limited:
            return self._appender.append(entries, now_ms, producer, is_size_limited=False)
        return (
            self._appender.append(entries, now_ms)
            if producer is None
            else self._appender.append(entries, now_ms, producer)
        )

    def _written(self, next_offset: int) -> None:
        self.written_offset = next_offset
        self._registry.snapshot(next_offset)

    def _cut(self, entries: Sequence[Entry], is_atomic: bool) -> list[tuple[int, int]]:
        """Split entries into ranges that each fit in a batch."""
        if is_atomic:
            return [(0, len(entries))] if entries else []
        size_max = self._appender.batch_size_bytes_max
        ranges: list[tuple[int, int]] = []
        first = size = 0
        for index, (key, value) in enumerate(entries):
            size_entry = len(key) + len(value or b"") + RECORD_OVERHEAD_BYTES
            if size + size_entry > size_max and index > first:
                ranges.append((first, index))
                first, size = index, 0
            size += size_entry
        if entries:
            ranges.append((first, len(entries)))
        return ranges

    # Parked responses

    def _park(self, answer: _Answer) -> None:
        answer.parked = self._parked.park(self.written_offset, answer)
        if answer.result.response is not None or answer.result.on_timeout is not None:
            answer.timeout = self._scheduler.after(self._commit_timeout_ms, lambda _: self._time_out(answer))

    def _time_out(self, answer: _Answer) -> None:
        # The records stay in the log and may still be committed, so nothing is reverted: only the request fails.
        answer.timeout = None
        error = coordinator_error(errors.RequestTimedOut())
        if answer.result.on_timeout is not None:
            answer.result.on_timeout(error)
        if answer.result.response is not None:
            answer.reply.fail(error)

    def on_high_watermark_advanced(self, high_watermark: int, now_ms: int) -> None:
        """Complete the parked responses whose records are committed now."""
        if high_watermark <= self.committed_offset or self.state is not ShardState.ACTIVE:
            return
        self.committed_offset = high_watermark
        self._registry.delete_snapshots_below(min(high_watermark, self.written_offset))
        for answer in self._parked.pop_until(high_watermark):
            try:
                answer.give(now_ms)
            except Exception:
                logger.exception("completing a coordinator operation failed; unloading the shard")
                answer.reply.fail(errors.CoordinatorNotAvailable())
                self._unload(ShardState.FAILED, errors.CoordinatorNotAvailable())

    def write_failed(self, offset: int, error: ApiError, now_ms: int) -> None:
        """Revert the state to ``offset``, because the log has lost all records from there on."""
        if self.state is not ShardState.ACTIVE or offset >= self.written_offset:
            return
        if offset < self.loaded_offset:
            # The log lost records that were replayed on load: there is no snapshot to revert to.
            logger.error(
                "the log lost records below the loaded offset %d, from offset %d on; unloading the shard",
                self.loaded_offset,
                offset,
            )
            self._unload(ShardState.FAILED, errors.CoordinatorNotAvailable())
            return
        assert offset >= self.committed_offset, "a committed record was lost"
        self._registry.revert_to(offset)
        self.written_offset = offset
        mapped = coordinator_error(error)
        undone: list[_Answer] = []
        for answer in self._parked.pop_all():
            assert answer.parked is not None
            if answer.parked.offset > offset:
                undone.append(answer)
            else:
                answer.parked = self._parked.park(answer.parked.offset, answer)
        # Newest first: each operation reverts a change made on top of the one before.
        for answer in reversed(undone):
            answer.fail(mapped, now_ms)

    # Lifecycle

    def reached(self, offset: int, high_watermark: int) -> None:
        """Called before the loader replays from ``offset``: take a snapshot at the high watermark."""
        if offset >= high_watermark and not self._registry.offsets:
            self._registry.snapshot(high_watermark)

    def loaded(self, *, end_offset: int, high_watermark: int, now_ms: int) -> None:
        """Accept operations, because every record below ``end_offset`` was replayed."""
        assert self.state is ShardState.LOADING, self.state
        self.written_offset = self.loaded_offset = end_offset
        self.committed_offset = min(high_watermark, end_offset)
        self._registry.snapshot(end_offset)
        self._registry.delete_snapshots_below(self.committed_offset)
        self.state = ShardState.ACTIVE
        self.shard.on_loaded(now_ms)

    def on_load_failed(self) -> None:
        assert self.state is ShardState.LOADING, self.state
        self.state = ShardState.FAILED

    def close(self) -> None:
        """Complete all pending requests with NOT_COORDINATOR, because this broker no longer leads the partition."""
        if self.state is not ShardState.CLOSED:
            self._unload(ShardState.CLOSED, errors.NotCoordinator())

    def _unload(self, state: ShardState, error: ApiError) -> None:
        was_active = self.state is ShardState.ACTIVE
        self.state = state
        self._timers.cancel_all()
        for answer in self._parked.pop_all():
            if answer.timeout is not None:
                answer.timeout.cancel()
            answer.reply.fail(error)
        if was_active:
            self.shard.on_unloaded(error)
