"""A share partition against an oracle that keeps every offset apart and knows nothing of runs.

S1: a final state stays. S2: one holder at a time. S3: a delivery counts one, and there are never more than the limit.
S4, S6: the start only grows, and stands before the first record that is not final. S7: with a dead-letter topic, what
is given up is handed out to be written there, by every leader anew until it is archived, and nothing else is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millbeck.coordinator.share.partition.acquisition import FetchedBatch
from millbeck.coordinator.share.partition.changes import StateTransition
from millbeck.coordinator.share.partition.share_partition import Acknowledgement, SharePartition, SharePartitionSettings
from millbeck.coordinator.share.states import STATE_AFTER, AcknowledgeType, RecordState, StateBatch
from millbeck.kernel.errors import ApiError

MEMBERS = ("a", "b", "c")
LIMIT = 3
LOCK_MS = 100
LOG_SIZE = 60


@dataclass
class Known:
    state: RecordState = RecordState.AVAILABLE
    count: int = 0
    owner: str = ""
    deadline_ms: int = 0
    target: RecordState | None = None
    change: int = -1


@dataclass
class Oracle:
    """Offsets below ``start`` are over; those from ``end`` on were never seen."""

    start: int = 0
    end: int = 0
    offsets: dict[int, Known] = field(default_factory=dict)
    has_dead_letters: bool = False

    def at(self, offset: int) -> Known:
        return self.offsets.setdefault(offset, Known())

    def released(self, known: Known) -> RecordState:
        return self.given_up() if known.count >= LIMIT else RecordState.AVAILABLE

    def given_up(self) -> RecordState:
        return RecordState.ARCHIVING if self.has_dead_letters else RecordState.ARCHIVED


class SharePartitionMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.partition = SharePartition(SharePartitionSettings(lock_duration_ms=LOCK_MS, delivery_count_limit=LIMIT), 0)
        self.oracle = Oracle()
        self.now_ms = 0
        self.pending: dict[int, StateTransition] = {}
        self.number = 0
        self.start_seen = 0
        self.finals: dict[int, RecordState] = {}

    @initialize(has_dead_letters=st.booleans())
    def begin(self, has_dead_letters: bool) -> None:
        self.partition.settings.has_dead_letters = self.oracle.has_dead_letters = has_dead_letters

    @rule()
    def archive(self) -> None:
        waiting = [each for each, known in self.oracle.offsets.items() if known.state is RecordState.ARCHIVING]
        dead = self.partition.take_dead()
        handed = [offset for each in dead for offset in range(each.first_offset, each.last_offset + 1)]
        assert sorted(offset for offset in handed if offset >= self.oracle.start) == sorted(waiting)
        assert self.partition.take_dead() == []
        for each in dead:
            for offset in range(max(each.first_offset, self.oracle.start), each.last_offset + 1):
                known = self.oracle.at(offset)
                assert each.delivery_count == known.count
                assert each.is_rejected or known.count >= LIMIT
                known.state = RecordState.ARCHIVED
            self.partition.archive(each)

    @rule(
        member=st.sampled_from(MEMBERS),
        sizes=st.lists(st.integers(1, 6), min_size=1, max_size=4),
        holes=st.lists(st.integers(0, 2), min_size=4, max_size=4),
        data=st.lists(st.booleans(), min_size=4, max_size=4),
        max_records=st.integers(1, 10),
        is_strict=st.booleans(),
    )
    def acquire(
        self,
        member: str,
        sizes: list[int],
        holes: list[int],
        data: list[bool],
        max_records: int,
        is_strict: bool,
    ) -> None:
        fetch_offset = self.partition.next_fetch_offset()
        found: list[FetchedBatch] = []
        position = fetch_offset
        for size, hole, has_records in zip(sizes, holes, data, strict=False):
            # Nobody finds a hole where somebody was given a record.
            while hole and (position >= self.oracle.end or self.oracle.at(position).count == 0):
                position, hole = position + 1, hole - 1
            last = position + size - 1
            seen = any(self.oracle.at(each).count for each in range(position, min(last + 1, self.oracle.end)))
            found.append(FetchedBatch(position, last, has_records or seen))
            position = last + 1
        acquired = self.partition.acquire(
            member,
            found,
            fetch_offset=fetch_offset,
            max_records=max_records,
            batch_size=3,
            is_strict=is_strict,
            now_ms=self.now_ms,
        )
        given = [each for one in acquired for each in range(one.first_offset, one.last_offset + 1)]
        assert len(given) == len(set(given))
        if is_strict:
            assert len(given) <= max_records
        counts = {each: one.delivery_count for one in acquired for each in range(one.first_offset, one.last_offset + 1)}
        readable = [each for one in found if one.has_records for each in range(one.first_offset, one.last_offset + 1)]
        for offset in given:
            known = self.oracle.at(offset)
            assert offset in readable
            assert known.state is RecordState.AVAILABLE
            assert known.change == -1
            known.state, known.owner, known.deadline_ms = RecordState.ACQUIRED, member, self.now_ms + LOCK_MS
            known.count += 1
            assert counts[offset] == known.count <= LIMIT
        if found and self.oracle.start < fetch_offset + LOG_SIZE:
            self._pass_over(fetch_offset, found, readable)
        if not given and any(offset >= fetch_offset for offset in readable):
            assert not any(self.oracle.at(offset).state is RecordState.AVAILABLE for offset in [readable[0]])

    def _pass_over(self, fetch_offset: int, found: list[FetchedBatch], readable: list[int]) -> None:
        """What was looked at and holds nothing is final; how far the look went, the window tells."""
        end = self.partition.end_offset + 1
        last_looked = max([one.last_offset for one in found if one.first_offset < end] + [fetch_offset - 1])
        for offset in range(fetch_offset, last_looked + 1):
            if offset < end and offset not in readable:
                known = self.oracle.at(offset)
                if known.state is RecordState.AVAILABLE and self._is_archived(offset):
                    known.state = RecordState.ARCHIVED
        self.oracle.end = max(self.oracle.end, end)

    def _is_archived(self, offset: int) -> bool:
        if offset < self.partition.start_offset:
            return True
        return self.partition.window.overlapping(offset, offset)[0].state is RecordState.ARCHIVED

    @rule(
        member=st.sampled_from(MEMBERS),
        first=st.integers(0, 30),
        kinds=st.lists(st.sampled_from(list(AcknowledgeType)), min_size=1, max_size=8),
    )
    def acknowledge(self, member: str, first: int, kinds: list[AcknowledgeType]) -> None:
        """Of anything at all: mostly of what the member does not hold."""
        first += self.oracle.start - 2
        if first >= 0:
            self._acknowledge(member, first, kinds)

    @rule(
        pick=st.integers(0, 100),
        kinds=st.lists(st.sampled_from(list(AcknowledgeType)), min_size=2, max_size=8),
        is_answered=st.booleans(),
    )
    def acknowledge_what_is_held(self, pick: int, kinds: list[AcknowledgeType], is_answered: bool) -> None:
        held = [each for each, known in sorted(self.oracle.offsets.items()) if known.owner and known.change == -1]
        if not held:
            return
        first = held[pick % len(held)]
        member = self.oracle.at(first).owner
        length = 1
        while length < len(kinds) and first + length in held and self.oracle.at(first + length).owner == member:
            length += 1
        self._acknowledge(member, first, kinds[:length])
        if is_answered and self.number in self.pending:
            self._answer(self.number, is_written=True)

    def _acknowledge(self, member: str, first: int, kinds: list[AcknowledgeType]) -> None:
        said = Acknowledgement(first, first + len(kinds) - 1, kinds)
        offsets = {first + index: kind for index, kind in enumerate(kinds) if first + index >= self.oracle.start}
        is_allowed = said.last_offset < self.oracle.end and all(
            self.oracle.at(each).state is RecordState.ACQUIRED
            and self.oracle.at(each).owner == member
            and self.oracle.at(each).change == -1
            for each in offsets
        )
        try:
            change = self.partition.acknowledge(member, [said], now_ms=self.now_ms)
        except ApiError:
            assert not is_allowed
            return
        assert is_allowed
        self.number += 1
        for offset, kind in offsets.items():
            known = self.oracle.at(offset)
            if kind is AcknowledgeType.RENEW:
                known.deadline_ms = self.now_ms + LOCK_MS
            else:
                state = self.oracle.given_up() if kind is AcknowledgeType.REJECT else STATE_AFTER[kind]
                known.target = self.oracle.released(known) if state is RecordState.AVAILABLE else state
                known.change = self.number
        self._check_batches(change, self.number)
        if change:
            self.pending[self.number] = change

    def _check_batches(self, change: StateTransition, number: int) -> None:
        told = {
            offset: (batch.delivery_state, batch.delivery_count)
            for batch in change.batches
            for offset in range(batch.first_offset, batch.last_offset + 1)
        }
        expected = {
            offset: (known.target, known.count)
            for offset, known in self.oracle.offsets.items()
            if known.change == number
        }
        assert told == expected

    @rule(member=st.sampled_from(MEMBERS))
    def member_leaves(self, member: str) -> None:
        change = self.partition.release(member)
        self.number += 1
        for known in self.oracle.offsets.values():
            if known.state is RecordState.ACQUIRED and known.owner == member and known.change == -1:
                known.target, known.change = self.oracle.released(known), self.number
        self._check_batches(change, self.number)
        if change:
            self.pending[self.number] = change

    @precondition(lambda self: self.pending)
    @rule(is_written=st.booleans(), pick=st.integers(0, 100))
    def answered(self, is_written: bool, pick: int) -> None:
        self._answer(sorted(self.pending)[pick % len(self.pending)], is_written=is_written)

    def _answer(self, number: int, *, is_written: bool) -> None:
        change = self.pending.pop(number)
        write = self.partition.build_write([change])
        assert write.start_offset >= self.partition.start_offset
        if is_written:
            self.partition.written(change)
        else:
            self.partition.written(self.partition.refused(change))
        for known in self.oracle.offsets.values():
            if known.change != number:
                continue
            known.change = -1
            if is_written and known.target is not None:
                known.state, known.owner = known.target, ""
            elif known.deadline_ms <= self.now_ms:
                known.state, known.owner = self.oracle.released(known), ""
            known.target = None
        if is_written:
            self._advance()
            assert write.start_offset <= self.partition.start_offset

    @rule(step_ms=st.integers(1, 150))
    def time_passes(self, step_ms: int) -> None:
        self.now_ms += step_ms
        self.partition.written(self.partition.expire(self.now_ms))
        for known in self.oracle.offsets.values():
            if known.state is RecordState.ACQUIRED and known.deadline_ms <= self.now_ms and known.change == -1:
                known.state, known.owner = self.oracle.released(known), ""

    @rule(step=st.integers(1, 5))
    def log_start_moves(self, step: int) -> None:
        offset = self.partition.start_offset + step
        self.partition.log_start_moved(offset)
        for each in [each for each in self.oracle.offsets if each < offset]:
            del self.oracle.offsets[each]
        self.oracle.start = max(self.oracle.start, offset)
        self.oracle.end = max(self.oracle.end, offset)
        self.finals.clear()

    @precondition(lambda self: not self.pending)
    @rule()
    def another_leader_takes_over(self) -> None:
        """From what was written, everything that is not final may be given out again."""
        batches = [
            StateBatch(run.first, run.last, run.state, run.delivery_count)
            for run in self.partition.window.runs
            if run.state.is_final or run.state is RecordState.ARCHIVING
        ]
        self.partition = SharePartition(self.partition.settings, self.partition.start_offset, batches)
        last_final = max([batch.last_offset for batch in batches], default=self.partition.start_offset - 1)
        for offset in [each for each, known in self.oracle.offsets.items() if not _is_kept(known)]:
            del self.oracle.offsets[offset]
        self.oracle.end = last_final + 1

    def _advance(self) -> None:
        # What is given up stays where it is until it is buried.
        while self.oracle.start < self.oracle.end and self.oracle.at(self.oracle.start).state.is_final:
            self.oracle.start += 1

    @invariant()
    def says_what_the_oracle_says(self) -> None:
        self._advance()
        partition = self.partition
        assert partition.start_offset == self.oracle.start >= self.start_seen
        self.start_seen = partition.start_offset
        assert partition.end_offset == self.oracle.end - 1
        position = partition.start_offset
        for run in partition.window.runs:
            assert run.first == position
            position = run.last + 1
            for offset in range(run.first, run.last + 1):
                known = self.oracle.at(offset)
                assert (run.state, run.owner) == (known.state, known.owner), (offset, run, known)
                assert run.state.is_final or run.delivery_count == known.count
                assert self.finals.get(offset, run.state) is run.state
                if run.state.is_final:
                    self.finals[offset] = run.state
        assert position == partition.end_offset + 1

    @invariant()
    def counts_what_there_is(self) -> None:
        self._advance()
        known = [self.oracle.at(each) for each in range(self.oracle.start, self.oracle.end)]
        assert self.partition.available_count == sum(each.state is RecordState.AVAILABLE for each in known)
        assert self.partition.acquired_count == sum(each.state is RecordState.ACQUIRED for each in known)
        assert self.partition.archiving_count == sum(each.state is RecordState.ARCHIVING for each in known)
        assert self.partition.final_count == sum(each.state.is_final for each in known)

    @invariant()
    def knows_the_next_deadline_and_offset(self) -> None:
        self._advance()
        held = [each for each in self.oracle.offsets.values() if each.state is RecordState.ACQUIRED]
        deadlines = [each.deadline_ms for each in held if each.deadline_ms > self.now_ms]
        told = self.partition.next_deadline_ms()
        assert told == min(deadlines, default=None)
        free = [
            each
            for each in range(self.oracle.start, self.oracle.end)
            if self.oracle.at(each).state is RecordState.AVAILABLE
        ]
        assert self.partition.next_fetch_offset() == min(free, default=self.oracle.end)


def _is_kept(known: Known) -> bool:
    """Whether the share coordinator has it, and the next leader."""
    return known.state.is_final or known.state is RecordState.ARCHIVING


SharePartitionMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)
TestSharePartition = SharePartitionMachine.TestCase
