"""One quorum member under test: a test passes it events and inspects every effect.

    member = Member(1, voters=(1, 2, 3), epochs=[1, 1, 2])      # a log of three records
    effects = member.step(TimePassed(), at_ms=5_000)

Effects on the log are performed on an in-memory log, and the resulting event is stepped at once, as a driver does; so
``effects`` may be those of several steps. Nothing is flushed unless the test requests it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.raft.effects import AppendControl, AppendFetched, Effect, SendRequest, TruncateTo
from millbeck.raft.events import (
    Event,
    LogAppended,
    LogFlushed,
    LogTruncated,
    ProcessStarted,
    RequestReceived,
    ResponseReceived,
    TimerExpired,
)
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import Request, Response, SnapshotKey
from millbeck.raft.options import QuorumOptions, QuorumTimeouts
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Role
from millbeck.raft.voters import ReplicaKey, VoterHistory, VoterSet
from millbeck.records.control import KRaftVersion, Voter, VoterEndpoint, Voters
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot, PayloadTable, decode

E = TypeVar("E")

TOKEN = 77
TIMEOUTS = QuorumTimeouts()


def endpoint(node_id: int) -> VoterEndpoint:
    return VoterEndpoint(name="CONTROLLER", host=f"c{node_id}", port=9093)


def directory(node_id: int, life: int = 1) -> Uuid:
    return bytes([node_id, life] * 8)


def voter(node_id: int, *, is_static: bool = False, life: int = 1) -> Voter:
    return Voter(
        node_id=node_id,
        directory_id=ZERO_UUID if is_static else directory(node_id, life),
        endpoints=(endpoint(node_id),),
        kraft_version_max=0 if is_static else 1,
    )


class BenchMember:
    def __init__(
        self,
        node_id: int = 1,
        *,
        voters: tuple[int, ...] = (1, 2, 3),
        epochs: list[int] | None = None,
        state: QuorumState | None = None,
        is_static: bool = True,
        start: SnapshotKey | None = None,
        life: int = 1,
        options: QuorumOptions = QuorumOptions(),
    ) -> None:
        """``epochs`` are the epochs of the records in the member's log, which begins after the snapshot ``start`` if
        that is given.
        """
        members = VoterSet.of(tuple(voter(each, is_static=is_static) for each in voters))
        version = 0 if is_static else 1
        self.log = MemoryLog(MemorySnapshot(start or SnapshotKey(0, 0), version, members))
        self.payloads = PayloadTable()
        for epoch in epochs or []:
            self.log.append(LogEntry(epoch, self.payloads.new()))
        self.log.flush()
        history = VoterHistory(members, version)
        if start is not None:
            history.restart(start.end_offset, members, version)
        self.now_ms = 1_000
        self.draws: list[int] = []
        self.machine = QuorumMachine(
            key=ReplicaKey(node_id, directory(node_id, life)),
            log=self.log,
            history=history,
            state=state,
            below=self._below,
            options=replace(options, listeners=(endpoint(node_id),) if options.can_vote else ()),
        )

    def _below(self, bound: int) -> int:
        return self.draws.pop(0) if self.draws else 0

    @property
    def role(self) -> Role:
        return self.machine.role

    def step(self, event: Event, *, after_ms: int = 0) -> list[Effect]:
        self.now_ms += after_ms
        effects = self.machine.step(event, self.now_ms)
        for effect in list(effects):
            match effect:
                case AppendControl():
                    effects += self._append(effect)
                case AppendFetched():
                    effects += self._append_fetched(effect)
                case TruncateTo():
                    self.log.truncate(effect.offset)
                    effects += self.step(LogTruncated(end_offset=self.log.end_offset))
        return effects

    def _append(self, effect: AppendControl) -> list[Effect]:
        changes: list[tuple[int, KRaftVersion | Voters]] = []
        for value in effect.values:
            offset = self.log.append(LogEntry(effect.epoch, self.payloads.new(value)))
            if isinstance(value, KRaftVersion | Voters):
                changes.append((offset, value))
        return self.step(LogAppended(end_offset=self.log.end_offset, changes=tuple(changes)))

    def _append_fetched(self, effect: AppendFetched) -> list[Effect]:
        for _, entry in decode(effect.records):
            self.log.append(entry)
        return self.step(LogAppended(end_offset=self.log.end_offset))

    # Steps shared by the tests.

    def start(self) -> list[Effect]:
        return self.step(ProcessStarted())

    def let_time_pass(self) -> list[Effect]:
        """Advance time to the machine's next deadline."""
        self.now_ms = max(self.now_ms, self.machine.next_deadline_ms)
        return self.step(TimerExpired())

    def asked(self, ask: Request) -> list[Effect]:
        return self.step(RequestReceived(token=TOKEN, ask=ask))

    def answered(self, node_id: int, ask: Request, reply: Response | None) -> list[Effect]:
        return self.step(ResponseReceived(node_id=node_id, ask=ask, reply=reply))

    def flush(self) -> list[Effect]:
        self.log.flush()
        return self.step(LogFlushed(end_offset=self.log.end_offset))

    def propose(self, count: int = 1) -> None:
        """Append records as the controller of a leader does."""
        for _ in range(count):
            self.log.append(LogEntry(self.machine.epoch, self.payloads.new()))


def only(effects: list[Effect], kind: type[E]) -> list[E]:
    return [effect for effect in effects if isinstance(effect, kind)]


def asks(effects: list[Effect], kind: type[E]) -> dict[int, E]:
    """The requests that the effects send, by node id."""
    return {effect.node_id: effect.ask for effect in only(effects, SendRequest) if isinstance(effect.ask, kind)}
