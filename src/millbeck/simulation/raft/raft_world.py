"""A quorum in virtual time: with delayed and lost messages, partitions, crashes, power losses and voter changes.

Everything is drawn from one seed, including the options. The first phase tests safety: `Checks` must hold under all
faults. The second phase tests progress: after all faults are repaired, a leader must soon be elected and commit
records.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from typing import Final

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft.events import RequestReceived, ResponseReceived, TimerExpired
from millbeck.raft.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    Request,
    Response,
    SnapshotKey,
    VersionsRequest,
    VersionsResponse,
)
from millbeck.raft.options import QuorumTimeouts
from millbeck.raft.roles import NEVER_MS
from millbeck.raft.voters import ReplicaKey, VoterSet
from millbeck.records.control import Voter, VoterEndpoint
from millbeck.simulation.raft.checks import Checks, RaftViolation
from millbeck.simulation.raft.memory_log import MemorySnapshot, PayloadTable
from millbeck.simulation.raft.replica import Replica

PROGRESS_MS_MAX: Final = 60_000
FAULTS: Final = ("crash", "power", "partition", "one-way", "heal", "snapshot", "change", "replace", "power all")


class RaftWorld:
    """A simulated quorum. ``replicas`` are in the order of their node ids; a static quorum has no voter changes."""

    def __init__(
        self,
        seed: int,
        *,
        voter_count: int | None = None,
        observer_count: int | None = None,
        static: bool | None = None,
        faults: tuple[str, ...] | None = None,
        fault_ms_max: int = 400,
    ) -> None:
        """Options that are not given are drawn from the seed. A fault is injected at least every ``fault_ms_max``."""
        self.dice = random.Random(f"raft/{seed}")
        self.seed = seed
        pick = self.dice.choice
        voters = voter_count or pick((1, 3, 3, 3, 5))
        observers = pick((0, 1, 2)) if observer_count is None else observer_count
        self.is_static = self.dice.random() < 0.4 if static is None else static
        self.loss = pick((0.0, 0.01, 0.1))
        self.delay_ms = pick((1, 5, 30))
        fetch_ms = pick((200, 400))
        self.timeouts = QuorumTimeouts(
            election_ms=pick((100, 200)),
            fetch_ms=fetch_ms,
            request_ms=pick((100, 300)),
            fetch_wait_ms_max=fetch_ms // 8,
        )
        self.auto_join = not self.is_static and self.dice.random() < 0.5
        drawn = [fault for fault in FAULTS if self.dice.random() < 0.6] or ["crash"]
        self.faults = drawn if faults is None else list(faults)
        self._fault_ms_max = fault_ms_max
        self.checks = Checks()
        self.payloads = PayloadTable()
        self.snapshots: dict[SnapshotKey, MemorySnapshot] = {}
        self.now_ms = 0
        self.step_count = self.election_count = self.truncation_count = self.snapshot_count = 0
        self.leader_change_count = self.change_count = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._token = 0
        self._pending: dict[int, tuple[Replica, int, int, Request]] = {}
        self._cut: dict[tuple[int, int], bool] = {}
        self._alarms: dict[ReplicaKey, int] = {}
        self.retired: list[Replica] = []
        initial = self._initial(voters)
        self.bootstrap = tuple(self._endpoint(node_id) for node_id in range(1, min(voters, 2) + 1))
        self.replicas = [
            Replica(
                self, self._key(node_id), initial, can_vote=node_id <= voters + (0 if self.is_static else observers)
            )
            for node_id in range(1, voters + observers + 1)
        ]

    def _endpoint(self, node_id: int) -> VoterEndpoint:
        return VoterEndpoint(name="CONTROLLER", host="sim", port=node_id)

    def _key(self, node_id: int, life: int = 0) -> ReplicaKey:
        return ReplicaKey(node_id, bytes([node_id, life + 1] * 8))

    def _initial(self, count: int) -> MemorySnapshot:
        voters = tuple(
            Voter(
                node_id=node_id,
                directory_id=ZERO_UUID if self.is_static else self._key(node_id).directory_id,
                endpoints=(self._endpoint(node_id),),
                kraft_version_max=0 if self.is_static else 1,
            )
            for node_id in range(1, count + 1)
        )
        return MemorySnapshot(SnapshotKey(0, 0), 0 if self.is_static else 1, VoterSet.of(voters))

    # Time.

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, action))

    def wake(self, replica: Replica) -> None:
        """Notify a replica that its deadline has passed."""
        machine = replica.machine
        if machine is None or machine.next_deadline_ms >= NEVER_MS:
            return
        due_ms = max(machine.next_deadline_ms, self.now_ms)
        if self._alarms.get(replica.key) == due_ms:
            return
        self._alarms[replica.key] = due_ms

        def ring() -> None:
            if self._alarms.get(replica.key) == due_ms:
                del self._alarms[replica.key]
                replica.deliver(TimerExpired())

        self.after(due_ms - self.now_ms, ring)

    # The network.

    def replica_of(self, node_id: int) -> Replica | None:
        return next((replica for replica in self.replicas if replica.key.node_id == node_id), None)

    def _passes(self, source: int, target: int) -> bool:
        return not self._cut.get((source, target), False) and self.dice.random() >= self.loss

    def send(self, sender: Replica, node_id: int, endpoint: VoterEndpoint, ask: Request) -> None:
        self._token += 1
        token = self._token
        self._pending[token] = (sender, sender.incarnation, node_id, ask)
        target_id = endpoint.port
        if isinstance(ask, VersionsRequest):
            self.after(
                self.dice.randint(0, self.delay_ms), lambda: self._arrived(token, VersionsResponse(kraft_version_max=1))
            )
        elif self._passes(sender.key.node_id, target_id):
            self.after(self.dice.randint(0, self.delay_ms), lambda: self._asked(token, target_id, ask))
        self.after(self.timeouts.request_ms, lambda: self._arrived(token, None))

    def _asked(self, token: int, target_id: int, ask: Request) -> None:
        target = self.replica_of(target_id)
        if target is not None and target.is_up:
            target.note_asked(token, ask)
            target.deliver(RequestReceived(token=token, ask=ask))

    def answer(self, source: Replica, token: int, reply: Response) -> None:
        pending = self._pending.get(token)
        if pending is not None and self._passes(source.key.node_id, pending[0].key.node_id):
            self.after(self.dice.randint(0, self.delay_ms), lambda: self._arrived(token, reply))

    def _arrived(self, token: int, reply: Response | None) -> None:
        pending = self._pending.pop(token, None)
        if pending is not None:
            sender, incarnation, node_id, ask = pending
            if sender.incarnation == incarnation and sender in self.replicas:
                sender.deliver(ResponseReceived(node_id=node_id, ask=ask, reply=reply))

    # Steps and faults.

    def run(self, duration_ms: int) -> None:
        """Run all steps and faults of the seed; raises `RaftViolation`."""
        end_ms = self.now_ms + duration_ms
        if not self.now_ms:
            for replica in self.replicas:
                replica.start()
            self._work()
            self._break()
        self.run_until(end_ms)

    def run_until(self, end_ms: int, is_done: Callable[[], bool] = lambda: False) -> bool:
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            action()
            if is_done():
                return True
        self.now_ms = end_ms
        return False

    @property
    def leader(self) -> Replica | None:
        leaders = [each for each in self.replicas if each.machine is not None and each.machine.is_leader]
        return max(leaders, key=lambda each: each.machine.epoch if each.machine else -1, default=None)

    def _work(self) -> None:
        for replica in self.replicas:
            replica.propose()
        self.after(self.dice.randint(1, 20), self._work)

    def _break(self) -> None:
        self.after(self.dice.randint(10, self._fault_ms_max), self._break)
        if not self.faults:
            return
        fault = self.dice.choice(self.faults)
        victim = self.dice.choice(self.replicas)
        match fault:
            case "crash" | "power":
                self._kill(victim, loses_power=fault == "power")
            case "power all":
                if self.dice.random() < 0.2:
                    for replica in self.replicas:
                        self._kill(replica, loses_power=True)
            case "partition" | "one-way":
                self._isolate(victim.key.node_id, is_one_way=fault == "one-way")
            case "heal":
                self._cut.clear()
            case "snapshot":
                victim.take_snapshot()
            case "change":
                self._change_voters()
            case "replace":
                self._replace(victim)

    def _kill(self, victim: Replica, *, loses_power: bool) -> None:
        if victim.is_up:
            victim.crash(loses_power=loses_power)
            self.after(self.dice.choice((0, 5, 50, 500)), lambda: self._restart(victim))

    def _restart(self, victim: Replica) -> None:
        if victim in self.replicas and not victim.is_up:
            victim.start()

    def _isolate(self, node_id: int, *, is_one_way: bool) -> None:
        for other in self.replicas:
            self._cut[node_id, other.key.node_id] = True
            if not is_one_way:
                self._cut[other.key.node_id, node_id] = True

    def ask_leader(self, ask: Request) -> bool:
        leader = self.leader
        if leader is None:
            return False
        self._token += 1
        leader.deliver(RequestReceived(token=self._token, ask=ask))
        return True

    def _change_voters(self) -> None:
        leader = self.leader
        if self.is_static or leader is None or leader.machine is None:
            return
        voters = leader.machine.history.latest
        if self.dice.random() < 0.5 and len(voters.voters) > 1:
            leaving = self.dice.choice(voters.keys)
            if self._can_spare(voters.without(leaving), lost=()):
                self.change_count += self.ask_leader(RemoveVoterRequest(voter=leaving))
            return
        others = [each for each in self.replicas if each.can_vote and voters.get(each.key.node_id) is None]
        if others:
            chosen = self.dice.choice(others)
            voter = Voter(
                node_id=chosen.key.node_id, directory_id=chosen.key.directory_id, endpoints=(chosen.endpoint,)
            )
            self.change_count += self.ask_leader(AddVoterRequest(voter=voter))

    def _replace(self, victim: Replica) -> None:
        """Restart a node with an empty disk: a new replica with the same node id."""
        known = [each.machine.history.latest for each in self.replicas if each.machine is not None]
        if self.is_static or len(known) < len(self.replicas):
            return
        if not all(self._can_spare(voters, lost=(victim.key,)) for voters in known):
            return
        victim.crash(loses_power=True)
        self.retired.append(victim)
        empty = MemorySnapshot(SnapshotKey(0, 0), 0, VoterSet())
        life = victim.key.directory_id[1]
        fresh = Replica(self, self._key(victim.key.node_id, life), empty, can_vote=victim.can_vote)
        self.replicas[self.replicas.index(victim)] = fresh
        fresh.start()

    def _can_spare(self, voters: VoterSet, *, lost: tuple[ReplicaKey, ...]) -> bool:
        """Whether a majority of the voters' disks would remain; without it nothing is guaranteed."""
        gone = {*lost, *(replica.key for replica in self.retired)}
        return sum(key not in gone for key in voters.keys) >= voters.majority

    # Progress.

    def heal(self) -> None:
        self.faults = []
        self.loss = 0.0
        self._cut.clear()
        for replica in self.replicas:
            if not replica.is_up:
                replica.start()

    def heal_and_expect_progress(self) -> None:
        """Start all members and heal the network; records must soon be committed on all of them."""
        self.heal()
        goal = self.checks.committed_end + 20

        def is_done() -> bool:
            return all(replica.high_watermark >= goal for replica in self.replicas)

        if not self.run_until(self.now_ms + PROGRESS_MS_MAX, is_done):
            roles = [
                (str(each.key), each.machine.role.value if each.machine else "down", each.high_watermark)
                for each in self.replicas
            ]
            raise RaftViolation(f"no progress within {PROGRESS_MS_MAX} ms after healing: {roles}, wanted {goal}")
