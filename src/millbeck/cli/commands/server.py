"""``millbeck server``: a node with a configuration of its own."""

from __future__ import annotations

import os
from typing import Final

import click

from millbeck.cli.ports import WILDCARDS
from millbeck.cli.retired import retired_option
from millbeck.cli.running import Advice, run_node
from millbeck.cli.settings import node_config
from millbeck.kernel.environment import Environment
from millbeck.server.formatting import check_formatted
from millbeck.server.node import Node

ADVICE: Final = Advice(
    port_in_use="stop what uses the port or change listeners",
    address="change the host in listeners",
    directory_in_use="stop the node that runs on it or change log.dirs",
)

ADDRESS_DIALLED: Final = (
    "(every interface; clients are told the address they connect to, other nodes this host's name: "
    "see advertised.listeners)"
)


@click.command()
@click.argument("file", required=False)
@click.option("-c", "--config", "path", metavar="FILE", help="A server.properties file; the same as FILE.")
@click.option("--set", "--override", "settings", multiple=True, metavar="KEY=VALUE", help="A setting over the file's.")
@click.option("-v", "--verbose", is_flag=True, help="Log what happens.")
@retired_option("--zookeeper", replacement="the node keeps its own metadata: set process.roles and node.id")
def command(file: str | None, path: str | None, settings: tuple[str, ...], verbose: bool) -> None:
    """Run a node with Kafka's server.properties keys. Stronger settings win: --set, then KAFKA_… variables, the file.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck server --config server.properties
      KAFKA_NUM_PARTITIONS=4 millbeck server --config server.properties
    """
    if (file is None) == (path is None):
        raise click.UsageError("name one server.properties file with --config")
    config = node_config(path or file or "", settings, os.environ)

    def prepare(environment: Environment) -> None:
        check_formatted(environment, config)

    async def started(node: Node) -> bool:
        for listener in node.listeners:
            host = f"[{listener.address.host}]" if ":" in listener.address.host else listener.address.host
            told = "" if listener.address.host not in WILDCARDS or listener.advertised else f" {ADDRESS_DIALLED}"
            click.echo(f"listening on {listener.address.name}://{host}:{listener.port}{told}")
        click.echo(f"metrics on http://{config.metrics.host or 'localhost'}:{node.metrics_port}/metrics")
        return True

    run_node(config, prepare, started, advice=ADVICE, verbose=verbose)
