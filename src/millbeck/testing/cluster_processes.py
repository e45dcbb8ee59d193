"""A cluster of nodes in child processes, for tests of code that uses Kafka.

Each node has both roles. They are started together, since none is ready before a majority runs; after that each can be
stopped, killed, paused and restarted.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.cluster import format_cluster, restore_layouts
from millbeck.server.local.embedded import NodePlacement, cluster_settings
from millbeck.testing.broker_process import Broker, settings_texts, temporary_directory

HOST = "127.0.0.1"


class Cluster:
    """The running nodes, in the order of their ids, which start at 1."""

    def __init__(self, settings: Mapping[str, str], *, nodes: int, directory: Path) -> None:
        self._directory = str(directory)
        self._places = restore_layouts(real_environment().files, self._directory, _places(nodes, directory), host=HOST)
        self.nodes = [
            Broker(
                {**cluster_settings(place, self._places, host=HOST), **settings}, Path(place.directory), port=place.port
            )
            for place in self._places
        ]

    @property
    def bootstrap(self) -> str:
        """The value for ``bootstrap.servers``: all nodes, running or not."""
        return ",".join(node.bootstrap for node in self.nodes)

    def node(self, node_id: int) -> Broker:
        return self.nodes[node_id - 1]

    def start(self) -> None:
        """Start all nodes that do not run, and wait until they are ready; raises `BrokerFailed`."""
        if self.nodes[0].cluster_id is None:
            self._format()
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.wait_until_ready()

    def _format(self) -> None:
        configs = [NodeConfig(node.settings) for node in self.nodes]
        cluster_id = format_cluster(real_environment(), self._directory, self._places, configs)
        for node in self.nodes:
            node.cluster_id = cluster_id

    def stop(self) -> None:
        """Shut all nodes down cleanly and in parallel, because the last ones would have no other node to which to move
        leaders."""
        for node in self.nodes:
            node.request_stop()
        for node in self.nodes:
            node.stop()


@contextmanager
def cluster(
    settings: Mapping[str, object] | None = None,
    /,
    *,
    nodes: int = 3,
    data: str | os.PathLike[str] | None = None,
    **keywords: object,
) -> Iterator[Cluster]:
    """A new cluster within a ``with`` block; settings as for `millbeck.testing.broker`, for every node.

    With ``data`` each node keeps its logs in a directory below that one, and they stay there.
    """
    texts = settings_texts(settings, keywords)
    with ExitStack() as stack:
        directory = stack.enter_context(temporary_directory()) if data is None else Path(data)
        running = Cluster(texts, nodes=nodes, directory=directory)
        try:
            running.start()
            yield running
            if data is not None:
                running.stop()
        finally:
            for node in running.nodes:
                node.kill()
                node.close()


def _places(count: int, directory: Path) -> list[NodePlacement]:
    ports = iter(_free_ports(count * 2))
    return [
        NodePlacement(
            node_id=number,
            directory=str(directory / f"node-{number}"),
            port=next(ports),
            controller_port=next(ports),
            metrics_port=0,
        )
        for number in range(1, count + 1)
    ]


def _free_ports(count: int) -> list[int]:
    """Ports that are free now. If another process takes one before the node does, the node reports that."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
