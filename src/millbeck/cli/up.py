"""``millbeck up``: a node with everything set up."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from typing import Final

import click

from millbeck.cli.ports import WILDCARDS, PortUnusable, check_port_is_free
from millbeck.cli.running import Advice, run_node
from millbeck.cli.settings import embedded_config
from millbeck.kernel.environment import Environment
from millbeck.server.embedded import embedded_settings
from millbeck.server.formatting import format_directories
from millbeck.server.node import Node

DEFAULT_DATA: Final = ".millbeck"
METRICS_PORT: Final = 9404
NODES_MAX: Final = 9
ADVICE: Final = Advice(
    port_in_use="choose another with --port, or --port 0 for a free one",
    address="choose another with --host",
    directory_in_use="stop the node that runs on it, or choose another directory with --data",
)


@click.command()
@click.option("--data", metavar="DIR", default=DEFAULT_DATA, show_default=True, help="Where the logs are kept.")
@click.option("--memory", is_flag=True, help="Keep everything in memory and forget it at the end.")
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Where to listen; empty (or 0.0.0.0) for every interface."
)
@click.option(
    "--port",
    default=9092,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 takes a free one and prints it.",
)
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), help=f"Port of /metrics (default {METRICS_PORT}, or a free one)."
)
@click.option(
    "--nodes",
    default=1,
    show_default=True,
    type=click.IntRange(1, NODES_MAX),
    help="How many nodes; several are a cluster, each in a process of its own.",
)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Any broker setting; can be repeated.")
@click.option("--check", is_flag=True, help="Produce and consume a few records, say how it went, and end.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens.")
@click.pass_context
def command(
    ctx: click.Context,
    data: str,
    memory: bool,
    host: str,
    port: int,
    metrics_port: int | None,
    nodes: int,
    settings: tuple[str, ...],
    check: bool,
    verbose: bool,
) -> None:
    """Run a node with everything set up: storage is formatted on first use, one screen says how to connect.

    Settings come from --set, which wins, and from KAFKA_… variables. Clients are told the address that they connect
    to, whatever --host is, unless advertised.listeners is set.

    \b
    Examples:
      millbeck up
      millbeck up --data /var/lib/millbeck --port 9092
      millbeck up --memory --port 0 --set num.partitions=4
      millbeck up --nodes 3
    """
    if nodes > 1:
        from millbeck.cli.up_cluster import run_cluster

        if check:
            raise click.UsageError("--check is for one node, leave out --nodes")
        root = _memory_directory() if memory else os.path.abspath(data)
        try:
            run_cluster(
                nodes,
                directory=root,
                is_memory=memory,
                host=host,
                port=port,
                metrics_port=METRICS_PORT if metrics_port is None else metrics_port,
                settings=settings,
                verbose=verbose,
            )
        finally:
            if memory:
                shutil.rmtree(root, ignore_errors=True)
        return
    if os.path.exists(os.path.join(data, "node-1", "meta.properties")) and not memory:
        raise click.UsageError(f"{data} holds the nodes of a cluster: say how many with --nodes, or use another --data")
    given = given_settings(ctx)
    if memory and given.count("log.dirs") > 1:
        raise click.UsageError("--memory and --data exclude each other")
    if not data:
        raise click.UsageError("--data is empty: name a directory, or use --memory")
    if metrics_port:
        try:
            check_port_is_free("127.0.0.1", metrics_port)
        except PortUnusable as error:
            raise click.ClickException(f"--metrics-port: {error}; choose another or 0") from error
    directory = _memory_directory() if memory else os.path.abspath(data)
    asked_metrics_port = metrics_port
    if metrics_port is None:
        metrics_port = 0 if port == 0 else METRICS_PORT
    try:
        defaults = embedded_settings(directory, host=host, port=port, metrics_port=metrics_port)
        config = embedded_config(defaults, settings, os.environ, given=given)
        if memory and config.directories != (directory,):
            raise click.UsageError(f"--memory and log.dirs={','.join(config.directories)} exclude each other")

        def prepare(environment: Environment) -> None:
            format_directories(environment, config, ignore_formatted=True)

        async def started(node: Node) -> bool:
            if asked_metrics_port and node.metrics_port != asked_metrics_port:
                raise click.ClickException(f"--metrics-port: {asked_metrics_port} is in use, choose another or 0")
            if check:
                from millbeck.cli.check import produce_and_consume

                await produce_and_consume(node)
                return False
            click.echo(screen(node, None if memory else ", ".join(config.directories)))
            return True

        run_node(config, prepare, started, advice=ADVICE, verbose=verbose)
    finally:
        if memory:
            shutil.rmtree(directory, ignore_errors=True)


def given_settings(ctx: click.Context) -> list[str]:
    """The settings that options on the command line stand for."""
    settings = {
        "data": "log.dirs",
        "memory": "log.dirs",
        "host": "listeners",
        "port": "listeners",
        "metrics_port": "metrics.http.port",
    }
    on_line = click.core.ParameterSource.COMMANDLINE
    return [setting for name, setting in settings.items() if ctx.get_parameter_source(name) is on_line]


def _memory_directory() -> str:
    """A directory that ends with the process, in memory where the system has such a place."""
    shared = "/dev/shm"
    return tempfile.mkdtemp(prefix="millbeck-", dir=shared if os.access(shared, os.W_OK) else None)


def screen(node: Node, directory: str | None) -> str:
    """All that one needs to begin, on one screen."""
    listener = node.listeners[0]
    is_open = listener.address.host in WILDCARDS
    host = "localhost" if is_open else listener.address.host
    open_to = (
        f"\n    listens      on every interface, to anybody: {socket.gethostname()}:{listener.port}" if is_open else ""
    )
    address = f"{f'[{host}]' if ':' in host else host}:{listener.port}"
    return f"""
  millbeck is up

    bootstrap    {address}{open_to}
    data         {directory or "in memory, gone when this ends"}
    metrics      http://127.0.0.1:{node.metrics_port}/metrics
    cluster      {node.cluster_id}

  Here
    export MILLBECK_BOOTSTRAP={address}
    echo hello | millbeck produce -t greetings
    millbeck consume -t greetings --from-beginning
  Python (confluent-kafka)
    p = Producer({{"bootstrap.servers": "{address}"}}); p.produce("greetings", b"hello"); p.flush()
  kcat
    echo hello | kcat -b {address} -t greetings -P
    kcat -b {address} -t greetings -C -e
  PySpark
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", "{address}").option("subscribe", "greetings")

  Ctrl-C ends it.
"""
