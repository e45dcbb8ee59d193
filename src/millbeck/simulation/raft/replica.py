"""One member of a simulated quorum: its disk, which outlives it, and the machine that runs on it.

Effects are performed as by the real driver: in order, with a delay for writing quorum-state, and the next event is
stepped only after the last effect of the previous one. A crash may happen at any point in between.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from millbeck.kernel.errors import SnapshotNotFound
from millbeck.raft import leading
from millbeck.raft.effects import (
    AppendControl,
    AppendFetched,
    ChangeLeader,
    Effect,
    InstallSnapshot,
    MoveHighWatermark,
    PersistState,
    SendRequest,
    SendResponse,
    ServeFetch,
    ServeSnapshot,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.events import (
    Event,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ProcessStarted,
    SnapshotInstalled,
    SnapshotTaken,
    TimerExpired,
)
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import (
    FetchRequest,
    FetchResponse,
    SnapshotKey,
    SnapshotRequest,
    SnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.options import QuorumOptions
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.voters import ReplicaKey, VoterHistory
from millbeck.records.control import KRaftVersion, LeaderChange, VoterEndpoint, Voters
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot, decode

if TYPE_CHECKING:
    from millbeck.simulation.raft.raft_world import RaftWorld

SNAPSHOT_SIZE_BYTES = 25
SNAPSHOT_PART_BYTES = 10


class Replica:
    def __init__(self, world: RaftWorld, key: ReplicaKey, initial: MemorySnapshot, *, can_vote: bool) -> None:
        self.world = world
        self.key = key
        self.can_vote = can_vote
        self.log = MemoryLog(initial)
        self.state: QuorumState | None = None
        self.machine: QuorumMachine | None = None
        self.incarnation = 0
        self.high_watermark = -1
        self._unfinished_state: QuorumState | None = None
        self._asks: dict[int, object] = {}
        self._events: deque[Event] = deque()
        self._effects: deque[Effect] = deque()
        self._is_waiting = False
        self._is_flushing = False
        self._part_bytes = 0

    @property
    def is_up(self) -> bool:
        return self.machine is not None

    @property
    def endpoint(self) -> VoterEndpoint:
        return VoterEndpoint(name="CONTROLLER", host="sim", port=self.key.node_id)

    # Start and crash.

    def start(self) -> None:
        self.incarnation += 1
        self.high_watermark = self.log.start_offset
        history = VoterHistory(self.log.base.voters, self.log.base.kraft_version)
        if self.log.start_offset:
            history.restart(self.log.start_offset, self.log.base.voters, self.log.base.kraft_version)
        for offset, value in self.log.changes(self.world.payloads):
            history.appended(offset, value)
        self.machine = QuorumMachine(
            key=self.key,
            log=self.log,
            history=history,
            state=self.state,
            below=self.world.dice.randrange,
            options=QuorumOptions(
                can_vote=self.can_vote,
                timeouts=self.world.timeouts,
                listeners=(self.endpoint,) if self.can_vote else (),
                bootstrap=self.world.bootstrap,
                auto_join=self.world.auto_join,
            ),
        )
        self._flush_later()
        self.deliver(ProcessStarted())

    def crash(self, *, loses_power: bool) -> None:
        self.machine = None
        self._events.clear()
        self._effects.clear()
        self._is_waiting = self._is_flushing = False
        if self._unfinished_state is not None and self.world.dice.random() < 0.5:
            self.state = self._unfinished_state
        self._unfinished_state = None
        if loses_power:
            self.log.lose_power(self.world.dice)

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        """Call a function after a delay, if this process is still running then."""
        incarnation = self.incarnation

        def act() -> None:
            if self.is_up and self.incarnation == incarnation:
                action()

        self.world.after(delay_ms, act)

    # Events and effects.

    def deliver(self, event: Event) -> None:
        if self.is_up:
            self._events.append(event)
            self._drain()

    def _drain(self) -> None:
        while self._events and not self._is_waiting and self.machine is not None:
            self._step(self._events.popleft())
        if self.machine is not None and not self._is_waiting:
            self.world.wake(self)

    def _step(self, event: Event) -> None:
        assert self.machine is not None
        self.world.step_count += 1
        if isinstance(event, TimerExpired) and self.world.now_ms < self.machine.next_deadline_ms:
            return
        self._effects.extend(self.machine.step(event, self.world.now_ms))
        self._perform_all()

    def _perform_all(self) -> None:
        while self._effects:
            effect = self._effects.popleft()
            if isinstance(effect, PersistState):
                self._persist(effect.state)
                if self._is_waiting:
                    return
            else:
                self._perform(effect)

    def _persist(self, state: QuorumState) -> None:
        self.world.checks.persists(self.key, -1 if self.state is None else self.state.leader_epoch, state.leader_epoch)
        delay_ms = self.world.dice.choice((0, 0, 1, 5))
        self._unfinished_state = state

        def written() -> None:
            self.write_state(state)
            self._unfinished_state = None
            if self._is_waiting:
                self._is_waiting = False
                self._perform_all()
                self._drain()

        if delay_ms:
            self._is_waiting = True
            self.later(delay_ms, written)
        else:
            written()

    def write_state(self, state: QuorumState) -> None:
        self.state = state

    def _perform(self, effect: Effect) -> None:
        world, machine = self.world, self.machine
        assert machine is not None
        match effect:
            case AppendControl():
                self._append_control(effect)
            case AppendFetched():
                self._append_fetched(effect)
            case TruncateTo():
                world.checks.truncates(self.key, effect.offset, self.high_watermark, is_leader=machine.is_leader)
                self.log.truncate(effect.offset)
                world.truncation_count += 1
                self._events.appendleft(LogTruncated(end_offset=self.log.end_offset))
            case MoveHighWatermark():
                self._commit(effect.high_watermark)
            case SendRequest():
                if isinstance(effect.ask, VoteRequest) and not effect.ask.is_pre_vote:
                    world.checks.votes_for(self.key, effect.ask.epoch, effect.ask.candidate)
                world.send(self, effect.node_id, effect.endpoint, effect.ask)
            case SendResponse():
                ask = self._asks.pop(effect.token, None)
                is_vote = isinstance(effect.reply, VoteResponse) and effect.reply.is_granted
                if is_vote and isinstance(ask, VoteRequest) and not ask.is_pre_vote:
                    world.checks.votes_for(self.key, ask.epoch, ask.candidate)
                world.answer(self, effect.token, effect.reply)
            case ServeFetch():
                self._serve_fetch(effect.token, effect.ask, is_first=True)
            case ServeSnapshot():
                self._serve_snapshot(effect.token, effect.ask)
            case WriteSnapshotPart():
                assert effect.position in (0, self._part_bytes), "a part of a snapshot is missing"
                self._part_bytes = effect.position + len(effect.data)
            case InstallSnapshot():
                self._install(effect.snapshot)
            case ChangeLeader():
                world.leader_change_count += 1
            case PersistState():
                raise AssertionError("PersistState must be handled in _perform_all")
            case _:
                assert_never(effect)

    def note_asked(self, token: int, ask: object) -> None:
        self._asks[token] = ask

    def _append_control(self, effect: AppendControl) -> None:
        changes: list[tuple[int, KRaftVersion | Voters]] = []
        for value in effect.values:
            if isinstance(value, LeaderChange):
                self.world.checks.leads(self.key, self.incarnation, effect.epoch, self.log)
                self.world.election_count += 1
            offset = self.log.append(LogEntry(effect.epoch, self.world.payloads.new(value)))
            self.world.checks.appended(self.key, self.log, offset)
            if not isinstance(value, LeaderChange):
                changes.append((offset, value))
        self._flush_later()
        self._events.appendleft(LogAppended(end_offset=self.log.end_offset, changes=tuple(changes)))

    def _append_fetched(self, effect: AppendFetched) -> None:
        changes: list[tuple[int, KRaftVersion | Voters]] = []
        for offset, entry in decode(effect.records):
            assert offset == self.log.end_offset, "fetched records do not continue the log"
            self.log.append(entry)
            self.world.checks.appended(self.key, self.log, offset)
            value = self.world.payloads.controls.get(entry.payload)
            if isinstance(value, KRaftVersion | Voters):
                changes.append((offset, value))
        self._flush_later()
        self._events.appendleft(LogAppended(end_offset=self.log.end_offset, changes=tuple(changes)))

    def propose(self) -> bool:
        """Append a record as the controller does."""
        if self.machine is None or not self.machine.is_leader or self._is_waiting or self._effects:
            return False
        if self.log.end_offset <= self.machine.epoch_start_offset:
            return False
        offset = self.log.append(LogEntry(self.machine.epoch, self.world.payloads.new()))
        self.world.checks.appended(self.key, self.log, offset)
        self._flush_later()
        return True

    def _flush_later(self) -> None:
        if self._is_flushing or self.log.flushed_offset >= self.log.end_offset:
            return
        self._is_flushing = True

        def flushed() -> None:
            self._is_flushing = False
            self.log.flush()
            self.deliver(LogFlushed(end_offset=self.log.end_offset))

        self.later(self.world.dice.choice((0, 1, 3, 20)), flushed)

    def _commit(self, high_watermark: int) -> None:
        machine = self.machine
        assert machine is not None
        self.world.checks.commits(self.key, self.log, self.high_watermark, high_watermark)
        self.high_watermark = high_watermark
        if machine.is_leader:
            logs = [(replica.key, replica.log) for replica in (*self.world.replicas, *self.world.retired)]
            self.world.checks.leader_commits(high_watermark, machine.history.latest, logs, machine.epoch)

    # Serving.

    def _serve_fetch(self, token: int, ask: FetchRequest, *, is_first: bool) -> None:
        machine = self.machine
        assert machine is not None
        refused = leading.fetch_error(machine, ask)
        if refused is not None:
            self.world.answer(self, token, refused)
            return
        records = self.log.read(ask.offset, self.world.dice.randint(1, 8))
        if not records and is_first and machine.high_watermark <= ask.high_watermark:
            wait_ms = self.world.dice.randint(0, self.world.timeouts.fetch_wait_ms_max)
            self.later(wait_ms, lambda: self._serve_fetch(token, ask, is_first=False))
            return
        self.world.answer(
            self,
            token,
            FetchResponse(leader=machine.leader, high_watermark=machine.high_watermark, records=records),
        )

    def _serve_snapshot(self, token: int, ask: SnapshotRequest) -> None:
        machine = self.machine
        assert machine is not None
        if self.log.snapshot != ask.snapshot:
            reply = SnapshotResponse(error_code=SnapshotNotFound.code, leader=machine.leader, snapshot=ask.snapshot)
        else:
            size = min(SNAPSHOT_PART_BYTES, SNAPSHOT_SIZE_BYTES - ask.position)
            reply = SnapshotResponse(
                leader=machine.leader,
                snapshot=ask.snapshot,
                size_bytes=SNAPSHOT_SIZE_BYTES,
                position=ask.position,
                data=bytes(size),
            )
        self.world.answer(self, token, reply)

    def _install(self, key: SnapshotKey) -> None:
        assert self._part_bytes == SNAPSHOT_SIZE_BYTES, "a snapshot is incomplete"
        assert self.machine is not None
        assert not self.machine.is_leader, "R9: a leader loads a snapshot"
        snapshot = self.world.snapshots[key]
        self._part_bytes = 0
        self.log.start_over(snapshot)
        self.world.snapshot_count += 1
        # All records in a snapshot were committed when it was created.
        self.high_watermark = max(self.high_watermark, key.end_offset)
        self._events.appendleft(
            SnapshotInstalled(end_offset=key.end_offset, kraft_version=snapshot.kraft_version, voters=snapshot.voters)
        )

    def take_snapshot(self) -> None:
        machine = self.machine
        if machine is None or self._is_waiting or self.high_watermark <= self.log.start_offset:
            return
        end_offset = self.high_watermark
        version, voters = machine.history.at(end_offset)
        key = SnapshotKey(end_offset, self.log.epoch_before(end_offset))
        snapshot = MemorySnapshot(key, version, voters)
        known = self.world.snapshots.setdefault(key, snapshot)
        assert known == snapshot, f"R6: {self.key} makes {snapshot}, another made {known}"
        self.log.begin_with(snapshot)
        self.deliver(SnapshotTaken(end_offset=end_offset))
