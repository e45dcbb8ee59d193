"""A share partition: which records of a partition one share group has been given, by whom they are held, what is over.

It lives with the partition's leader. Its start (SPSO) is the first record that is not final, its end (SPEO) the last
one that was ever given out; between them each record is in one of the states of `states`. Consumers *acquire* what a
fetch found, each time under a lock with a deadline, and *acknowledge* it. What they say takes effect once the share
coordinator has it (`changes`); until then the records stay with whoever acquired them, and nobody else may touch them.

With ``has_dead_letters`` what would be given up is ARCHIVING first. Once the share coordinator knows, `take_dead` hands
it out, and `archive` ends it when it stands in the dead-letter topic. A leader that follows is handed it again.

Nothing here reads a clock or a log: the driver says what time it is and what a fetch has found, carries writes to the
share coordinator, and calls `expire` when `next_deadline_ms` has come.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from millbeck.coordinator.share.batches import combine
from millbeck.coordinator.share.partition import acquiring
from millbeck.coordinator.share.partition.acquiring import Acquired, Found
from millbeck.coordinator.share.partition.changes import Change, Dead, Write
from millbeck.coordinator.share.partition.window import Lock, Run, Window
from millbeck.coordinator.share.states import STATE_AFTER, AcknowledgeType, RecordState, StateBatch
from millbeck.kernel.errors import InvalidRecordState, InvalidRequest


@dataclass(slots=True, kw_only=True)
class Settings:
    """A group's settings; they may change at any time and count from the next operation on."""

    lock_duration_ms: int = 30_000
    delivery_count_limit: int = 5
    record_locks_max: int = 2000
    is_renewing_enabled: bool = True
    has_dead_letters: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What a member says of consecutive offsets: one type for all of them, or one for each."""

    first_offset: int
    last_offset: int
    types: Sequence[int]

    def segments(self, start_offset: int) -> Iterable[tuple[int, int, AcknowledgeType]]:
        """Consecutive offsets from ``start_offset`` on of which the same is said."""
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
    def __init__(self, settings: Settings, start_offset: int, batches: Sequence[StateBatch] = ()) -> None:
        """``batches`` are what the share coordinator knows: sorted, without overlaps. What it does not know of between
        them was never settled, or is a hole in the log, which the next fetch will find."""
        self.settings = settings
        self.window = Window(start_offset)
        self.final_count = 0
        """Records in the window that are final."""
        self.available_count = 0
        self.acquired_count = 0
        self.archiving_count = 0
        self._dead: list[Dead] = []
        self._given_up: list[StateBatch] = []
        self.has_passed_over = False
        """Offsets without records have become final since this was last cleared; nobody has been told of it."""
        self._locks: list[Lock] = []
        for batch in batches:
            if batch.last_offset < start_offset:
                continue
            if batch.first_offset > self.window.end_offset + 1:
                self.append(batch.first_offset - 1, RecordState.AVAILABLE, 0)
            run = self.append(batch.last_offset, RecordState(batch.delivery_state), batch.delivery_count)
            if run.state is RecordState.ARCHIVING:
                # Why, nobody has kept: what was delivered that often was most likely given up for that.
                is_rejected = run.delivery_count < settings.delivery_count_limit
                self._dead.append(Dead(run.first, run.last, run.delivery_count, is_rejected))
        self._advance()

    # What it looks like

    @property
    def start_offset(self) -> int:
        return self.window.start_offset

    @property
    def end_offset(self) -> int:
        return self.window.end_offset

    def next_fetch_offset(self) -> int:
        """Where the first record is that a consumer may have: given back by another, or never given out."""
        if self.available_count:
            for run in self.window.runs:
                if run.state is RecordState.AVAILABLE:
                    return run.first
        return self.window.end_offset + 1

    def may_acquire(self) -> bool:
        """Whether a fetch could yield anything: something was given back, or the window may still grow."""
        return self.available_count > 0 or len(self.window) < self.settings.record_locks_max

    def held_by(self, member_id: str) -> bool:
        return self.acquired_count > 0 and any(run.owner == member_id for run in self.window.runs)

    # Acquiring

    def acquire(
        self,
        member_id: str,
        found: Iterable[Found],
        *,
        fetch_offset: int,
        max_records: int,
        batch_size: int,
        is_strict: bool,
        now_ms: int,
    ) -> list[Acquired]:
        """Give a member what a fetch from ``fetch_offset`` on has found and nobody has.

        Without ``is_strict`` whole batches are given, and ``max_records`` may be exceeded by the last of them."""
        lock = Lock(member_id, 0, 0, now_ms + self.settings.lock_duration_ms)
        taking = acquiring.Taking(self, lock, fetch_offset, max_records, batch_size, is_strict)
        acquired = taking.run(found)
        if acquired:
            lock.first_offset, lock.last_offset = acquired[0].first_offset, acquired[-1].last_offset
            heappush(self._locks, lock)
            self.window.join(lock.first_offset, lock.last_offset)
        self._advance()
        return acquired

    # Settling

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], *, now_ms: int) -> Change:
        """Everything the member says, or nothing of it: raises INVALID_RECORD_STATE for what it does not hold."""
        segments = [segment for each in acknowledgements for segment in self._checked_segments(member_id, each)]
        change = Change([])
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
            raise InvalidRequest("the acknowledgement reaches beyond what was acquired")
        segments = list(acknowledgement.segments(self.window.start_offset))
        for first, last, kind in segments:
            if kind is AcknowledgeType.RENEW and not self.settings.is_renewing_enabled:
                raise InvalidRecordState("locks are not renewed in this group")
            for run in self.window.overlapping(first, last):
                if run.state is not RecordState.ACQUIRED or run.change is not None:
                    raise InvalidRecordState(f"the records from {run.first} to {run.last} are not acquired")
                if run.owner != member_id:
                    raise InvalidRecordState(f"the records from {run.first} to {run.last} are held by another member")
        return segments

    def _renew(self, runs: Iterable[Run], first: int, last: int, now_ms: int) -> None:
        lock: Lock | None = None
        for run in runs:
            if lock is None:
                lock = Lock(run.owner, first, last, now_ms + self.settings.lock_duration_ms)
                heappush(self._locks, lock)
            run.lock = lock

    def release(self, member_id: str) -> Change:
        """The member is gone: what it holds goes back, except what it has settled itself."""
        change = Change([])
        change.batches = [
            self._begin(run, RecordState.AVAILABLE, change)
            for run in self.window.runs
            if run.state is RecordState.ACQUIRED and run.change is None and run.owner == member_id
        ]
        return change

    def _begin(self, run: Run, state: RecordState, change: Change) -> StateBatch:
        run.change = change
        run.target = self._after_delivery(run, state)
        return StateBatch(run.first, run.last, run.target, run.delivery_count)

    def _state_after(self, kind: AcknowledgeType) -> RecordState:
        return self._given_up_state() if kind is AcknowledgeType.REJECT else STATE_AFTER[kind]

    def _after_delivery(self, run: Run, state: RecordState) -> RecordState:
        if state is RecordState.AVAILABLE and run.delivery_count >= self.settings.delivery_count_limit:
            return self._given_up_state()
        return state

    def _given_up_state(self) -> RecordState:
        return RecordState.ARCHIVING if self.settings.has_dead_letters else RecordState.ARCHIVED

    # Dead letters

    def give_up(self, run: Run) -> None:
        """Was delivered as often as it may be, and nobody has it: the limit was lowered since."""
        self.put(run, self._given_up_state())
        if run.state is RecordState.ARCHIVING:
            self._given_up.append(StateBatch(run.first, run.last, run.state, run.delivery_count))

    def take_given_up(self) -> Change:
        """What `acquire` has given up meanwhile, to be written."""
        batches, self._given_up = self._given_up, []
        return Change(batches, is_applied=True)

    def take_dead(self) -> list[Dead]:
        """What is to be written to the dead-letter topic, each once, until another leader begins."""
        dead, self._dead = self._dead, []
        return [each for each in dead if each.last_offset >= self.window.start_offset]

    def archive(self, dead: Dead) -> Change:
        """It stands in the dead-letter topic, or cannot be written there: it is over."""
        first, last = max(dead.first_offset, self.window.start_offset), dead.last_offset
        if first > last:
            return Change([], is_applied=True)
        batches = []
        for run in self.window.isolate(first, last):
            if run.state is RecordState.ARCHIVING:
                self.put(run, RecordState.ARCHIVED)
                batches.append(StateBatch(run.first, run.last, run.state, run.delivery_count))
        self.window.join(first, last)
        self._advance()
        return Change(batches, is_applied=True)

    # What became of changes

    def planned_write(self, changes: Sequence[Change]) -> Write:
        """What to send for these changes, all of them together."""
        start_offset = self.window.start_offset
        final_count = 0
        is_leading = True
        for run in self.window.runs:
            # Compared one by one: a change is itself, whatever it says.
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
        return Write(start_offset, final_count, batches)

    def written(self, change: Change) -> bool:
        """The change is durable. True when something may be fetched now that could not be before."""
        for batch in change.batches:
            if batch.delivery_state == RecordState.ARCHIVING:
                self._dead.append(
                    Dead(batch.first_offset, batch.last_offset, batch.delivery_count, batch in change.rejected)
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

    def refused(self, change: Change) -> Change:
        """The change was not stored: everything is as it was, except that locks may have run out since.

        What that changes is returned."""
        if change.is_applied:
            # What waits for its dead letter is written again: nothing else would come back to it.
            waiting = [batch for batch in change.batches if batch.delivery_state == RecordState.ARCHIVING]
            return Change(waiting, is_applied=True)
        late = []
        for run in self._runs_of(change):
            run.change = None
            run.target = run.state
            if run.lock is not None and run.lock.is_expired:
                late.append(self._expire(run))
        self._join(change)
        self._advance()
        return Change(late, is_applied=True)

    def _runs_of(self, change: Change) -> list[Run]:
        return [run for run in self.window.runs if run.change is change]

    def _join(self, change: Change) -> None:
        for batch in change.batches:
            if batch.last_offset >= self.window.start_offset:
                self.window.join(batch.first_offset, batch.last_offset)

    # Locks

    def next_deadline_ms(self) -> int | None:
        """When `expire` has something to do."""
        locks = self._locks
        while locks and not self._is_held(locks[0]):
            heappop(locks)
        return locks[0].deadline_ms if locks else None

    def _is_held(self, lock: Lock) -> bool:
        return any(run.lock is lock for run in self.window.overlapping(lock.first_offset, lock.last_offset))

    def expire(self, now_ms: int) -> Change:
        """Take back what is held beyond its time: at once, and with the delivery counted."""
        batches: list[StateBatch] = []
        locks = self._locks
        while locks and locks[0].deadline_ms <= now_ms:
            lock = heappop(locks)
            lock.is_expired = True
            # What its holder has settled in time waits for the share coordinator's word.
            batches += [
                self._expire(run)
                for run in self.window.overlapping(lock.first_offset, lock.last_offset)
                if run.lock is lock and run.change is None
            ]
            self.window.join(lock.first_offset, lock.last_offset)
        self._advance()
        return Change(batches, is_applied=True)

    def _expire(self, run: Run) -> StateBatch:
        self.put(run, self._after_delivery(run, RecordState.AVAILABLE))
        return StateBatch(run.first, run.last, run.state, run.delivery_count)

    # The log

    def log_start_moved(self, log_start_offset: int) -> bool:
        """What lies below is gone from the log, and from here, whoever holds it. True when that was something."""
        window = self.window
        if log_start_offset <= window.start_offset:
            return False
        for run in window.overlapping(window.start_offset, log_start_offset - 1):
            count = min(run.last, log_start_offset - 1) - run.first + 1
            self._count(run.state, -count)
        window.drop_below(log_start_offset)
        self._advance()
        return True

    # The counts that go with the runs

    def append(self, last: int, state: RecordState, delivery_count: int) -> Run:
        run = self.window.append(last, state, delivery_count)
        self._count(state, len(run))
        return run

    def put(self, run: Run, state: RecordState) -> None:
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
        """Let the start pass what is final."""
        offset = self.window.start_offset
        for run in self.window.runs:
            if not run.state.is_final:
                break
            offset = run.last + 1
            self._count(run.state, -len(run))
        self.window.drop_below(offset)
