"""Several nodes in processes of their own that are one cluster, for tests of code that talks to Kafka.

Each has both roles. They are started together, since none of them serves before most of them are there; after that any
of them may be stopped, killed, paused and started again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.embedded import Place, cluster_settings
from millbeck.server.local_cluster import format_cluster, settle_places
from millbeck.testing.broker_process import Broker, settings_texts, temporary_directory

HOST = "127.0.0.1"


class Cluster:
    """The running nodes, in the order of their ids, which begin at 1."""

    def __init__(self, settings: Mapping[str, str], *, nodes: int, directory: Path) -> None:
        self._directory = str(directory)
        self._places = settle_places(real_environment().files, self._directory, _places(nodes, directory), host=HOST)
        self.nodes = [
            Broker(
                {**cluster_settings(place, self._places, host=HOST), **settings}, Path(place.directory), port=place.port
            )
            for place in self._places
        ]

    @property
    def bootstrap(self) -> str:
        """What clients call ``bootstrap.servers``: all of them, running or not."""
        return ",".join(node.bootstrap for node in self.nodes)

    def node(self, node_id: int) -> Broker:
        return self.nodes[node_id - 1]

    def start(self) -> None:
        """Start what is not running, and return when all of it serves; raises `BrokerFailed`."""
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
        """End all of them in good order, at the same time: the last ones would have nobody to hand over to."""
        for node in self.nodes:
            node.ask_to_stop()
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
    """A fresh cluster for the length of a block; settings are as those of `millbeck.testing.broker`, for every node.

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


def _places(count: int, directory: Path) -> list[Place]:
    ports = iter(_free_ports(count * 2))
    return [
        Place(
            node_id=number,
            directory=str(directory / f"node-{number}"),
            port=next(ports),
            controller_port=next(ports),
            metrics_port=0,
        )
        for number in range(1, count + 1)
    ]


def _free_ports(count: int) -> list[int]:
    """Ports nobody has now. Somebody may take one before the node does, and then the node says so."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) for _ in range(count)]
        for each in sockets:
            each.bind((HOST, 0))
        return [each.getsockname()[1] for each in sockets]
