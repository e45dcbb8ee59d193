"""A topic's partition as this node leads it: append, high watermark, reads, and those who wait for either.

Appends are staged in the log and written together at the end of the turn. What waits for a written batch is settled in
offset order: at once with ``acks=1``, when the high watermark has passed it with ``acks=all``. Whoever follows the
partition (a parked fetch, a session, a coordinator's shard) is told at most once a turn that readable data grew.

With one replica the high watermark is the end of the log, or the flushed end where ``flush.messages=1`` promises that
nothing is acknowledged before it is on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Protocol

from millbeck.kernel.errors import (
    ApiError,
    FencedLeaderEpoch,
    KafkaStorageError,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.records.validation import Validated
from millbeck.replication.turn import Turn
from millbeck.storage.log import Log
from millbeck.storage.reading import LogSlice
from millbeck.storage.staging import Staged

NO_EPOCH: Final = -1


class Watcher(Protocol):
    """Someone to be told that a partition has more to read (or nothing any more)."""

    def readable_grew(self, partition: Partition) -> None: ...


class Settle(Protocol):
    """Called once for each append: with the error, or None when it counts as acknowledged."""

    def __call__(self, error: ApiError | None, /) -> None: ...


class PendingAppend:
    __slots__ = ("next_offset", "settle", "wants_all")

    def __init__(self, next_offset: int, wants_all: bool, settle: Settle) -> None:
        self.next_offset = next_offset
        self.wants_all = wants_all
        self.settle = settle


def _settle(append: PendingAppend, error: ApiError | None) -> Exception | None:
    try:
        append.settle(error)
    except Exception as surprise:
        return surprise
    return None


class Partition:
    __slots__ = (
        "_appended_ms",
        "_is_marked",
        "_pending",
        "_turn",
        "_waiting_for_all",
        "_written",
        "high_watermark",
        "leader_epoch",
        "log",
        "name",
        "partition_epoch",
        "topic_id",
        "watchers",
    )

    def __init__(
        self,
        name: TopicPartition,
        topic_id: Uuid,
        log: Log,
        turn: Turn,
        *,
        leader_epoch: int,
        partition_epoch: int,
        written: Callable[[Partition, int], None],
    ) -> None:
        """``written`` is told of every write, with the wall time of its last append: to flush where it is time."""
        self.name = name
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.high_watermark = log.end_offset
        self._written = written
        log.assign_epoch(leader_epoch, log.end_offset)
        self.watchers: dict[Watcher, None] = {}
        self._turn = turn
        self._is_marked = False
        self._appended_ms = 0
        self._pending: list[PendingAppend] = []
        self._waiting_for_all: list[PendingAppend] = []

    def lead(self, leader_epoch: int, partition_epoch: int) -> None:
        """The controller named this node the leader, perhaps anew."""
        if leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            self.log.assign_epoch(leader_epoch, self.log.end_offset)
        self.partition_epoch = partition_epoch

    # appends

    def append(self, validated: Validated, *, wants_all: bool, now_ms: int, settle: Settle) -> Staged:
        """Stage a validated batch; raises ApiError when it is refused, and then nothing has changed.

        ``settle`` is called in a later step of the turn, never from here. A duplicate waits like the batch it repeats,
        which may itself still be on its way to the high watermark.
        """
        staged = self.log.stage(validated.batch, leader_epoch=self.leader_epoch, now_ms=now_ms, header=validated.header)
        self._appended_ms = now_ms
        self._pending.append(PendingAppend(staged.last_offset + 1, wants_all, settle))
        if not self._is_marked:
            self._is_marked = True
            self._turn.mark_append(self)
        return staged

    def write(self) -> None:
        """Write what was staged this turn; each waiting append is settled or goes on to wait."""
        self._is_marked = False
        pending, self._pending = self._pending, []
        try:
            if self.log.is_offline:
                # It may have gone offline since, with everything that was staged.
                raise self.log.offline_error()
            self.log.write_staged()
        except ApiError as error:
            self._fail(pending, error)
            return
        except Exception as error:
            # Nobody is to wait for what was not written, and nothing of it may be written later.
            self.log.discard_staged()
            self._fail(pending, KafkaStorageError(f"{self.name}: {error}"))
            raise
        self._waiting_for_all += pending
        self._turn.mark_watermark(self)
        self._written(self, self._appended_ms)

    def _fail(self, appends: Iterable[PendingAppend], error: ApiError) -> None:
        surprises = [surprise for append in appends if (surprise := _settle(append, error)) is not None]
        if surprises:
            raise surprises[0]

    def advance_high_watermark(self) -> None:
        """Move it as far as it may go, settle what it passed, and tell the watchers.

        When the log has gone offline it moves no more: whoever waits for it is told so.
        """
        log = self.log
        watermark = log.flushed_offset if self.waits_for_flush else log.end_offset
        grew = watermark > self.high_watermark
        if grew:
            self.high_watermark = watermark
        surprise = self._settle_passed() if self._waiting_for_all else None
        if grew or log.is_offline:
            for watcher in list(self.watchers):
                watcher.readable_grew(self)
        if surprise is not None:
            raise surprise

    def _settle_passed(self) -> Exception | None:
        """Appends with acks=1 leave at once, those with acks=all in offset order as the watermark passes them.

        What a settlement raises by mistake is returned: the others have theirs all the same.
        """
        waiting, self._waiting_for_all = self._waiting_for_all, []
        error = self.log.offline_error() if self.log.is_offline else None
        surprise: Exception | None = None
        for append in waiting:
            if not append.wants_all or append.next_offset <= self.high_watermark:
                surprise = _settle(append, None) or surprise
            elif error is not None:
                surprise = _settle(append, error) or surprise
            else:
                self._waiting_for_all.append(append)
        return surprise

    def flushed(self) -> None:
        """A flush ended, or the log went offline; the high watermark, or those who wait for it, may move on now."""
        self._turn.mark_watermark(self)

    def log_start_moved(self) -> None:
        """Readers are told of a new log start, as of new data."""
        for watcher in list(self.watchers):
            watcher.readable_grew(self)

    def close(self, error: ApiError) -> None:
        """The partition goes away: whoever waits is answered with ``error``."""
        waiting, self._waiting_for_all = self._waiting_for_all, []
        pending, self._pending = self._pending, []
        for watcher in list(self.watchers):
            watcher.readable_grew(self)
        self._fail([*waiting, *pending], error)

    @property
    def waits_for_flush(self) -> bool:
        return self.log.config.flush_messages == 1

    # reads

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """A client that names an epoch must name ours."""
        if current_leader_epoch == NO_EPOCH or current_leader_epoch == self.leader_epoch:
            return
        if current_leader_epoch < self.leader_epoch:
            raise FencedLeaderEpoch
        raise UnknownLeaderEpoch

    def readable_end(self, *, committed_only: bool) -> int:
        """Where a consumer must stop: the high watermark, or the last stable offset for read_committed."""
        if committed_only:
            return self.log.last_stable_offset(self.high_watermark)
        return self.high_watermark

    def read(
        self, offset: int, *, size_bytes_max: int, committed_only: bool, at_least_one: bool, nowait: bool = True
    ) -> LogSlice | None:
        """Whole batches from ``offset`` on, below what this reader may see; None when there is nothing yet.

        With ``nowait`` it never waits for the disk: `ColdRead` carries the job that warms what the search needs.
        """
        log = self.log
        if offset < log.log_start_offset or offset > log.end_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.name} is outside {log.log_start_offset} to {log.end_offset}"
            )
        upto_offset = self.readable_end(committed_only=committed_only)
        if offset >= upto_offset:
            return None
        return log.read(
            offset, size_bytes_max=size_bytes_max, upto_offset=upto_offset, at_least_one=at_least_one, nowait=nowait
        )
