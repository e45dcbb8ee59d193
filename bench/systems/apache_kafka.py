"""Apache Kafka from its Maven artifacts: the broker in KRaft combined mode, and its tools.

The broker runs with its own defaults, the heap and the collector settings of its start script, and logs to the node's
log file.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from bench.systems.node import Node, NodeFailed
from tools import peers

CLUSTER_ID = "bWlsbGJlY2staW50ZXJvcA"
TOOL_TIMEOUT_S = 180
# The settings that Kafka's own start script passes.
PERFORMANCE_OPTIONS = [
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
]


def version() -> str:
    return str(peers.pins()["kafka"]["version"])


def java_command(main_class: str, *arguments: str, heap_mib: int = 512, log_level: str = "warn") -> list[str]:
    """A command line that runs a class of Apache Kafka. Raises PeerUnavailable when the jars are not there."""
    return [
        "java",
        f"-Xmx{heap_mib}m",
        f"-Xms{heap_mib}m",
        *PERFORMANCE_OPTIONS,
        f"-Dorg.slf4j.simpleLogger.defaultLogLevel={log_level}",
        "-cp",
        f"{peers.peer_path('kafka')}/*",
        main_class,
        *arguments,
    ]


def run_tool(main_class: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end; stdout and stderr are captured apart."""
    return subprocess.run(
        java_command(main_class, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TOOL_TIMEOUT_S,
    )


def dump_log(*arguments: str) -> subprocess.CompletedProcess[str]:
    """kafka-dump-log.sh."""
    return run_tool("org.apache.kafka.tools.DumpLogSegments", *arguments)


class ApacheKafka(Node):
    """Apache Kafka 4.3 as one combined node."""

    name = "apache-kafka"

    def command(self) -> list[str]:
        return java_command("kafka.Kafka", str(self.config_path), heap_mib=self.heap_mib, log_level="info")

    def format_storage(self) -> None:
        done = run_tool("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.config_path))
        if done.returncode != 0:
            raise NodeFailed(f"storage format failed:\n{done.stdout}{done.stderr}")


def adopt(directory: Path, *, node_id: int, **options: object) -> ApacheKafka:
    """A broker that will start on `directory/data`, which another system wrote and closed."""
    node = ApacheKafka(directory, node_id=node_id, **options)  # type: ignore[arg-type]
    if not (node.data / "meta.properties").exists():
        raise NodeFailed(f"{node.data} holds no meta.properties")
    return node
