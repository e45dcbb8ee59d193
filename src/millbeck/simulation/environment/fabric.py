"""The network between simulated machines: listeners, cut links and latencies.

One fabric serves all machines; a process uses it through `network.SimNetwork`. Links have a direction: a one-way
partition blocks one and not the other. Everything random is drawn from the network's own stream.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from millbeck.simulation.environment.loop import SimLoop
from millbeck.simulation.environment.options import NetworkOptions
from millbeck.simulation.environment.process import PROCESS, Process
from millbeck.simulation.environment.transport import Pipe, SimTransport

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_FIRST_FREE_PORT = 32768
_SYN_RETRY_S = 1.0


@dataclass(slots=True)
class SimListener:
    process: Process
    context: contextvars.Context
    make_protocol: Callable[[], asyncio.BaseProtocol]
    is_loopback: bool
    is_paused: bool = False
    waiting: deque[SimTransport] = field(default_factory=deque)
    """The kernel's queue: connections that are established and not accepted yet."""


@dataclass(slots=True)
class SimMachine:
    name: str
    address: str
    is_up: bool
    listeners: dict[int, SimListener]


class Fabric:
    def __init__(
        self, loop: SimLoop, generator: random.Random, options: NetworkOptions, trace: Callable[..., None]
    ) -> None:
        self.loop = loop
        self.options = options
        self.trace = trace
        self.stalled: dict[Pipe, None] = {}
        self.delivered_bytes = 0
        self._generator = generator
        self._machines: dict[str, SimMachine] = {}
        self._transports: dict[SimTransport, None] = {}
        self._cut: dict[tuple[str, str], int] = {}
        self._slow: dict[tuple[str, str], float] = {}
        self._connection_count = 0
        self._next_port = _FIRST_FREE_PORT

    def add_machine(self, name: str) -> str:
        """Add a machine; returns its address."""
        address = f"10.0.0.{len(self._machines) + 1}"
        self._machines[name] = SimMachine(name, address, True, {})
        return address

    def chance(self, probability: float) -> bool:
        return probability > 0 and self._generator.random() < probability

    def below(self, bound: int) -> int:
        return self._generator.randrange(bound)

    def delay(self, source: str, target: str) -> float:
        draw = self._generator.random()
        delay = (
            self.options.latency_s + self.options.jitter_s * draw * draw * draw + self._slow.get((source, target), 0)
        )
        if self.chance(self.options.spike):
            delay += self.options.spike_s * (1 + draw)
        return delay

    def is_blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._cut or not self._machines[target].is_up

    def partition(
        self, sources: Iterable[str], targets: Iterable[str], *, both_ways: bool = True
    ) -> list[tuple[str, str]]:
        """Packets from ``sources`` to ``targets`` (and back) no longer arrive; connections stay open and stall.

        Returns the links that were cut, for `rejoin`. Cuts of the same link add up.
        """
        targets = list(targets)
        links = []
        for source in sources:
            for target in targets:
                self.trace("cut", source, target, int(both_ways))
                links += [(source, target), (target, source)] if both_ways else [(source, target)]
        for link in links:
            self._cut[link] = self._cut.get(link, 0) + 1
        return links

    def rejoin(self, links: Iterable[tuple[str, str]]) -> None:
        """Undo one cut of each link; links that were healed in between are unchanged."""
        for link in links:
            self.trace("rejoin", *link)
            count = self._cut.pop(link, 0) - 1
            if count > 0:
                self._cut[link] = count
        self._retransmit_stalled()

    def slow_down(self, source: str, target: str, seconds: float) -> None:
        """Add to the latency of one direction."""
        self._slow[source, target] = seconds

    def heal(self) -> None:
        """Repair all links and remove added latency."""
        self.trace("heal")
        self._cut.clear()
        self._slow.clear()
        self._retransmit_stalled()

    def _retransmit_stalled(self) -> None:
        stalled, self.stalled = self.stalled, {}
        for pipe in stalled:
            if self.is_blocked(pipe.source_machine, pipe.target_machine):
                self.stalled[pipe] = None
            else:
                pipe.retransmit()

    def reset(self, one: str, other: str) -> int:
        """Break every connection between two machines; returns how many."""
        broken = 0
        for transport in list(self._transports):
            if transport in self._transports and transport.get_extra_info("machines") == (one, other):
                transport.reset()
                broken += 1
        return broken

    def process_died(self, process: Process, *, is_silent: bool) -> None:
        """Close the sockets of a dead process as its kernel would; after a power loss nothing is sent to its peers."""
        machine = self._machines[process.machine_name]
        for port in [port for port, listener in machine.listeners.items() if listener.process is process]:
            del machine.listeners[port]
        for transport in [transport for transport in self._transports if transport.process is process]:
            transport.kill(is_silent=is_silent)

    def set_power(self, name: str, *, is_up: bool) -> None:
        self._machines[name].is_up = is_up
        if is_up:
            self._retransmit_stalled()

    def forget(self, transport: SimTransport) -> None:
        self._transports.pop(transport, None)

    def connection_count(self) -> int:
        return len(self._transports)

    def listen(self, process: Process, make_protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> int:
        machine = self._machines[process.machine_name]
        if port == 0:
            port = self._free_port(machine)
        elif port in machine.listeners:
            raise OSError(errno.EADDRINUSE, f"port {port} of {machine.name} is in use")
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        machine.listeners[port] = SimListener(process, context, make_protocol, host in _LOOPBACK)
        return port

    def _free_port(self, machine: SimMachine) -> int:
        while self._next_port in machine.listeners:
            self._next_port += 1
        self._next_port += 1
        return self._next_port - 1

    def stop_listening(self, process: Process, port: int) -> None:
        listeners = self._machines[process.machine_name].listeners
        listener = listeners.get(port)
        if listener is not None and listener.process is process:
            del listeners[port]
            waiting, listener.waiting = listener.waiting, deque()
            for transport in waiting:
                transport.reset()

    def pause_listening(self, process: Process, port: int) -> None:
        """Connections to this port wait until `resume_listening`."""
        listener = self._machines[process.machine_name].listeners.get(port)
        if listener is not None and listener.process is process:
            listener.is_paused = True

    def resume_listening(self, process: Process, port: int) -> None:
        listener = self._machines[process.machine_name].listeners.get(port)
        if listener is not None and listener.process is process:
            listener.is_paused = False
            for transport in listener.waiting:
                self.loop.call_soon(self._accept, listener, context=transport._context)

    def find_machine(self, host: str, seen_from: str) -> SimMachine:
        if host in _LOOPBACK:
            return self._machines[seen_from]
        for machine in self._machines.values():
            if host in (machine.name, machine.address):
                return machine
        raise OSError(errno.EHOSTUNREACH, f"there is no machine {host}")

    async def connect(
        self, process: Process, make_protocol: Callable[[], asyncio.BaseProtocol], host: str, port: int
    ) -> tuple[SimTransport, asyncio.BaseProtocol]:
        source, target = process.machine_name, self.find_machine(host, process.machine_name)
        await self._shake_hands(source, target)
        listener = target.listeners.get(port)
        is_local = target.name == source
        if listener is None or (listener.is_loopback and not is_local):
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"no process listens at {host}:{port}")
        own_address = "127.0.0.1" if is_local else self._machines[source].address
        own = (own_address, self._free_port(self._machines[source]))
        theirs = ("127.0.0.1" if is_local else target.address, port)
        self._connection_count += 1
        context = contextvars.copy_context()
        context.run(PROCESS.set, process)
        near = SimTransport(
            self,
            self._connection_count,
            process,
            context,
            {"sockname": own, "peername": theirs, "machines": (source, target.name)},
        )
        far = SimTransport(
            self,
            self._connection_count,
            listener.process,
            listener.context.copy(),
            {"sockname": theirs, "peername": own, "machines": (target.name, source)},
        )
        near.join(far)
        far.join(near)
        self._transports[near] = self._transports[far] = None
        self.trace("connect", self._connection_count, process.name, listener.process.name)
        listener.waiting.append(far)
        self.loop.call_soon(self._accept, listener, context=far._context)
        protocol = make_protocol()
        near.begin(protocol)
        return near, protocol

    def _accept(self, listener: SimListener) -> None:
        if listener.waiting and not listener.is_paused:
            transport = listener.waiting.popleft()
            transport.begin(listener.make_protocol())

    async def _shake_hands(self, source: str, target: SimMachine) -> None:
        give_up_at = self.loop.time() + self.options.connect_timeout_s
        retry_s = _SYN_RETRY_S
        while True:
            await asyncio.sleep(self.delay(source, target.name))
            if not self.is_blocked(source, target.name):
                await asyncio.sleep(self.delay(target.name, source))
                if not self.is_blocked(target.name, source):
                    return
            left_s = give_up_at - self.loop.time()
            if left_s <= 0:
                raise TimeoutError(errno.ETIMEDOUT, f"{target.name} does not answer")
            await asyncio.sleep(min(retry_s, left_s))
            retry_s *= 2
