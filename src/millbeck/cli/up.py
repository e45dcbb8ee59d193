"""``millbeck up``: a node with everything set up."""

from __future__ import annotations

import os
import shutil
import tempfile

import click

from millbeck.cli.running import run_node
from millbeck.cli.settings import flag_settings
from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.formatting import format_directories
from millbeck.server.node import Node

DEFAULT_DATA = ".millbeck"
EMBEDDED = {
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
"""What one node alone needs other than Kafka's defaults."""


@click.command()
@click.option("--data", metavar="DIR", default=DEFAULT_DATA, show_default=True, help="Where the logs are kept.")
@click.option("--memory", is_flag=True, help="Keep everything in memory and forget it at the end.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen; empty for every interface.")
@click.option("--port", default=9092, show_default=True, help="The port; 0 takes a free one and prints it.")
@click.option("--metrics-port", default=None, type=int, help="Port of /metrics (default 9404, or a free one).")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any broker setting; can be repeated.")
@click.option("--check", is_flag=True, help="Produce and consume a few records, say how it went, and end.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens.")
def command(
    data: str,
    memory: bool,
    host: str,
    port: int,
    metrics_port: int | None,
    settings: tuple[str, ...],
    check: bool,
    verbose: bool,
) -> None:
    """Run one node with everything set up: storage is formatted on first use, one screen says how to connect.

    \b
    Examples:
      millbeck up
      millbeck up --data /var/lib/millbeck --port 9092
      millbeck up --memory --port 0 --set num.partitions=4
    """
    directory = _memory_directory() if memory else os.path.abspath(data)
    texts = {
        **EMBEDDED,
        "log.dirs": directory,
        "listeners": f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}",
        "metrics.http.port": str((0 if port == 0 else 9404) if metrics_port is None else metrics_port),
        **flag_settings(settings),
    }
    config = NodeConfig(texts)

    def prepare(environment: Environment) -> None:
        format_directories(environment, config, ignore_formatted=True)

    async def started(node: Node) -> bool:
        if check:
            from millbeck.cli.check import produce_and_consume

            await produce_and_consume(node)
            return False
        click.echo(_screen(node, None if memory else directory))
        return True

    try:
        run_node(config, prepare, started, verbose=verbose)
    finally:
        if memory:
            shutil.rmtree(directory, ignore_errors=True)


def _memory_directory() -> str:
    """A directory that ends with the process, in memory where the system has such a place."""
    shared = "/dev/shm"
    return tempfile.mkdtemp(prefix="millbeck-", dir=shared if os.access(shared, os.W_OK) else None)


def _screen(node: Node, directory: str | None) -> str:
    listener = node.listeners[0]
    address = f"{listener.address.host or 'localhost'}:{listener.port}"
    return f"""
  millbeck is up

    bootstrap    {address}
    data         {directory or "in memory, gone when this ends"}
    metrics      http://127.0.0.1:{node.metrics_port}/metrics
    cluster      {node.cluster_id}

  Python (confluent-kafka)
    Producer({{"bootstrap.servers": "{address}"}}).produce("greetings", b"hello")
  kcat
    echo hello | kcat -b {address} -t greetings -P
    kcat -b {address} -t greetings -C -e
  PySpark
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{address}").option("subscribe", "greetings")

  Ctrl-C ends it.
"""
