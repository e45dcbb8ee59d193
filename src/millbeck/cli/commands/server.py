"""``millbeck server``: run a node from a server.properties file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.completed_types import BROKER_SETTING, FILE
from millbeck.cli.nodes.ports import WILDCARDS
from millbeck.cli.settings import node_config
from millbeck.cli.suggestions import retired_option
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.kernel.environment import Environment
    from millbeck.server.config import NodeConfig
    from millbeck.server.node import Node

ADDRESS_DIALLED: Final = (
    "(every interface; clients are told the address they connect to, other nodes this host's name: "
    "set advertised.listeners to change that)"
)


@click.command(cls=Command)
@click.argument("file", required=False, type=FILE)
@click.option("-c", "--config", "path", metavar="FILE", type=FILE, help="The server.properties file; the same as FILE.")
@click.option(
    "--set",
    "--override",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    type=BROKER_SETTING,
    help="Override a setting of the file; can be repeated.",
)
@click.option("--hardened", is_flag=True, help="Use the stricter security profile, the same as millbeck.hardened=true.")
@click.option("-v", "--verbose", is_flag=True, help="Log to standard error.")
@retired_option("--zookeeper", replacement="metadata is kept by KRaft controllers: set process.roles and node.id")
def command(file: str | None, path: str | None, settings: tuple[str, ...], hardened: bool, verbose: bool) -> None:
    """Run a node with Kafka's server.properties keys. Precedence: --set, then KAFKA_… variables, then the file.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck server --config server.properties
      KAFKA_NUM_PARTITIONS=4 millbeck server --config server.properties
    """
    if (file is None) == (path is None):
        raise click.UsageError("name one server.properties file with --config")
    profile = ("millbeck.hardened=true",) if hardened else ()
    config = node_config(path or file or "", (*settings, *profile), os.environ)
    for name, value, default in config.hardened_changes:
        click.echo(f"hardened: {name}={value} (Kafka's default: {default})")
    _refuse_unformatted(config)
    # The server is imported only now, so that a mistake in the file or on the command line is reported at once.
    from millbeck.cli.nodes.node_runner import ErrorHints, run_node
    from millbeck.server.local.formatting import check_formatted

    advice = ErrorHints(
        port_in_use="stop what uses the port or change listeners",
        address="change the host in listeners",
        directory_in_use="stop the node that runs on it or change log.dirs",
    )

    def prepare(environment: Environment) -> None:
        check_formatted(environment, config)

    async def started(node: Node) -> bool:
        for listener in node.listeners:
            host = f"[{listener.address.host}]" if ":" in listener.address.host else listener.address.host
            told = "" if listener.address.host not in WILDCARDS or listener.advertised else f" {ADDRESS_DIALLED}"
            click.echo(f"listening on {listener.address.name}://{host}:{listener.port}{told}")
        click.echo(f"metrics on http://{config.metrics.host or 'localhost'}:{node.metrics_port}/metrics")
        return True

    run_node(config, prepare, started, advice=advice, verbose=verbose)


def _refuse_unformatted(config: NodeConfig) -> None:
    """Raise `click.ClickException` for directories that are not formatted."""
    from millbeck.host import real_environment
    from millbeck.kernel.errors import InvalidConfig
    from millbeck.server.local.formatting import NotFormatted, check_formatted
    from millbeck.storage.properties import MetaPropertiesError

    try:
        check_formatted(real_environment(), config)
    except NotFormatted as error:
        raise click.ClickException(str(error)) from error
    except (OSError, InvalidConfig, MetaPropertiesError):
        pass  # The node checks again when it starts, and reports these.
