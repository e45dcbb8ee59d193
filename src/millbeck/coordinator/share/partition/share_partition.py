"""A share partition: for one share group and partition, the state, owner and delivery count of each record.

It is kept by the partition's leader. Its start offset (SPSO) is that of the first record that is not final, its end
offset (SPEO) that of the last one ever acquired; between them each record is in one of the states of `states`.
Consumers *acquire* fetched records under a lock with a deadline, and *acknowledge* them. An acknowledgement takes
effect once the share coordinator has stored it (`changes`); until then the records stay with the member that acquired
them.

With ``has_dead_letters``, records that would be archived are ARCHIVING first. Once the share coordinator has stored
that, `take_dead` returns them, and `archive` archives them when they are in the dead-letter topic. After a leader
change the new leader returns them again.

Nothing here reads a clock or a log: the driver passes in the time and the fetched batches, sends writes to the share
coordinator, and calls `expire` at `next_deadline_ms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from millbeck.coordinator.share.batches import combine
from millbeck.coordinator.share.partition import acquisition
from millbeck.coordinator.share.partition.acquisition import Acquired, FetchedBatch
from millbeck.coordinator.share.partition.changes import DeadRecords, PartitionWrite, StateTransition
from millbeck.coordinator.share.partition.window import AcquisitionLock, InFlightBatch, InFlightWindow
from millbeck.coordinator.share.states import STATE_AFTER, AcknowledgeType, RecordState, StateBatch
from millbeck.kernel.errors import InvalidRecordState, InvalidRequest


@dataclass(slots=True, kw_only=True)
class SharePartitionSettings:
    """Configuration of a share group; changes apply from the next operation on."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    record_locks_max: int = 2000
    is_renewing_enabled: bool = True
    has_dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A member's acknowledgement of consecutive offsets: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def segments(self, start_offset: int) -> Iterable[tuple[int, int, AcknowledgeType]]:
        """Ranges of offsets from ``start_offset`` on with the same acknowledge type."""
        first, last = max(self.first_offset, start_offset), self.last_offset
        if len(self.types) == 1:
            if first <= last:
                yield first, last, AcknowledgeType(self.types[0])
            return
        while first <= last:
            kind = self.types[first - self.first_offset]
            end = first
            while end < last and self.types[end + 1 - self.first_offset] == kind:
                end += 1
            yield first, end, AcknowledgeType(kind)
            first = end + 1


