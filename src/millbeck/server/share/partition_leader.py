"""A share partition on the partition's leader: the I/O-free `SharePartition` with its log, timer and persister.

States
    LOADING -> ACTIVE    the share coordinator has returned the group's state
    LOADING -> ENDED     the share coordinator is not available, or returned an error
    ACTIVE  -> ENDED     this broker no longer leads the partition, or the share coordinator has a newer leader or state
                         epoch

State changes go to the share coordinator with one write in flight; changes made meanwhile are batched into the next
write. Fetches without acquirable records wait here in order of arrival. They are completed while there are acquirable
records: when the log grows, when records are released, and when the in-flight window has room.

Archived records go to the group's DLQ topic, one run of records at a time (`dead_letters`), and stay in the archiving
state until they are written there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.partition.acquisition import Acquired
from millbeck.coordinator.share.partition.changes import DeadRecords, StateTransition
from millbeck.coordinator.share.partition.share_partition import Acknowledgement, SharePartition, SharePartitionSettings
from millbeck.coordinator.share.shard import UNINITIALIZED_OFFSET, ShareKey, StateWrite
from millbeck.kernel.environment import Bytes
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
)
from millbeck.kernel.timer_wheel import Timer
from millbeck.replication.partition import Partition
from millbeck.server.share import fetched_batches
from millbeck.server.share.dead_letters import DeadLetter, DeadLetterWriter
from millbeck.server.share.persister_requests import PersistedState
from millbeck.server.share.settings import ShareGroupSettings
from millbeck.server.share.statistics import GroupCounters
from millbeck.storage.segment import ColdRead
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.server.share.context import ShareContext
    from millbeck.server.share.persister import Persister

READ_BYTES_MIN: Final = 64 * 1024
PASSES_MAX: Final = 8
"""The maximum number of consecutive reads without records (only control or aborted batches) per fetch."""
FIRST_RECORD_BYTES: Final = 1024
"""The initial estimate of the record size in bytes."""


class SharePartitionLeaderState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    ENDED = "ended"


class WaitingShareFetch(Protocol):
    """A fetch that waits for acquirable records."""

    def evaluate_again(self, led: SharePartitionLeader) -> None: ...


class AcquireParameters(NamedTuple):
    """The limits of a fetch for acquiring records."""

    member_id: str
    max_records: int
    max_bytes: int
    batch_size: int
    is_strict: bool


class AcquiredBatches(NamedTuple):
    records: bytes
    acquired: list[Acquired]
    record_count: int


class DeadLetterSink(NamedTuple):
    """The writer of dead letters, with the group's counters."""

    letters: DeadLetterWriter
    counters: GroupCounters


