"""A share partition on the partition's leader: the pure machine with its log, its timer and its way to the coordinator.

States
    LOADING -> ACTIVE    the share coordinator has said where the group stands
    LOADING -> ENDED     it could not be asked, or has refused
    ACTIVE  -> ENDED     the partition is led elsewhere or gone, or the coordinator knows a newer leader or state

Changes go to the share coordinator one write at a time; what is said meanwhile goes with the next. Fetches that find
nothing wait here, in the order in which they came, and are looked at again when the log grows, when records come back
and when the window has room: only for as long as there is something to be had.

What the group has given up goes to its dead-letter topic, one run of records after the other (`dead_letters`), and is
over when it stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.partition.acquiring import Acquired
from millbeck.coordinator.share.partition.changes import Change, Dead
from millbeck.coordinator.share.partition.machine import Acknowledgement, Settings, SharePartition
from millbeck.coordinator.share.shard import UNINITIALIZED_OFFSET, ShareKey, Written
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
from millbeck.server.share import reading
from millbeck.server.share.dead_letters import DeadLetters, Letter
from millbeck.server.share.errands import Stored
from millbeck.server.share.settings import GroupSettings
from millbeck.server.share.statistics import GroupCounters
from millbeck.storage.segment import ColdRead
from millbeck.storage.txn_index import AbortedTransaction

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.share.persister import Persister

READ_BYTES_MIN: Final = 64 * 1024
PASSES_MAX: Final = 8
"""How many reads without a record for anybody a fetch makes in a row."""
FIRST_RECORD_BYTES: Final = 1024
"""What a record is taken to be large before some were seen."""


class State(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    ENDED = "ended"


class Waiter(Protocol):
    """A fetch that waits for something to be had."""

    def look_again(self, led: LedShare) -> None: ...


class Wish(NamedTuple):
    """What a fetch wants."""

    member_id: str
    max_records: int
    max_bytes: int
    batch_size: int
    is_strict: bool


class Taken(NamedTuple):
    records: bytes
    acquired: list[Acquired]
    record_count: int


class Burial(NamedTuple):
    """What dead letters are written with."""

    letters: DeadLetters
    counters: GroupCounters


class LedShare:
    def __init__(
        self,
        broker: Broker,
        persister: Persister,
        key: ShareKey,
        partition: Partition,
        settings: GroupSettings,
        on_ended: Callable[[LedShare], None],
        burial: Burial,
    ) -> None:
        self.key = key
        self.partition = partition
        self.state = State.LOADING
        self.error: ApiError | None = None
        self.settings = settings
        self.waiting: dict[Waiter, None] = {}
        self.is_reading = False
        """A thread reads for one of the fetches; the others wait."""
        self._broker = broker
        self._persister = persister
        self._on_ended = on_ended
        self._burial = burial
        self._is_burying = False
        self._machine_settings = Settings()
        self.apply_settings(settings)
        self._machine: SharePartition | None = None
        self._state_epoch = 0
        self._queue: list[tuple[Change, Reply[bool] | None]] = []
        self._is_writing = False
        self._is_marked = False
        self._timer: Timer | None = None
        self._record_bytes = FIRST_RECORD_BYTES

    # Life

    def begin(self) -> None:
        """Ask the share coordinator where the group stands."""
        self.partition.watchers[self] = None
        self._persister.read(self.key, self.partition.leader_epoch, Reply(self._found, self._not_found))

    def _found(self, stored: Stored) -> None:
        if self.state is not State.LOADING:
            return
        self._state_epoch = stored.state_epoch
        if stored.start_offset != UNINITIALIZED_OFFSET:
            self._activate(SharePartition(self._machine_settings, stored.start_offset, stored.batches))
            return
        self._broker.spawn(self._find_beginning())

    async def _find_beginning(self) -> None:
        """The group has never read this partition: where it begins is kept at once, for the leaders to come."""
        try:
            offset = await self.settings.reset.offset_in(self._broker, self.partition)
        except ApiError as error:
            self._not_found(error)
            return
        if self.state is State.LOADING:
            self._activate(SharePartition(self._machine_settings, offset))
            self._submit(Change([], is_applied=True), None)

    def _activate(self, machine: SharePartition) -> None:
        self._machine = machine
        self.state = State.ACTIVE
        self._bury()
        self.wake()

    def _not_found(self, error: ApiError) -> None:
        if self.state is State.LOADING:
            self.end(told_error(error))

    def end(self, error: ApiError) -> None:
        """Whoever waits is told, and whoever comes next begins anew."""
        if self.state is State.ENDED:
            return
        self.state = State.ENDED
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
            waiter.look_again(self)

    def apply_settings(self, settings: GroupSettings) -> None:
        self.settings = settings
        machine = self._machine_settings
        machine.lock_duration_ms = settings.lock_duration_ms
        machine.delivery_count_limit = settings.delivery_count_limit
        machine.record_locks_max = settings.record_locks_max
        machine.is_renewing_enabled = settings.is_renewing_enabled
        machine.has_dead_letters = bool(settings.dead_letter_topic)

    @property
    def is_idle(self) -> bool:
        """Nobody holds anything, and nothing is on its way."""
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
        """For the metrics and the simulator."""
        return self._machine

    # Waking those who wait

    def readable_grew(self, partition: Partition) -> None:
        if not partition.is_leader or partition.log.is_offline:
            self.end(NotLeaderOrFollower(f"{partition.name} is led elsewhere"))
        elif self.waiting:
            self.wake()

    def wake(self) -> None:
        """Look at those who wait at the end of this turn, once."""
        if self.waiting and not self._is_marked:
            self._is_marked = True
            self._broker.turn.mark_completion(self._look_again)

    def _look_again(self) -> None:
        self._is_marked = False
        for waiter in list(self.waiting):
            if self.state is State.ACTIVE and not self.has_something():
                return
            waiter.look_again(self)

    def has_something(self) -> bool:
        """Whether a fetch would look at anything."""
        machine = self._machine
        return (
            machine is not None
            and not self.is_reading
            and machine.may_acquire()
            and machine.next_fetch_offset()
            < self.partition.readable_end(committed_only=self.settings.is_read_committed)
        )

    def readable_bytes(self, limit: int) -> int:
        """How much a fetch could read, up to ``limit``: roughly, since what others hold in between counts as well."""
        if not self.has_something():
            return 0
        machine, partition = self._machine, self.partition
        assert machine is not None
        is_committed = self.settings.is_read_committed
        try:
            piece = partition.read(
                machine.next_fetch_offset(), size_bytes_max=limit, committed_only=is_committed, at_least_one=False
            )
        except ApiError:
            # Whoever takes is told.
            return limit
        if piece is None:
            # The first batch is larger than that.
            return limit
        piece.release()
        is_all = piece.upper_offset >= partition.readable_end(committed_only=is_committed)
        return piece.size if is_all else limit

    # Taking

    def take(self, wish: Wish, *, nowait: bool) -> Taken | None:
        """What there is for a fetch; None when there is nothing. With ``nowait`` raises `ColdRead`.

        Raises ApiError when the log cannot be read."""
        machine = self._machine
        assert machine is not None
        machine.log_start_moved(self.partition.log.log_start_offset)
        for _ in range(PASSES_MAX):
            offset = machine.next_fetch_offset()
            if not self.has_something():
                return None
            taken = self._look(wish, offset, nowait=nowait)
            if taken is not None or machine.next_fetch_offset() == offset:
                return taken
        # There may be more of the same: whoever waits is looked at again.
        self.wake()
        return None

    def _look(self, wish: Wish, offset: int, *, nowait: bool) -> Taken | None:
        """One read; it may find nothing but markers and what was aborted, and pass over it."""
        partition = self.partition
        wanted_bytes = max(READ_BYTES_MIN, wish.max_records * self._record_bytes * 5 // 4)
        piece = partition.read(
            offset,
            size_bytes_max=min(wish.max_bytes, wanted_bytes),
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
        return self._acquire(wish, offset, data, reading.batches_in(data, aborted))

    def _acquire(self, wish: Wish, offset: int, data: Bytes, batches: Sequence[reading.Batch]) -> Taken | None:
        machine = self._machine
        assert machine is not None
        records = sum(batch.record_count for batch in batches)
        if records:
            self._record_bytes = max(1, (self._record_bytes + len(data) // records) // 2)
        acquired = machine.acquire(
            wish.member_id,
            [batch.found for batch in batches],
            fetch_offset=offset,
            max_records=wish.max_records,
            batch_size=wish.batch_size,
            is_strict=wish.is_strict,
            now_ms=self._broker.deadlines.now_ms(),
        )
        if machine.has_passed_over:
            # The start may have moved, and with it the lag.
            machine.has_passed_over = False
            self._submit(Change([], is_applied=True), None)
        given_up = machine.take_given_up()
        if given_up:
            self._submit(given_up, None)
        if not acquired:
            return None
        if self._timer is None:
            self._arm(self.settings.lock_duration_ms)
        count = sum(each.last_offset - each.first_offset + 1 for each in acquired)
        return Taken(reading.bytes_of(data, batches, acquired), acquired, count)

    # Settling

    def acknowledge(self, member_id: str, said: Sequence[Acknowledgement], reply: Reply[bool]) -> None:
        """Everything the member says, or nothing; ``reply`` is answered when it is durable."""
        machine = self._machine
        if machine is None:
            reply.fail(
                CoordinatorLoadInProgress() if self.state is State.LOADING else self.error or NotLeaderOrFollower()
            )
            return
        try:
            change = machine.acknowledge(member_id, said, now_ms=self._broker.deadlines.now_ms())
        except ApiError as error:
            reply.fail(error)
            return
        if change:
            self._submit(change, reply)
        else:
            reply.reply(True)

    def release(self, member_id: str) -> None:
        """The member's session is over."""
        if self._machine is not None and self.state is State.ACTIVE:
            change = self._machine.release(member_id)
            if change:
                self._submit(change, None)

    def _submit(self, change: Change, reply: Reply[bool] | None) -> None:
        self._queue.append((change, reply))
        if not self._is_writing:
            self._is_writing = True
            # At the end of the turn, with whatever else is said in it.
            self._broker.turn.mark_completion(self._write)

    def _write(self) -> None:
        machine = self._machine
        queue, self._queue = self._queue, []
        if self.state is not State.ACTIVE or machine is None or not queue:
            self._is_writing = False
            return
        write = machine.planned_write([change for change, _ in queue])
        written = Written(
            state_epoch=self._state_epoch,
            leader_epoch=self.partition.leader_epoch,
            start_offset=write.start_offset,
            delivery_complete_count=write.delivery_complete_count,
            batches=write.batches,
        )
        self._persister.write(
            self.key, written, Reply(lambda _: self._written(queue), lambda error: self._refused(queue, error))
        )

    def _written(self, queue: Sequence[tuple[Change, Reply[bool] | None]]) -> None:
        machine = self._machine
        assert machine is not None
        is_news = False
        for change, reply in queue:
            is_news = machine.written(change) or is_news
            if reply is not None:
                reply.reply(True)
        self._write_next()
        self._bury()
        if is_news:
            self.wake()

    def _refused(self, queue: Sequence[tuple[Change, Reply[bool] | None]], error: ApiError) -> None:
        machine = self._machine
        assert machine is not None
        told = told_error(error)
        for change, reply in queue:
            late = machine.refused(change)
            if late:
                self._queue.append((late, None))
            if reply is not None:
                reply.fail(told)
        if isinstance(error, FencedLeaderEpoch | FencedStateEpoch) or not isinstance(told, CoordinatorNotAvailable):
            # Somebody knows better: begin anew with what they have written.
            self._is_writing = False
            self.end(NotLeaderOrFollower(str(error)))
            return
        self._write_next()
        self.wake()

    def _write_next(self) -> None:
        self._is_writing = bool(self._queue)
        if self._queue:
            self._broker.turn.mark_completion(self._write)

    # Dead letters

    def _bury(self) -> None:
        machine = self._machine
        if machine is None or self._is_burying or not machine.archiving_count:
            return
        dead = machine.take_dead()
        if dead:
            self._is_burying = True
            self._broker.spawn(self._bury_all(machine, dead))

    async def _bury_all(self, machine: SharePartition, dead: list[Dead]) -> None:
        letters, counters = self._burial
        try:
            while dead:
                for each in dead:
                    topic, is_copied = self.settings.dead_letter_topic, self.settings.copies_dead_letters
                    await letters.write(Letter(self.key.group_id, self.partition, each, topic, is_copied), counters)
                    if self.state is not State.ACTIVE:
                        # Whoever leads now writes the others, and this one perhaps again.
                        return
                    self._submit(machine.archive(each), None)
                    self.wake()
                dead = machine.take_dead()
        finally:
            self._is_burying = False

    # Locks

    def _arm(self, delay_ms: int) -> None:
        self._timer = self._broker.deadlines.after(max(delay_ms, 0), self._time_is_up)

    def _time_is_up(self) -> None:
        self._timer = None
        machine = self._machine
        if machine is None or self.state is not State.ACTIVE:
            return
        now_ms = self._broker.deadlines.now_ms()
        change = machine.expire(now_ms)
        if change:
            self._submit(change, None)
            self.wake()
        deadline_ms = machine.next_deadline_ms()
        if deadline_ms is not None:
            self._arm(deadline_ms - now_ms)


def told_error(error: ApiError) -> ApiError:
    """What a consumer is told when the share coordinator refuses or cannot be asked."""
    if isinstance(error, FencedLeaderEpoch | FencedStateEpoch):
        return NotLeaderOrFollower(str(error))
    if error.retriable or isinstance(error, NotCoordinator):
        return CoordinatorNotAvailable(str(error))
    return error if error.code > 0 else UnknownServerError(str(error))
