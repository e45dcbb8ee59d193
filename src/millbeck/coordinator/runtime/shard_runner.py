"""The one caller of a shard: decide, append, replay, and keep the answer until the records are committed.

States
    LOADING -> ACTIVE       every record of the partition was replayed (`loaded`)
    LOADING -> FAILED       a record could not be read or replayed
    ACTIVE  -> FAILED       replaying one's own record raised: memory and log would disagree from here on
    any     -> CLOSED       the partition is led elsewhere, or the node stops (`close`)

Theory of operation. An operation looks at the shard and returns a `Result`. Its records are appended to the shard's own
partition; when that fails nothing has changed. They are replayed at once, so the next operation sees them, and a
snapshot is kept at the offset after them. The answer waits in a line ordered by offset until the high watermark passes;
an operation without records waits for the records it may have seen. When the log takes an append back (the write
failed), the state goes back to the snapshot at that offset and everything parked after it fails. Snapshots below the
high watermark are forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from millbeck.coordinator.runtime.result import Reply, Result
from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID, Shard
from millbeck.coordinator.runtime.timer import Scheduled, Scheduler, Timers
from millbeck.kernel import errors
from millbeck.kernel.deferred import Deferred, DeferredQueue
from millbeck.kernel.errors import ApiError
from millbeck.kernel.timeline import SnapshotRegistry

logger = logging.getLogger(__name__)

R = TypeVar("R")
S = TypeVar("S", bound=Shard[Any])
T = TypeVar("T")

Entry = tuple[bytes, bytes | None]

RECORD_OVERHEAD_BYTES = 32
"""More than the varints of one record take; used only to cut a long result into batches."""


class Appender(Protocol):
    """The shard's own partition."""

    @property
    def batch_size_bytes_max(self) -> int:
        """About how large one batch may become."""

    def append(self, entries: Sequence[Entry], now_ms: int, producer: Producer | None = None) -> int:
        """Append one batch and return the offset of its first record; on `ApiError` nothing was appended.

        With ``producer`` the batch is part of its transaction. If the log takes it back later,
        `ShardHost.write_failed` is called; when it is committed, `ShardHost.high_watermark_moved`."""

    def append_marker(self, marker: TransactionEnd, now_ms: int) -> int:
        """Append the batch that ends a producer's transaction; otherwise as `append`."""


class Producer(NamedTuple):
    """Whose transaction records are part of."""

    producer_id: int
    producer_epoch: int


class TransactionEnd(NamedTuple):
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_committed: bool
    transaction_version: int = 0


class State(Enum):
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
    """What a client of the coordinator is told when the coordinator's own partition refuses an append."""
    mapped = _APPEND_ERRORS.get(type(error))
    return error if mapped is None else mapped()


class _Answer:
    """What is still owed for one operation."""

    __slots__ = ("parked", "reply", "result", "timeout")

    def __init__(self, result: Result[Any, Any], reply: Reply[Any]) -> None:
        self.result = result
        self.reply = reply
        self.parked: Deferred[_Answer] | None = None
        self.timeout: Scheduled | None = None

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