class SharePartitionLeader:
    def __init__(
        self,
        broker: ShareContext,
        persister: Persister,
        key: ShareKey,
        partition: Partition,
        settings: ShareGroupSettings,
        on_ended: Callable[[SharePartitionLeader], None],
        dead_letters: DeadLetterSink,
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = SharePartitionLeaderState.LOADING
        self.error: ApiError | None = None
        self.settings = settings
        self.waiting: dict[WaitingShareFetch, None] = {}
        self.is_reading = False
        """Whether a thread is reading the log for a fetch; other fetches wait."""
        self._broker = broker
        self._persister = persister
        self._on_ended = on_ended
        self._dead_letters = dead_letters
        self._is_writing_dead_letters = False
        self._machine_settings = SharePartitionSettings()
        self.apply_settings(settings)
        self._machine: SharePartition | None = None
        self._state_epoch = 0
        self._queue: list[tuple[StateTransition, ResponseCallback[bool] | None]] = []
        self._is_writing = False
        self._is_marked = False
        self._timer: Timer | None = None
        self._record_bytes = FIRST_RECORD_BYTES

    # Lifecycle

    def begin(self) -> None:
        """Read the state of the share partition from the share coordinator."""
        self.partition.watchers[self] = None
        self._persister.read(self.key, self.partition.leader_epoch, ResponseCallback(self._found, self._not_found))

    def _found(self, stored: PersistedState) -> None:
        if self.state is not SharePartitionLeaderState.LOADING:
            return
        self._state_epoch = stored.state_epoch
        if stored.start_offset != UNINITIALIZED_OFFSET:
            self._activate(SharePartition(self._machine_settings, stored.start_offset, stored.batches))
            return
        self._broker.spawn(self._find_beginning())

    async def _find_beginning(self) -> None:
        """Find the start offset of a group that has not read this partition before, and persist it for later
        leaders."""
        try:
            offset = await self.settings.reset.offset_in(self._broker, self.partition)
        except ApiError as error:
            self._not_found(error)
            return
        if self.state is SharePartitionLeaderState.LOADING:
            self._activate(SharePartition(self._machine_settings, offset))
            self._submit(StateTransition([], is_applied=True), None)

    def _activate(self, machine: SharePartition) -> None:
        self._machine = machine
        self.state = SharePartitionLeaderState.ACTIVE
        self._write_dead_letters()
        self.wake()

    def _not_found(self, error: ApiError) -> None:
        if self.state is SharePartitionLeaderState.LOADING:
            self.end(client_error(error))

    def end(self, error: ApiError) -> None:
        """Fail the pending writes and fetches with ``error``; the next fetch loads the state again."""
        if self.state is SharePartitionLeaderState.ENDED:
            return
        self.state = SharePartitionLeaderState.ENDED
        self.error = error
        self.partition.watchers.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
        queue, self._queue = self._queue, []
        for _, reply in queue:
            if reply is not None:
                reply.fail(error)
        self._on_ended(self)
        for waiter in list(self.waiting):
            waiter.evaluate_again(self)

    def apply_settings(self, settings: ShareGroupSettings) -> None:
        self.settings = settings
        machine = self._machine_settings
        machine.lock_duration_ms = settings.lock_duration_ms
        machine.delivery_count_limit = settings.delivery_count_limit
        machine.record_locks_max = settings.record_locks_max
        machine.is_renewing_enabled = settings.is_renewing_enabled
        machine.has_dead_letters = bool(settings.dead_letter_topic)

    @property
    def is_idle(self) -> bool:
        """Whether no records are acquired and no write or fetch is pending."""
        machine = self._machine
        return (
            machine is not None
            and not machine.acquired_count
            and not machine.archiving_count
            and not self._queue
            and not self._is_writing
            and not self.waiting
        )

    @property
    def machine(self) -> SharePartition | None:
        """The state machine, for metrics and the simulator."""
        return self._machine

    # Completing waiting fetches

    def readable_end_advanced(self, partition: Partition) -> None:
        if not partition.is_leader or partition.log.is_offline:
            self.end(NotLeaderOrFollower(f"this broker does not lead {partition.name}"))
        elif self.waiting:
            self.wake()

    def wake(self) -> None:
        """Schedule the waiting fetches to be tried once, at the end of this event batch."""
        if self.waiting and not self._is_marked:
            self._is_marked = True
            self._broker.turn.add_completion(self._look_again)

    def _look_again(self) -> None:
        self._is_marked = False
        for waiter in list(self.waiting):
            if self.state is SharePartitionLeaderState.ACTIVE and not self.has_acquirable_records():
                return
            waiter.evaluate_again(self)

    def has_acquirable_records(self) -> bool:
        """Whether a fetch could acquire records now."""
        machine = self._machine
        return (
            machine is not None
            and not self.is_reading
            and machine.may_acquire()
            and machine.next_fetch_offset()
            < self.partition.fetch_upper_bound(committed_only=self.settings.is_read_committed)
        )

    def readable_bytes(self, limit: int) -> int:
        """The bytes a fetch could read, up to ``limit``; an estimate, which includes records acquired by others."""
        if not self.has_acquirable_records():
            return 0
        machine, partition = self._machine, self.partition
        assert machine is not None
        is_committed = self.settings.is_read_committed
        try:
            piece = partition.read(
                machine.next_fetch_offset(), size_bytes_max=limit, committed_only=is_committed, at_least_one=False
            )
        except ApiError:
            # The acquiring fetch gets the error.
            return limit
        if piece is None:
            # The first batch is larger than the limit.
            return limit
        piece.release()
        is_all = piece.upper_offset >= partition.fetch_upper_bound(committed_only=is_committed)
        return piece.size if is_all else limit

    # Acquiring

    def take(self, parameters: AcquireParameters, *, nowait: bool) -> AcquiredBatches | None:
        """Acquire records for a fetch; None when there are none. With ``nowait`` raises `ColdRead`.

        Raises ApiError when the log cannot be read."""
        machine = self._machine
        assert machine is not None
        machine.log_start_moved(self.partition.log.log_start_offset)
        for _ in range(PASSES_MAX):
            offset = machine.next_fetch_offset()
            if not self.has_acquirable_records():
                return None
            taken = self._look(parameters, offset, nowait=nowait)
            if taken is not None or machine.next_fetch_offset() == offset:
                return taken
        # There may be more batches without records: try the waiting fetches again later.
        self.wake()
        return None

    def _look(self, parameters: AcquireParameters, offset: int, *, nowait: bool) -> AcquiredBatches | None:
        """Read once and acquire; a read with only control or aborted batches is skipped over."""
        partition = self.partition
        wanted_bytes = max(READ_BYTES_MIN, parameters.max_records * self._record_bytes * 5 // 4)
        piece = partition.read(
            offset,
            size_bytes_max=min(parameters.max_bytes, wanted_bytes),
            committed_only=self.settings.is_read_committed,
            at_least_one=True,
            nowait=nowait,
        )
        if piece is None:
            return None
        data = piece.file.read_nowait(piece.size, piece.position) if nowait else None
        if data is None and nowait:
            raise ColdRead(lambda: piece.file.read(piece.size, piece.position), piece.release)
        try:
            if data is None:
                data = piece.file.read(piece.size, piece.position)
            aborted: tuple[AbortedTransaction, ...] = ()
            if self.settings.is_read_committed:
                aborted = tuple(partition.log.aborted_transactions(offset, piece.upper_offset))
        finally:
            piece.release()
        return self._acquire(parameters, offset, data, fetched_batches.batches_in(data, aborted))

    def _acquire(
        self, parameters: AcquireParameters, offset: int, data: Bytes, batches: Sequence[fetched_batches.BatchRange]
    ) -> AcquiredBatches | None:
        machine = self._machine
        assert machine is not None
        records = sum(batch.record_count for batch in batches)
        if records:
            self._record_bytes = max(1, (self._record_bytes + len(data) // records) // 2)
        acquired = machine.acquire(
            parameters.member_id,
            [batch.found for batch in batches],
            fetch_offset=offset,
            max_records=parameters.max_records,
            batch_size=parameters.batch_size,
            is_strict=parameters.is_strict,
            now_ms=self._broker.deadlines.now_ms(),
        )
        if machine.has_passed_over:
            # The start offset may have moved, and with it the lag.
            machine.has_passed_over = False
            self._submit(StateTransition([], is_applied=True), None)
        given_up = machine.take_given_up()
        if given_up:
            self._submit(given_up, None)
        if not acquired:
            return None
        if self._timer is None:
            self._arm(self.settings.lock_duration_ms)
        count = sum(each.last_offset - each.first_offset + 1 for each in acquired)
        return AcquiredBatches(fetched_batches.bytes_of(data, batches, acquired), acquired, count)

    # Acknowledging

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], reply: ResponseCallback[bool]
    ) -> None:
        """Apply all acknowledgements of a member or none; ``reply`` is completed when they are durable."""
        machine = self._machine
        if machine is None:
            reply.fail(
                CoordinatorLoadInProgress()
                if self.state is SharePartitionLeaderState.LOADING
                else self.error or NotLeaderOrFollower()
            )
            return
        try:
            change = machine.acknowledge(member_id, acknowledgements, now_ms=self._broker.deadlines.now_ms())
        except ApiError as error:
            reply.fail(error)
            return
        if change:
            self._submit(change, reply)
        else:
            reply.reply(True)

    def release(self, member_id: str) -> None:
        """Release the records acquired by a member whose session has ended."""
        if self._machine is not None and self.state is SharePartitionLeaderState.ACTIVE:
            change = self._machine.release(member_id)
            if change:
                self._submit(change, None)

    def _submit(self, change: StateTransition, reply: ResponseCallback[bool] | None) -> None:
        self._queue.append((change, reply))
        if not self._is_writing:
            self._is_writing = True
            # At the end of this event batch, together with the other changes made in it.
            self._broker.turn.add_completion(self._write)

    def _write(self) -> None:
        machine = self._machine
        queue, self._queue = self._queue, []
        if self.state is not SharePartitionLeaderState.ACTIVE or machine is None or not queue:
            self._is_writing = False
            return
        write = machine.build_write([change for change, _ in queue])
        written = StateWrite(
            state_epoch=self._state_epoch,
            leader_epoch=self.partition.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=write.batches,
        )
        self._persister.write(
            self.key,
            written,
            ResponseCallback(lambda _: self._written(queue), lambda error: self._refused(queue, error)),
        )

    def _written(self, queue: Sequence[tuple[StateTransition, ResponseCallback[bool] | None]]) -> None:
        machine = self._machine
        assert machine is not None
        is_news = False
        for change, reply in queue:
            is_news = machine.written(change) or is_news
            if reply is not None:
                reply.reply(True)
        self._write_next()
        self._write_dead_letters()
        if is_news:
            self.wake()

    def _refused(self, queue: Sequence[tuple[StateTransition, ResponseCallback[bool] | None]], error: ApiError) -> None:
        machine = self._machine
        assert machine is not None
        told = client_error(error)
        for change, reply in queue:
            late = machine.refused(change)
            if late:
                self._queue.append((late, None))
            if reply is not None:
                reply.fail(told)
        if isinstance(error, FencedLeaderEpoch | FencedStateEpoch) or not isinstance(told, CoordinatorNotAvailable):
            # There is a newer leader or state: end, so that the next fetch loads it.
            self._is_writing = False
            self.end(NotLeaderOrFollower(str(error)))
            return
        self._write_next()
        self.wake()

    def _write_next(self) -> None:
        self._is_writing = bool(self._queue)
        if self._queue:
            self._broker.turn.add_completion(self._write)

    # Dead letters

    def _write_dead_letters(self) -> None:
        machine = self._machine
        if machine is None or self._is_writing_dead_letters or not machine.archiving_count:
            return
        dead = machine.take_dead()
        if dead:
            self._is_writing_dead_letters = True
            self._broker.spawn(self._write_all_dead_letters(machine, dead))

    async def _write_all_dead_letters(self, machine: SharePartition, dead: list[DeadRecords]) -> None:
        letters, counters = self._dead_letters
        try:
            while dead:
                for each in dead:
                    topic, is_copied = self.settings.dead_letter_topic, self.settings.copies_dead_letters
                    await letters.write(DeadLetter(self.key.group_id, self.partition, each, topic, is_copied), counters)
                    if self.state is not SharePartitionLeaderState.ACTIVE:
                        # The new leader writes the remaining ones, and possibly this one again.
                        return
                    self._submit(machine.archive(each), None)
                    self.wake()
                dead = machine.take_dead()
        finally:
            self._is_writing_dead_letters = False

    # Locks

    def _arm(self, delay_ms: int) -> None:
        self._timer = self._broker.deadlines.after(max(delay_ms, 0), self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        machine = self._machine
        if machine is None or self.state is not SharePartitionLeaderState.ACTIVE:
            return
        now_ms = self._broker.deadlines.now_ms()
        change = machine.expire(now_ms)
        if change:
            self._submit(change, None)
            self.wake()
        deadline_ms = machine.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms - now_ms)


def client_error(error: ApiError) -> ApiError:
    """Map an error of the share coordinator to the one that a consumer gets."""
    if isinstance(error, FencedLeaderEpoch | FencedStateEpoch):
        return NotLeaderOrFollower(str(error))
    if error.retriable or isinstance(error, NotCoordinator):
        return CoordinatorNotAvailable(str(error))
    return error if error.code > 0 else UnknownServerError(str(error))