class SharePartition:
    def __init__(self, settings: SharePartitionSettings, start_offset: int, batches: Sequence[StateBatch] = ()) -> None:
        """``batches`` is the state from the share coordinator: sorted, without overlaps. Offsets missing between them
        were never acknowledged, or are gaps in the log that the next fetch will find."""
        self.settings = settings
        self.window = InFlightWindow(start_offset)
        self.final_count = 0
        """Number of records in the window that are final."""
        self.available_count = 0
        self.acquired_count = 0
        self.archiving_count = 0
        self._dead: list[DeadRecords] = []
        self._given_up: list[StateBatch] = []
        self.has_passed_over = False
        """Whether offsets became final without a write since this flag was last cleared."""
        self._locks: list[AcquisitionLock] = []
        for batch in batches:
            if batch.last_offset < start_offset:
                continue
            if batch.first_offset > self.window.end_offset + 1:
                self.append(batch.first_offset - 1, RecordState.AVAILABLE, 0)
            run = self.append(batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count)
            if run.state is RecordState.ARCHIVING:
                # The reason is not stored: records at the delivery limit were most likely archived because of it.
                is_rejected = run.delivery_count < settings.delivery_count_limit
                self._dead.append(DeadRecords(run.first, run.last, run.delivery_count, is_rejected))
        self._advance()

    # Reading

    @property
    def start_offset(self) -> int:
        return self.window.start_offset

    @property
    def end_offset(self) -> int:
        return self.window.end_offset

    def next_fetch_offset(self) -> int:
        """The first offset a member may acquire: an available record, or the offset after the window."""
        if self.available_count:
            for run in self.window.runs:
                if run.state is RecordState.AVAILABLE:
                    return run.first
        return self.window.end_offset + 1

    def may_acquire(self) -> bool:
        """Whether a fetch could acquire records: some are available, or the window may grow."""
        return self.available_count > 0 or len(self.window) < self.settings.record_locks_max

    def held_by(self, member_id: str) -> bool:
        return self.acquired_count > 0 and any(run.owner == member_id for run in self.window.runs)

    # Acquiring

    def acquire(
        self,
        member_id: str,
        found: Iterable[FetchedBatch],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        is_strict: bool,
        now_ms: int,
    ) -> list[Acquired]:
        """Acquire for a member the available and new records of a fetch from ``fetch_offset`` on.

        Unless ``is_strict``, whole batches are acquired, and the last one may exceed ``max_records``.
        """
        lock = AcquisitionLock(member_id, 0, 0, now_ms + self.settings.lock_duration_ms)
        taking = acquisition.Acquisition(self, lock, fetch_offset, max_records, batch_size, is_strict)
        acquired = taking.run(found)
        if acquired:
            lock.first_offset, lock.last_offset = acquired[0].first_offset, acquired[-1].last_offset
            heappush(self._locks, lock)
            self.window.join(lock.first_offset, lock.last_offset)
        self._advance()
        return acquired

    # Acknowledging

    def acknowledge(
        self, member_id: str, acknowledgements: Sequence[Acknowledgement], *, now_ms: int
    ) -> StateTransition:
        """Apply all acknowledgements or none: raises INVALID_RECORD_STATE for records the member has not acquired."""
        segments = [segment for each in acknowledgements for segment in self._checked_segments(member_id, each)]
        change = StateTransition([])
        batches: list[StateBatch] = []
        for first, last, kind in segments:
            runs = self.window.isolate(first, last)
            if kind is AcknowledgeType.RENEW:
                self._renew(runs, first, last, now_ms)
            else:
                said = [self._begin(run, self._state_after(kind), change) for run in runs]
                batches += said
                if kind is AcknowledgeType.REJECT:
                    change.rejected += said
            self.window.join(first, last)
        change.batches = batches
        return change

    def _checked_segments(
        self, member_id: str, acknowledgement: Acknowledgement
    ) -> list[tuple[int, int, AcknowledgeType]]:
        end_offset = self.window.end_offset
        if acknowledgement.first_offset > end_offset or acknowledgement.last_offset > end_offset:
            raise InvalidRequest("the acknowledgement includes offsets after the last acquired one")
        segments = list(acknowledgement.segments(self.window.start_offset))
        for first, last, kind in segments:
            if kind is AcknowledgeType.RENEW and not self.settings.is_renewing_enabled:
                raise InvalidRecordState("renewing acquisition locks is disabled for this group")
            for run in self.window.overlapping(first, last):
                if run.state is not RecordState.ACQUIRED or run.change is not None:
                    raise InvalidRecordState(f"the records from {run.first} to {run.last} are not acquired")
                if run.owner != member_id:
                    raise InvalidRecordState(f"the records from {run.first} to {run.last} are held by another member")
        return segments

    def _renew(self, runs: Iterable[InFlightBatch], first: int, last: int, now_ms: int) -> None:
        lock: AcquisitionLock | None = None
        for run in runs:
            if lock is None:
                lock = AcquisitionLock(run.owner, first, last, now_ms + self.settings.lock_duration_ms)
                heappush(self._locks, lock)
            run.lock = lock

    def release(self, member_id: str) -> StateTransition:
        """Release the records of a member that left, except those it has acknowledged."""
        change = StateTransition([])
        change.batches = [
            self._begin(run, RecordState.AVAILABLE, change)
            for run in self.window.runs
            if run.state is RecordState.ACQUIRED and run.change is None and run.owner == member_id
        ]
        return change

    def _begin(self, run: InFlightBatch, state: RecordState, change: StateTransition) -> StateBatch:
        run.change = change
        run.target = self._after_delivery(run, state)
        return StateBatch(run.first, run.last, run.target, run.delivery_count)

    def _state_after(self, kind: AcknowledgeType) -> RecordState:
        return self._given_up_state() if kind is AcknowledgeType.REJECT else STATE_AFTER[kind]

    def _after_delivery(self, run: InFlightBatch, state: RecordState) -> RecordState:
        if state is RecordState.AVAILABLE and run.delivery_count >= self.settings.delivery_count_limit:
            return self._given_up_state()
        return state

    def _given_up_state(self) -> RecordState:
        return RecordState.ARCHIVING if self.settings.has_dead_letters else RecordState.ARCHIVED

    # Dead letters

    def give_up(self, run: InFlightBatch) -> None:
        """Archive an available record that is at the delivery limit, because the limit was lowered after its last
        delivery."""
        self.put(run, self._given_up_state())
        if run.state is RecordState.ARCHIVING:
            self._given_up.append(StateBatch(run.first, run.last, run.state, run.delivery_count))

    def take_given_up(self) -> StateTransition:
        """The records `acquire` has archived since the last call, to be written."""
        batches, self._given_up = self._given_up, []
        return StateTransition(batches, is_applied=True)

    def take_dead(self) -> list[DeadRecords]:
        """Return the records to produce to the dead-letter topic, each once per leader."""
        dead, self._dead = self._dead, []
        return [each for each in dead if each.last_offset >= self.window.start_offset]

    def archive(self, dead: DeadRecords) -> StateTransition:
        """Archive records that are in the dead-letter topic, or cannot be written there."""
        first, last = max(dead.first_offset, self.window.start_offset), dead.last_offset
        if first > last:
            return StateTransition([], is_applied=True)
        batches = []
        for run in self.window.isolate(first, last):
            if run.state is RecordState.ARCHIVING:
                self.put(run, RecordState.ARCHIVED)
                batches.append(StateBatch(run.first, run.last, run.state, run.delivery_count))
        self.window.join(first, last)
        self._advance()
        return StateTransition(batches, is_applied=True)

    # Writing transitions

    def build_write(self, changes: Sequence[StateTransition]) -> PartitionWrite:
        """Combine the transitions into one write."""
        start_offset = self.window.start_offset
        final_count = 0
        is_leading = True
        for run in self.window.runs:
            # Compared by identity: equal transitions are distinct.
            is_final = run.state.is_final or (
                run.change is not None and run.target.is_final and any(run.change is each for each in changes)
            )
            if not is_final:
                is_leading = False
            elif is_leading:
                start_offset = run.last + 1
            else:
                final_count += len(run)
        batches = combine([], [batch for change in changes for batch in change.batches], start_offset)
        return PartitionWrite(start_offset, final_count, batches)

    def written(self, change: StateTransition) -> bool:
        """Apply a transition that is durable. Returns whether it makes new records acquirable."""
        for batch in change.batches:
            if batch.delivery_state == RecordState.ARCHIVING:
                self._dead.append(
                    DeadRecords(batch.first_offset, batch.last_offset, batch.delivery_count, batch in change.rejected)
                )
        if change.is_applied:
            return False
        could_acquire, available_before = self.may_acquire(), self.available_count
        for run in self._runs_of(change):
            run.change = None
            self.put(run, run.target)
        self._join(change)
        self._advance()
        return self.available_count > available_before or (self.may_acquire() and not could_acquire)

    def refused(self, change: StateTransition) -> StateTransition:
        """Revert a transition whose write failed, and expire the locks that have timed out since.

        Returns the transition to write for those.
        """
        if change.is_applied:
            # Write the ARCHIVING state again: nothing else would retry it.
            waiting = [batch for batch in change.batches if batch.delivery_state == RecordState.ARCHIVING]
            return StateTransition(waiting, is_applied=True)
        late = []
        for run in self._runs_of(change):
            run.change = None
            run.target = run.state
            if run.lock is not None and run.lock.is_expired:
                late.append(self._expire(run))
        self._join(change)
        self._advance()
        return StateTransition(late, is_applied=True)

    def _runs_of(self, change: StateTransition) -> list[InFlightBatch]:
        return [run for run in self.window.runs if run.change is change]

    def _join(self, change: StateTransition) -> None:
        for batch in change.batches:
            if batch.last_offset >= self.window.start_offset:
                self.window.join(batch.first_offset, batch.last_offset)

    # Locks

    def next_deadline_ms(self) -> int | None:
        """The time at which `expire` must be called next."""
        locks = self._locks
        while locks and not self._is_held(locks[0]):
            heappop(locks)
        return locks[0].deadline_ms if locks else None

    def _is_held(self, lock: AcquisitionLock) -> bool:
        return any(run.lock is lock for run in self.window.overlapping(lock.first_offset, lock.last_offset))

    def expire(self, now_ms: int) -> StateTransition:
        """Expire acquisition locks: their records become available again, or are archived at the delivery count limit,
        without waiting for the share coordinator. The delivery count is not reduced. Records acknowledged in time are
        left alone.
        """
        batches: list[StateBatch] = []
        locks = self._locks
        while locks and locks[0].deadline_ms <= now_ms:
            lock = heappop(locks)
            lock.is_expired = True
            # Records that were acknowledged in time wait for the share coordinator's response.
            batches += [
                self._expire(run)
                for run in self.window.overlapping(lock.first_offset, lock.last_offset)
                if run.lock is lock and run.change is None
            ]
            self.window.join(lock.first_offset, lock.last_offset)
        self._advance()
        return StateTransition(batches, is_applied=True)

    def _expire(self, run: InFlightBatch) -> StateBatch:
        self.put(run, self._after_delivery(run, RecordState.AVAILABLE))
        return StateBatch(run.first, run.last, run.state, run.delivery_count)

    # The log

    def log_start_moved(self, log_start_offset: int) -> bool:
        """Advance to a new log start offset, dropping records whatever their state. Returns whether anything
        changed."""
        window = self.window
        if log_start_offset <= window.start_offset:
            return False
        for run in window.overlapping(window.start_offset, log_start_offset - 1):
            count = min(run.last, log_start_offset - 1) - run.first + 1
            self._count(run.state, -count)
        window.truncate_prefix(log_start_offset)
        self._advance()
        return True

    # Changes of runs, with their counts

    def append(self, last: int, state: RecordState, delivery_count: int) -> InFlightBatch:
        run = self.window.append(last, state, delivery_count)
        self._count(state, len(run))
        return run

    def put(self, run: InFlightBatch, state: RecordState) -> None:
        self._count(run.state, -len(run))
        run.state = run.target = state
        self._count(state, len(run))
        if state is not RecordState.ACQUIRED:
            run.lock = None

    def _count(self, state: RecordState, count: int) -> None:
        if state.is_final:
            self.final_count += count
        elif state is RecordState.AVAILABLE:
            self.available_count += count
        elif state is RecordState.ARCHIVING:
            self.archiving_count += count
        else:
            self.acquired_count += count

    def _advance(self) -> None:
        """Advance the start offset past final records."""
        offset = self.window.start_offset
        for run in self.window.runs:
            if not run.state.is_final:
                break
            offset = run.last + 1
            self._count(run.state, -len(run))
        self.window.truncate_prefix(offset)
