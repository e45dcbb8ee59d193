"""Several combined nodes of one system that are one cluster, as child processes on loopback."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bench import raw
from bench.systems.node import Node

REPLICAS = {
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
}


class BrokerCluster:
    """Nodes 1 to `count`, each a broker and a voter; `kind` says of which system."""

    def __init__(
        self, kind: type[Node], directory: Path, *, overrides: Mapping[str, str] | None = None, count: int = 3
    ) -> None:
        self.name = kind.name
        self.nodes = [
            kind(directory / f"node-{number}", node_id=number, overrides={**REPLICAS, **(overrides or {})})
            for number in range(1, count + 1)
        ]
        voters = ",".join(f"{node.node_id}@127.0.0.1:{node.controller_port}" for node in self.nodes)
        for node in self.nodes:
            node.overrides["controller.quorum.voters"] = voters

    @property
    def bootstrap(self) -> str:
        return ",".join(node.bootstrap for node in self.nodes)

    @property
    def running(self) -> list[Node]:
        return [node for node in self.nodes if node.process is not None]

    @property
    def pids(self) -> list[int]:
        return [node.pid for node in self.running]

    def node(self, node_id: int) -> Node:
        return self.nodes[node_id - 1]

    def cpu_seconds(self) -> float:
        return sum(node.usage().cpu_seconds for node in self.running)

    def start(self) -> None:
        """All at once: none of them serves before most of them are there."""
        for node in self.nodes:
            node.start(wait=False)
        for node in self.nodes:
            node.wait_until_serving()

    def change(self, overrides: Mapping[str, str]) -> None:
        """Start over with other settings, on the same data."""
        self.stop()
        for node in self.nodes:
            node.overrides.update(overrides)
        self.start()

    def stop(self) -> None:
        for node in self.running:
            assert node.process is not None
            node.process.terminate()
        for node in self.running:
            node.stop()

    def empty_disk(self, node: Node) -> None:
        """What a stopped node had is gone, its part of the metadata log included."""
        shutil.rmtree(node.data)

    def active_controller(self) -> int:
        with raw.RawConnection(self.running[0].bootstrap) as connection:
            return connection.active_controller()

    def states(self, topic: str, asked: Node | None = None) -> dict[int, raw.PartitionState]:
        with raw.RawConnection((asked or self.running[0]).bootstrap) as connection:
            return connection.partition_states(topic)

    def wait_until_in_sync(self, topic: str, partitions: int, *, timeout_s: float = 120.0) -> float:
        """The monotonic time at which every running node knows all replicas of all partitions to be in sync."""
        deadline_s = time.monotonic() + timeout_s
        for node in self.running:
            wait_for(
                lambda node=node: self._is_whole(topic, partitions, node),  # type: ignore[misc]
                deadline_s=deadline_s,
                what=f"{topic} is not in sync at {self.name} {node.node_id}",
            )
        return time.monotonic()

    def _is_whole(self, topic: str, partitions: int, node: Node) -> bool:
        try:
            states = self.states(topic, node)
        except (OSError, raw.RawError):
            return False
        return len(states) == partitions and all(
            state.leader >= 0 and len(state.isr) == len(state.replicas) for state in states.values()
        )

    def kill(self) -> None:
        for node in self.nodes:
            node.kill()

    def __enter__(self) -> BrokerCluster:
        if not self.running:
            try:
                self.start()
            except BaseException:
                self.kill()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def wait_for(is_true: Callable[[], bool], *, deadline_s: float, what: str, pause_s: float = 0.02) -> None:
    while not is_true():
        if time.monotonic() > deadline_s:
            raise TimeoutError(what)
        time.sleep(pause_s)
