"""``millbeck server``: a node with a configuration of its own."""

from __future__ import annotations

import os

import click

from millbeck.cli.running import run_node
from millbeck.cli.settings import node_config
from millbeck.kernel.environment import Environment
from millbeck.server.formatting import check_formatted
from millbeck.server.node import Node


@click.command()
@click.option("--config", "path", required=True, metavar="FILE", help="A server.properties file.")
@click.option("--set", "--override", "settings", multiple=True, metavar="KEY=VALUE", help="A setting over the file's.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens.")
def command(path: str, settings: tuple[str, ...], verbose: bool) -> None:
    """Run a node with Kafka's server.properties keys. Stronger settings win: --set, then KAFKA_… variables, the file.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck server --config server.properties
      KAFKA_NUM_PARTITIONS=4 millbeck server --config server.properties
    """
    config = node_config(path, settings, os.environ)

    def prepare(environment: Environment) -> None:
        check_formatted(environment, config)

    async def started(node: Node) -> bool:
        for listener in node.listeners:
            click.echo(f"listening on {listener.address.name}://{listener.address.host}:{listener.port}")
        click.echo(f"metrics on http://{config.metrics.host or 'localhost'}:{node.metrics_port}/metrics")
        return True

    run_node(config, prepare, started, verbose=verbose)
