"""The appends of a partition: staged, written together, and completed when they are acknowledged.

Appends are staged in the log and written together at the end of the event batch. After the write, an append with
``acks=1`` is completed at once, one with ``acks=all`` in offset order as the high watermark passes it. When the log
refuses the write, or this node ceases to lead, everything that waits fails.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from millbeck.kernel.errors import (
    ApiError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
)
from millbeck.kernel.event_batch import EventBatch
from millbeck.records.header import BatchHeader
from millbeck.records.validation import ValidatedBatch
from millbeck.replication.isr import IsrState, ReplicaContext
from millbeck.replication.refusals import RejectedBatches
from millbeck.storage.log import Log
from millbeck.storage.producer_state import AppendOrigin
from millbeck.storage.staging import Staged


class DelayedAppend:
    """An append that waits for its write and, with ``wants_all``, for the high watermark to pass it; subclasses
    implement `complete`. `Partition.append` sets the other fields."""

    __slots__ = ("may_wait", "next_offset", "wants_all")

    wants_all: bool
    next_offset: int
    may_wait: bool
    """Whether the append may have to wait beyond its event batch, for a flush or for another replica."""

    def complete(self, error: ApiError | None) -> None:
        """Called once, never from `Partition.append`: with the error, or None when the append is acknowledged."""
        raise NotImplementedError


class CallbackAppend(DelayedAppend):
    """An append that calls a function when it is completed; ``acks=all`` unless ``wants_all`` is False."""

    __slots__ = ("_callback",)

    def __init__(self, callback: Callable[[ApiError | None], None], *, wants_all: bool = True) -> None:
        self.wants_all = wants_all
        self._callback = callback

    def complete(self, error: ApiError | None) -> None:
        self._callback(error)


def _complete(append: DelayedAppend, error: ApiError | None) -> Exception | None:
    try:
        append.complete(error)
    except Exception as failure:
        return failure
    return None


class PartitionAppends:
    """The part of `Partition` that appends; the state it shares with the rest is set by `Partition`."""

    __slots__ = (
        "_appended_ms",
        "_context",
        "_event_batch",
        "_is_marked",
        "_just_written",
        "_pending",
        "_rejected",
        "_waiting_for_all",
        "_written",
        "high_watermark",
        "is_leader",
        "leader_epoch",
        "leader_id",
        "log",
        "name",
        "replicas",
        "topic_id",
    )

    def __init__(
        self,
        log: Log,
        turn: EventBatch,
        context: ReplicaContext | None,
        written: Callable[[Any, int], None],
    ) -> None:
        self.name = log.topic_partition
        self.topic_id = log.topic_id
        self.log = log
        self.is_leader = False
        self.leader_id = -1
        self.leader_epoch = -1
        self.high_watermark = -1
        self.replicas: IsrState | None = None
        self._context = context
        self._written = written
        self._event_batch = turn
        self._is_marked = False
        self._appended_ms = 0
        self._rejected: RejectedBatches | None = None
        self._pending: list[DelayedAppend] = []
        self._just_written: list[DelayedAppend] = []
        self._waiting_for_all: deque[DelayedAppend] = deque()

    def _write_failed(self) -> None:
        """Report to the node that a write to the log failed; implemented by `Partition`."""
        raise NotImplementedError

    def advance_high_watermark(self) -> None:
        """Called after `write` in the same event batch; implemented by `Partition`."""
        raise NotImplementedError

    def append(
        self,
        validated: ValidatedBatch,
        append: DelayedAppend,
        *,
        now_ms: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> Staged:
        """Stage a validated batch; raises ApiError when it is rejected, and then nothing has changed.

        ``append`` is completed later in the event batch, or after it. A duplicate waits like the batch it repeats,
        which may itself still be above the high watermark. ``transaction_version`` is for a transaction marker.
        """
        header = validated.header
        try:
            if not self.is_leader:
                raise NotLeaderOrFollower(f"{self.name} is led by broker {self.leader_id}")
            if append.wants_all and self.replicas is not None:
                self._check_min_isr(self.replicas)
            if self._rejected is not None and self.log.producer_state.latest(header.producer_id) is None:
                # The log accepts any sequence as the first batch of an unknown producer.
                self._check_predecessor(self._rejected, header, now_ms)
            staged = self.log.stage(
                validated.batch,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                origin=origin,
                header=header,
                transaction_version=transaction_version,
            )
        except (NotLeaderOrFollower, NotEnoughReplicas) as error:
            if origin is AppendOrigin.CLIENT:
                self.remember_rejected(header, type(error), now_ms)
            raise
        except OutOfOrderSequenceNumber:
            if self._rejected is not None:
                self._check_predecessor(self._rejected, header, now_ms)
            raise
        if self._rejected is not None:
            self._rejected.forget(header.producer_id)
            if not len(self._rejected):
                self._rejected = None
        self._appended_ms = now_ms
        append.next_offset = staged.last_offset + 1
        append.may_wait = self.replicas is not None or self.log.waits_for_flush
        self._pending.append(append)
        if not self._is_marked:
            self._is_marked = True
            self._event_batch.add_append(self)
        return staged

    def remember_rejected(self, header: BatchHeader, reason: type[ApiError], now_ms: int) -> None:
        """A client's batch was rejected with an error after which it is sent again: reject those behind it, too."""
        if header.base_sequence < 0:
            return
        if self._rejected is None:
            self._rejected = RejectedBatches()
        self._rejected.add(header.producer_id, header.producer_epoch, header.base_sequence, reason, now_ms)

    def _check_predecessor(self, refusals: RejectedBatches, header: BatchHeader, now_ms: int) -> None:
        """Reject a batch whose predecessor was just rejected, for the same reason: the producer retries both."""
        reason = refusals.before(header.producer_id, header.producer_epoch, header.base_sequence, now_ms)
        if reason is not None:
            raise reason(f"{self.name} has just rejected the batch before this one")

    def _check_min_isr(self, replicas: IsrState) -> None:
        minimum = self.log.config.min_insync_replicas
        if replicas.is_under(minimum):
            raise NotEnoughReplicas(
                f"{self.name} has the in-sync replicas {replicas.isr}, min.insync.replicas is {minimum}"
            )

    def write(self) -> None:
        """Write the staged batches; `advance_high_watermark` then completes each append or lets it wait."""
        self._is_marked = False
        pending, self._pending = self._pending, []
        if not pending:
            # The leader was deposed, or its epoch changed, earlier in the event batch.
            return
        try:
            if self.log.is_offline:
                # The log may have gone offline since, which discards what was staged.
                raise self.log.offline_error()
            self.log.write_staged()
        except ApiError as error:
            self._write_failed()
            self._fail(pending, error)
            return
        except Exception as error:
            # Fail the appends that were not written, and make sure that they are not written later.
            self.log.discard_staged()
            self._fail(pending, KafkaStorageError(f"{self.name}: {error}"))
            raise
        if self._just_written:
            self._just_written += pending
        else:
            self._just_written = pending
        if self.log.is_maintenance_due(self._appended_ms):
            self._written(self, self._appended_ms)

    def _fail(self, appends: Iterable[DelayedAppend], error: ApiError) -> None:
        failures = [failure for append in appends if (failure := _complete(append, error)) is not None]
        if failures:
            raise failures[0]

    def _take_all_appends(self) -> list[DelayedAppend]:
        appends = [*self._waiting_for_all, *self._just_written, *self._pending]
        self._waiting_for_all.clear()
        self._just_written, self._pending = [], []
        return appends

    def _complete_passed(self) -> Exception | None:
        """Complete appends with acks=1 at once, those with acks=all in offset order as the high watermark passes them.

        An unexpected exception of a callback is returned, after all others were called.
        """
        written, self._just_written = self._just_written, []
        waiting = self._waiting_for_all
        watermark = self.high_watermark
        error = self.log.offline_error() if self.log.is_offline else None
        failure: Exception | None = None
        while waiting and (waiting[0].next_offset <= watermark or error is not None):
            append = waiting.popleft()
            failure = _complete(append, None if append.next_offset <= watermark else error) or failure
        for append in written:
            if not append.wants_all or append.next_offset <= watermark:
                failure = _complete(append, None) or failure
            elif error is not None:
                failure = _complete(append, error) or failure
            else:
                self._wait(append)
        return failure

    def _wait(self, append: DelayedAppend) -> None:
        """Insert an append in offset order; only a duplicate's place is not the end."""
        waiting = self._waiting_for_all
        index = len(waiting)
        while index and waiting[index - 1].next_offset > append.next_offset:
            index -= 1
        waiting.insert(index, append)