class ShardHost(Generic[S, R]):
    def __init__(
        self,
        build: Callable[[SnapshotRegistry, Timers[R]], S],
        *,
        appender: Appender,
        scheduler: Scheduler,
        commit_timeout_ms: int,
    ) -> None:
        self._appender = appender
        self._scheduler = scheduler
        self._commit_timeout_ms = commit_timeout_ms
        self._registry = SnapshotRegistry()
        self._timers: Timers[R] = Timers(scheduler, self._run_timer)
        self._parked: DeferredQueue[_Answer] = DeferredQueue()
        self.shard = build(self._registry, self._timers)
        self.state = State.LOADING
        self.written_offset = 0
        """The offset after the last record that was replayed."""
        self.committed_offset = 0
        self.loaded_offset = 0
        """Where the log ended when the shard was loaded."""

    @property
    def parked_count(self) -> int:
        return len(self._parked)

    def unavailable(self) -> ApiError:
        """Why this host takes no operations now."""
        match self.state:
            case State.LOADING:
                return errors.CoordinatorLoadInProgress()
            case State.FAILED:
                return errors.CoordinatorNotAvailable()
            case _:
                return errors.NotCoordinator()

    # Operations

    def write(
        self, operation: Callable[[S], Result[R, T]], reply: Reply[T], now_ms: int, producer: Producer | None = None
    ) -> None:
        """Carry ``operation`` out; ``reply`` gets its response once what it decided, and what it saw, is committed.

        With ``producer`` its records are part of that producer's transaction, and count when the transaction ends."""
        if self.state is not State.ACTIVE:
            reply.fail(self.unavailable())
            return
        try:
            result = operation(self.shard)
        except ApiError as error:
            reply.fail(error)
            return
        except Exception:
            logger.exception("a coordinator operation failed before anything was written")
            reply.fail(errors.UnknownServerError())
            return
        self._settle(result, reply, now_ms, producer)

    def end_transaction(self, end: TransactionEnd, reply: Reply[bool], now_ms: int) -> None:
        """Write a transaction's marker and apply or drop what it has written here."""
        if self.state is not State.ACTIVE:
            reply.fail(self.unavailable())
            return
        answer = _Answer(Result(response=True), reply)
        try:
            offset = self._appender.append_marker(end, now_ms)
        except ApiError as error:
            # As the log says it: whoever sends markers knows the log's errors.
            answer.fail(error, now_ms)
            return
        try:
            self.shard.replay_end_transaction(producer_id=end.producer_id, is_committed=end.is_committed)
        except Exception:
            logger.exception("replaying the end of a transaction failed; the shard is unloaded")
            self._unload(State.FAILED, errors.CoordinatorNotAvailable())
            reply.fail(self.unavailable())
            return
        self._written(offset + 1)
        self._finish(answer, now_ms)

    def read(self, operation: Callable[[S, int], T], reply: Reply[T]) -> None:
        """Answer from committed state: ``operation`` gets the shard and the offset to look at."""
        if self.state is not State.ACTIVE:
            reply.fail(self.unavailable())
            return
        try:
            response = operation(self.shard, self.committed_offset)
        except ApiError as error:
            reply.fail(error)
        except Exception:
            logger.exception("a coordinator read failed")
            reply.fail(errors.UnknownServerError())
        else:
            reply.reply(response)

    def _run_timer(
        self, operation: Callable[[int], Result[R, None]], on_failed: Callable[[], None], now_ms: int
    ) -> None:
        if self.state is not State.ACTIVE:
            return
        try:
            result = operation(now_ms)
        except Exception:
            logger.exception("a coordinator timer failed before anything was written")
            on_failed()
            return
        reply: Reply[None] = Reply(lambda _: None, lambda _: on_failed())
        self._settle(result, reply, now_ms)

    def _settle(self, result: Result[R, T], reply: Reply[T], now_ms: int, producer: Producer | None = None) -> None:
        answer = _Answer(result, reply)
        if result.records:
            error = self._write_records(result, now_ms, producer)
            if error is not None:
                # Whatever the operation itself put into timelines goes with the records.
                self._registry.revert_to(self.written_offset)
                answer.fail(error, now_ms)
                return
            if self.state is not State.ACTIVE:
                reply.fail(self.unavailable())
                return
        self._finish(answer, now_ms)

    def _finish(self, answer: _Answer, now_ms: int) -> None:
        if self.committed_offset >= self.written_offset:
            answer.give(now_ms)
        else:
            self._park(answer)

    def _write_records(self, result: Result[R, T], now_ms: int, producer: Producer | None) -> ApiError | None:
        """Append and replay; the error when nothing (or, if not atomic, not everything) was appended."""
        try:
            entries = [self.shard.encode(record) for record in result.records]
        except Exception:
            logger.exception("a coordinator record cannot be encoded")
            return errors.UnknownServerError()
        for first, last in self._cut(entries, result.is_atomic):
            part = entries[first:last]
            try:
                base_offset = (
                    self._appender.append(part, now_ms)
                    if producer is None
                    else self._appender.append(part, now_ms, producer)
                )
            except ApiError as error:
                return coordinator_error(error)
            assert base_offset >= self.written_offset, f"appended at {base_offset}, below {self.written_offset}"
            producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
            try:
                if result.is_replayed:
                    for index, record in enumerate(result.records[first:last]):
                        self.shard.replay(record, offset=base_offset + index, producer_id=producer_id)
            except Exception:
                logger.exception("replaying a coordinator record failed; the shard is unloaded")
                self._unload(State.FAILED, errors.CoordinatorNotAvailable())
                return None
            self._written(base_offset + last - first)
        return None

    def _written(self, next_offset: int) -> None:
        self.written_offset = next_offset
        self._registry.snapshot(next_offset)

    def _cut(self, entries: Sequence[Entry], is_atomic: bool) -> list[tuple[int, int]]:
        """Ranges of entries that each make one batch."""
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

    # Answers

    def _park(self, answer: _Answer) -> None:
        answer.parked = self._parked.park(self.written_offset, answer)
        if answer.result.response is not None or answer.result.on_timeout is not None:
            answer.timeout = self._scheduler.after(self._commit_timeout_ms, lambda _: self._time_out(answer))

    def _time_out(self, answer: _Answer) -> None:
        # The records stay and may still be committed, so nothing is undone: only those who wait are told.
        answer.timeout = None
        error = coordinator_error(errors.RequestTimedOut())
        if answer.result.on_timeout is not None:
            answer.result.on_timeout(error)
        if answer.result.response is not None:
            answer.reply.fail(error)

    def high_watermark_moved(self, high_watermark: int, now_ms: int) -> None:
        """Answer everything whose records are committed now."""
        if high_watermark <= self.committed_offset or self.state is not State.ACTIVE:
            return
        self.committed_offset = high_watermark
        self._registry.forget_below(min(high_watermark, self.written_offset))
        for answer in self._parked.pop_until(high_watermark):
            try:
                answer.give(now_ms)
            except Exception:
                logger.exception("completing a coordinator operation failed; the shard is unloaded")
                answer.reply.fail(errors.CoordinatorNotAvailable())
                self._unload(State.FAILED, errors.CoordinatorNotAvailable())

    def write_failed(self, offset: int, error: ApiError, now_ms: int) -> None:
        """The log took back everything from ``offset`` on: so does the state."""
        if self.state is not State.ACTIVE or offset >= self.written_offset:
            return
        if offset < self.loaded_offset:
            # The log lost what was in it before this host was: there is no state to go back to.
            logger.error("records below the loaded offset %d were taken back from %d on", self.loaded_offset, offset)
            self._unload(State.FAILED, errors.CoordinatorNotAvailable())
            return
        assert offset >= self.committed_offset, "a committed record was taken back"
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
        # The newest first: each takes back a change that was made on top of the one before it.
        for answer in reversed(undone):
            answer.fail(mapped, now_ms)

    # Life

    def reached(self, offset: int, high_watermark: int) -> None:
        """Loading is about to replay from ``offset`` on: remember the state where it stops being committed."""
        if offset >= high_watermark and not self._registry.offsets:
            self._registry.snapshot(high_watermark)

    def loaded(self, *, end_offset: int, high_watermark: int, now_ms: int) -> None:
        """Every record below ``end_offset`` was replayed: take operations."""
        assert self.state is State.LOADING, self.state
        self.written_offset = self.loaded_offset = end_offset
        self.committed_offset = min(high_watermark, end_offset)
        self._registry.snapshot(end_offset)
        self._registry.forget_below(self.committed_offset)
        self.state = State.ACTIVE
        self.shard.on_loaded(now_ms)

    def load_failed(self) -> None:
        assert self.state is State.LOADING, self.state
        self.state = State.FAILED

    def close(self) -> None:
        """The partition is not ours any more: everything held is answered with NOT_COORDINATOR."""
        if self.state is not State.CLOSED:
            self._unload(State.CLOSED, errors.NotCoordinator())

    def _unload(self, state: State, error: ApiError) -> None:
        was_active = self.state is State.ACTIVE
        self.state = state
        self._timers.cancel_all()
        for answer in self._parked.pop_all():
            if answer.timeout is not None:
                answer.timeout.cancel()
            answer.reply.fail(error)
        if was_active:
            self.shard.on_unloaded(error)
