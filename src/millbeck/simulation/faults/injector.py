"""Injects the faults of a schedule into a cluster, and repairs each after its duration.

A supervisor restarts nodes that have ended, by themselves or by a fault, unless a fault keeps them down. `heal` repairs
all faults at once. Faults that could lose more than the guarantees allow are skipped (`budget`).
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable
from typing import Final

from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.simulation.faults import schedule as kinds
from millbeck.simulation.faults.budget import FaultBudget
from millbeck.simulation.faults.schedule import Fault
from millbeck.simulation.observer.cluster_observer import ClusterObserver

SUPERVISION_SECONDS: Final = 0.3
JUMP_MS_MAX: Final = 3_600_000
HARNESS: Final = "harness"

Undo = Callable[[], None]


def _nothing() -> None:
    """Do nothing: the fault needs no repair."""


class FaultInjector:
    """Injects faults. ``topic`` and ``partition_count`` name the partitions whose leaders are affected; with
    ``flushes`` all nodes may lose power at once."""

    def __init__(
        self,
        cluster: SimCluster,
        observer: ClusterObserver,
        budget: FaultBudget,
        *,
        topic: str,
        partition_count: int,
        flushes: bool,
    ) -> None:
        self.done: dict[str, int] = {}
        """The number of injected faults by kind."""
        self._cluster = cluster
        self._observer = observer
        self._budget = budget
        self._topic = topic
        self._partition_count = partition_count
        self._flushes = flushes
        self._held: dict[str, int] = {}
        self._undos: dict[int, Undo] = {}
        self._number = 0
        self._is_over = False

    async def run(self, faults: Iterable[Fault]) -> None:
        """Run the whole schedule; returns when the last fault is repaired."""
        async with asyncio.TaskGroup() as tasks:
            supervision = tasks.create_task(self._supervise())
            waiting = [tasks.create_task(self._run_one(fault)) for fault in faults]
            await asyncio.gather(*waiting)
            self.heal()
            supervision.cancel()

    def heal(self) -> None:
        """Repair everything and start all nodes."""
        self._is_over = True
        undos, self._undos = self._undos, {}
        for undo in undos.values():
            undo()
        self._held.clear()
        self._cluster.world.network.heal()
        for member in self._cluster.members:
            disk = self._cluster.machine(member).disk
            disk.faults = self._cluster.world.options.disk_faults()
            disk.forget_planned()
        self._cluster.start_all()

    async def keep_running(self) -> None:
        """Restart nodes that stop, until cancelled; a node may stop because it exceeds its own timeouts."""
        while True:
            self._cluster.start_all()
            await asyncio.sleep(SUPERVISION_SECONDS)

    async def _supervise(self) -> None:
        while True:
            for member in self._cluster.members:
                if not self._held.get(member.name) and not self._cluster.machine(member).is_running:
                    self._cluster.start(member)
            await asyncio.sleep(SUPERVISION_SECONDS)

    async def _run_one(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at_s)
        undo = await self._begin(fault)
        if undo is None:
            return
        self.done[fault.kind] = self.done.get(fault.kind, 0) + 1
        self._number += 1
        number = self._number
        self._undos[number] = undo
        await asyncio.sleep(fault.seconds)
        if self._undos.pop(number, None) is not None:
            undo()

    # Selecting the target.

    def _member(self, fault: Fault) -> SimNode:
        members = self._cluster.members
        return members[int(fault.target * len(members))]

    def _leader(self, fault: Fault) -> SimNode:
        partition = int(fault.target * self._partition_count)
        return self._cluster.leader_of(self._topic, partition) or self._member(fault)

    def _controller(self, fault: Fault) -> SimNode:
        return self._cluster.active_controller() or self._member(fault)

    def _others(self, member: SimNode, fault: Fault) -> list[str]:
        """All other machines; in half of the cases clients still reach the node."""
        names = [each.name for each in self._cluster.members if each is not member]
        return [*names, HARNESS] if fault.value < 0.5 else names

    # Injecting the fault.

    async def _begin(self, fault: Fault) -> Undo | None:
        """Inject the fault; returns its repair, or None when it did not apply."""
        match fault.kind:
            case kinds.CRASH:
                return self._crash([self._member(fault)])
            case kinds.CRASH_LEADER:
                return self._crash([self._leader(fault)])
            case kinds.CRASH_CONTROLLER:
                return self._crash([self._controller(fault)])
            case kinds.CRASH_SEVERAL:
                members = self._cluster.members
                first = int(fault.target * len(members))
                count = 2 + int(fault.value * (len(members) - 1))
                return self._crash([members[(first + index) % len(members)] for index in range(count)])
            case kinds.CLEAN_RESTART:
                return await self._restart(self._member(fault))
            case kinds.POWER_LOSS:
                return self._power_loss(self._member(fault))
            case kinds.POWER_LOSS_OF_ALL:
                return self._power_loss_of_all()
            case kinds.PAUSE:
                self._cluster.machine(self._member(fault)).pause(fault.seconds)
                return _nothing
            case kinds.PAUSE_LEADER:
                self._cluster.machine(self._leader(fault)).pause(fault.seconds)
                return _nothing
            case kinds.CLOCK_JUMP:
                jump_ms = int((2 * fault.value - 1) * JUMP_MS_MAX)
                self._cluster.machine(self._member(fault)).jump_wall(jump_ms)
                return _nothing
            case kinds.SLOW_DISK | kinds.FULL_DISK | kinds.FAILING_DISK | kinds.ROTTING_DISK | kinds.EMPTY_DISK:
                return self._break_disk(fault, self._member(fault))
            case kinds.BUSY_CONTROLLER:
                return await self._keep_busy(self._controller(fault))
            case _:
                return self._break_network(fault)

    def _hold_down(self, members: list[SimNode]) -> Undo:
        for member in members:
            self._held[member.name] = self._held.get(member.name, 0) + 1

        def undo() -> None:
            for member in members:
                self._held[member.name] = self._held.get(member.name, 1) - 1

        return undo

    def _crash(self, members: list[SimNode]) -> Undo | None:
        if not self._budget.may_end([member.number for member in members]):
            return None
        for member in members:
            if self._cluster.machine(member).is_running:
                self._observer.ended_unclean(member)
                self._cluster.machine(member).crash()
        return self._hold_down(members)

    async def _restart(self, member: SimNode) -> Undo | None:
        if not self._budget.may_end([member.number]):
            return None
        undo = self._hold_down([member])
        await self._cluster.stop(member)
        return undo

    def _may_lose(self, member: SimNode) -> bool:
        return not member.is_broker or self._budget.may_lose(member.number)

    def _power_loss(self, member: SimNode) -> Undo | None:
        if not (self._budget.may_end([member.number]) if self._flushes else self._may_lose(member)):
            return None
        self._pull_plug(member)
        return self._hold_down([member])

    def _pull_plug(self, member: SimNode) -> None:
        if self._cluster.machine(member).is_running:
            self._observer.ended_unclean(member)
        if not self._flushes:
            self._observer.lost_data(member)
        self._cluster.machine(member).power_loss()

    def _power_loss_of_all(self) -> Undo | None:
        if not self._flushes or not self._budget.may_end([member.number for member in self._cluster.members]):
            return None
        for member in self._cluster.members:
            self._pull_plug(member)
        return self._hold_down(list(self._cluster.members))

    def _break_network(self, fault: Fault) -> Undo:
        network, cluster = self._cluster.world.network, self._cluster
        member = self._member(fault)
        others = [each.name for each in cluster.members if each is not member]
        peer = others[int(fault.value * len(others))]
        links: list[tuple[str, str]] = []
        match fault.kind:
            case kinds.PARTITION | kinds.PARTITION_LEADER | kinds.PARTITION_CONTROLLER:
                if fault.kind == kinds.PARTITION_LEADER:
                    member = self._leader(fault)
                elif fault.kind == kinds.PARTITION_CONTROLLER:
                    member = self._controller(fault)
                links = network.partition([member.name], self._others(member, fault))
            case kinds.ONE_WAY:
                sides = [member.name], others
                source, target = sides if fault.value < 0.5 else (sides[1], sides[0])
                links = network.partition(source, target, both_ways=False)
            case kinds.LINK:
                links = network.partition([member.name], [peer])
            case kinds.SPLIT:
                bits = int(fault.value * (1 << len(cluster.members)))
                one = [each.name for index, each in enumerate(cluster.members) if bits >> index & 1]
                links = network.partition(one, [each.name for each in cluster.members if each.name not in one])
            case kinds.RESET:
                network.reset(member.name, peer)
            case kinds.SLOW_LINK:
                network.slow_down(member.name, peer, 0.05 + fault.value)
                return lambda: network.slow_down(member.name, peer, 0.0)
            case kinds.STALLS:
                before = network.options.spike
                network.options.spike = 0.02 + 0.1 * fault.value

                def stop_fault() -> None:
                    network.options.spike = before

                return stop_fault
            case _:
                raise AssertionError(f"unknown kind of fault: {fault.kind}")
        return lambda: network.rejoin(links)

    async def _keep_busy(self, member: SimNode) -> Undo | None:
        """Keep the controller busy, as decisions about very many partitions do, so that other decisions wait."""
        if not self._cluster.machine(member).is_running:
            return None
        deciding = self._cluster.nodes[member.name].broker.quorum.deciding
        await deciding.acquire()
        return deciding.release

    def _break_disk(self, fault: Fault, member: SimNode) -> Undo | None:
        machine = self._cluster.machine(member)
        disk = machine.disk
        match fault.kind:
            case kinds.SLOW_DISK:
                disk.faults.slowness = 10.0 + 90.0 * fault.value

                def speed_up() -> None:
                    disk.faults.slowness = self._cluster.world.options.disk.slowness

                return speed_up
            case kinds.FULL_DISK:
                if not self._budget.may_end([member.number]):
                    return None
                self._observer.excuse(member)
                disk.faults.capacity_bytes = disk.used_bytes + int(fault.value * 4000)

                def make_room() -> None:
                    disk.faults.capacity_bytes = self._cluster.world.options.disk.capacity_bytes

                return make_room
            case kinds.FAILING_DISK:
                return self._fail_disk(fault, member)
            case kinds.ROTTING_DISK:
                return self._rot(fault, member)
            case _:
                return self._replace_disk(member)

    def _fail_disk(self, fault: Fault, member: SimNode) -> Undo | None:
        """Make the next writes or syncs fail. Data of a failed sync is never written later; so the machine is restarted
        when the disk is repaired, because its page cache no longer matches the disk."""
        if not self._may_lose(member):
            return None
        disk = self._cluster.machine(member).disk
        self._observer.excuse(member)
        call = DiskCall.WRITE if fault.value < 0.3 else DiskCall.SYNC
        disk.fail_next(call, error=errno.EIO, count=1 + int(fault.value * 5))
        if member.is_broker:
            self._observer.lost_data(member)
        release = self._hold_down([member])

        def reboot() -> None:
            disk.forget_planned()
            if self._flushes or self._may_lose(member):
                self._pull_plug(member)
            release()

        return reboot

    def _rot(self, fault: Fault, member: SimNode) -> Undo | None:
        if not member.is_broker or not self._budget.may_lose(member.number):
            return None
        facts = self._observer.data.of(self._topic, int(fault.seconds * 1000) % self._partition_count)
        shadow = facts.shadows.get(member.number)
        spot = None if shadow is None else shadow.checked_bit(fault.value)
        if spot is None:
            return None
        path, bit = spot
        disk = self._cluster.machine(member).disk
        try:
            disk.find(path)
        except FileNotFoundError:
            # The disk was replaced, and no process has opened a log on the new one yet.
            return None
        self._observer.data.damage(member.number)
        disk.rot(path, bit)
        return _nothing

    def _replace_disk(self, member: SimNode) -> Undo | None:
        """Replace the disk of a broker without the controller role: a controller with another disk would be a different
        voter."""
        if member.is_controller or not self._budget.may_lose(member.number):
            return None
        machine = self._cluster.machine(member)
        if machine.is_running:
            self._observer.ended_unclean(member)
            machine.crash()
        self._observer.disk_replaced(member)
        machine.disk.replace()
        return self._hold_down([member])
