"""The systems under test: millbeck and Apache Kafka, each as one node in a child process on loopback."""

from __future__ import annotations

from pathlib import Path

from bench.systems.apache_kafka import ApacheKafka
from bench.systems.millbeck import Millbeck
from bench.systems.node import Node, NodeFailed

SYSTEMS: dict[str, type[Node]] = {"millbeck": Millbeck, "apache-kafka": ApacheKafka}

__all__ = ["SYSTEMS", "ApacheKafka", "Millbeck", "Node", "NodeFailed", "start_node"]


def start_node(system: str, directory: Path, **options: object) -> Node:
    """Format, start and await a node of the named system below `directory`."""
    node = SYSTEMS[system](directory, **options)  # type: ignore[arg-type]
    node.start()
    return node
