"""The systems under test: millbeck and Apache Kafka, each as one node in a child process on loopback."""

from __future__ import annotations

from pathlib import Path

from bench.systems.apache_kafka import ApacheKafka
from bench.systems.millbeck import Millbeck, millbeck_of
from bench.systems.node import Node, NodeFailed
from tools import peers

SYSTEMS: dict[str, type[Node]] = {"millbeck": Millbeck, "apache-kafka": ApacheKafka}

__all__ = ["SYSTEMS", "ApacheKafka", "Millbeck", "Node", "NodeFailed", "compared_systems", "start_node"]


def start_node(system: str, directory: Path, **options: object) -> Node:
    """Format, start and await a node of the named system below `directory`."""
    node = SYSTEMS[system](directory, **options)  # type: ignore[arg-type]
    node.start()
    return node


def compared_systems(only: str | None, against: Path | None) -> list[str]:
    """What a run measures, millbeck first: beside Apache Kafka if it can be had, or beside another checkout."""
    if only:
        return [only]
    if against is not None:
        other = millbeck_of(against)
        SYSTEMS[other.name] = other
        return ["millbeck", other.name]
    try:
        peers.install("kafka")
    except peers.PeerUnavailable as missing:
        print(f"Apache Kafka is not available, measuring millbeck alone: {missing}", flush=True)
        return ["millbeck"]
    return ["millbeck", "apache-kafka"]
