"""A simulated cluster of several nodes, with what tests need to inspect and control it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import uuid_text
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.local.initial_quorum import InitialController, InitialQuorum
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.environment.node import SimHost as Machine
from millbeck.simulation.environment.options import WorldOptions

PORT: Final = 9092
CONTROLLER_PORT: Final = 9093
CLUSTER_ID: Final = uuid_text(bytes(15) + b"\x2a")
STOP_SECONDS_MAX: Final = 100.0
POLL_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class SimNode:
    """One node: its number, its machine's name and its roles."""

    number: int
    name: str
    roles: str

    @property
    def is_broker(self) -> bool:
        return "broker" in self.roles

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


def members(is_combined: bool) -> list[SimNode]:
    """Three nodes with both roles, or three controllers and three brokers."""
    if is_combined:
        return [SimNode(number=number, name=f"n{number}", roles="broker,controller") for number in (1, 2, 3)]
    controllers = [SimNode(number=number, name=f"c{number}", roles="controller") for number in (1, 2, 3)]
    return controllers + [SimNode(number=number, name=f"b{number}", roles="broker") for number in (4, 5, 6)]


def settings_of(member: SimNode, everybody: list[SimNode], *, voters_in_log: bool = False) -> dict[str, str]:
    voters = [each for each in everybody if each.is_controller]
    who_votes = {
        "controller.quorum.voters": ",".join(f"{each.number}@{each.name}:{CONTROLLER_PORT}" for each in voters)
    }
    if voters_in_log:
        who_votes = {
            "controller.quorum.bootstrap.servers": ",".join(f"{each.name}:{CONTROLLER_PORT}" for each in voters)
        }
    listeners = {}
    if member.is_broker:
        listeners["PLAINTEXT"] = PORT
    if member.is_controller:
        listeners["CONTROLLER"] = CONTROLLER_PORT
    return {
        "process.roles": member.roles,
        "node.id": str(member.number),
        **who_votes,
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join(f"{name}://:{port}" for name, port in listeners.items()),
        "advertised.listeners": ",".join(f"{name}://{member.name}:{port}" for name, port in listeners.items()),
        "log.dirs": "/data",
        "metrics.http.port": "0",
        "broker.session.timeout.ms": "3000",
        "broker.heartbeat.interval.ms": "500",
        "replica.lag.time.max.ms": "3000",
        "replica.fetch.wait.max.ms": "500",
        "offsets.topic.num.partitions": "2",
        "log.flush.offset.checkpoint.interval.ms": "1000",
        "replica.high.watermark.checkpoint.interval.ms": "700",
        "log.retention.check.interval.ms": "3000",
        # A replica that falls behind must load a snapshot, unless a plan sets this option.
        "metadata.max.retention.bytes": "0",
    }


def initial_quorum(everybody: list[SimNode]) -> InitialQuorum:
    """The initial quorum, for directories whose metadata log contains the voters."""
    return InitialQuorum(
        controllers=tuple(
            InitialController(
                node_id=each.number,
                host=each.name,
                port=CONTROLLER_PORT,
                directory_id=bytes([7]) * 15 + bytes([each.number]),
            )
            for each in everybody
            if each.is_controller
        )
    )


class SimCluster:
    """``nodes`` maps the name of each machine to its running node, or to the last one that ran there."""

    def __init__(
        self,
        seed: int,
        *,
        is_combined: bool = True,
        voters_in_log: bool = False,
        options: WorldOptions | None = None,
        settings: Mapping[str, str] | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.world = World(seed, options)
        self._features = dict(features or {})
        self.members = members(is_combined)
        self.nodes: dict[str, Node] = {}
        self._settings = dict(settings or {})
        self._voters_in_log = voters_in_log
        self._stops: dict[str, asyncio.Event] = {}

    @property
    def brokers(self) -> list[SimNode]:
        return [each for each in self.members if each.is_broker]

    @property
    def controllers(self) -> list[SimNode]:
        return [each for each in self.members if each.is_controller]

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The brokers' addresses for clients."""
        return [(each.name, PORT) for each in self.brokers]

    def machine(self, member: SimNode) -> Machine:
        return self.world.node(member.name)

    def member(self, node_id: int) -> SimNode:
        return next(each for each in self.members if each.number == node_id)

    def start(self, member: SimNode) -> None:
        """Start a node. It stops if it cannot register or write in time, like a real process, and can be started
        again."""

        async def main(environment: Environment) -> None:
            settings = settings_of(member, self.members, voters_in_log=self._voters_in_log)
            config = NodeConfig(settings | self._settings)
            quorum = initial_quorum(self.members) if self._voters_in_log and member.is_controller else None
            format_directories(
                environment,
                config,
                cluster_id=CLUSTER_ID,
                features=self._features,
                quorum=quorum,
                ignore_formatted=True,
            )
            stop = self._stops[member.name] = asyncio.Event()
            node = self.nodes[member.name] = Node(environment, config, NodeSettings(checks_views=True))
            await node.start()
            node.failed.add_done_callback(lambda _: stop.set())
            await stop.wait()
            if not node.failed.done():
                await node.stop()

        self.machine(member).start(main, may_fail=True)

    def start_all(self) -> None:
        """Start all nodes that are not running."""
        for member in self.members:
            if not self.machine(member).is_running:
                self.start(member)

    async def stop(self, member: SimNode) -> None:
        """Shut a node down cleanly, waiting a limited time."""
        stop = self._stops.get(member.name)
        if stop is None or not self.machine(member).is_running:
            return
        stop.set()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + STOP_SECONDS_MAX
        while self.machine(member).is_running and loop.time() < deadline:
            await asyncio.sleep(POLL_SECONDS)

    def running(self) -> list[Node]:
        return [self.nodes[each.name] for each in self.members if self.machine(each).is_running]

    def active_controller(self) -> SimNode | None:
        """The active controller, if there is one."""
        for member in self.controllers:
            node = self.nodes.get(member.name)
            if node is not None and self.machine(member).is_running and node.is_active_controller:
                return member
        return None

    def leader_of(self, topic: str, partition: int) -> SimNode | None:
        """The leader of a partition, according to the newest image of any node."""
        images = [node.broker.image for node in self.running()]
        found = None if not images else max(images, key=lambda image: image.offset).topics.partition(topic, partition)
        return None if found is None or not found.has_leader else self.member(found.leader)

    def unexpected_errors(self) -> dict[str, int]:
        return {
            name: node.broker.unexpected_errors for name, node in self.nodes.items() if node.broker.unexpected_errors
        }
