"""``millbeck storage``: directories made ready for a node, and looked at."""

from __future__ import annotations

import os

import click

from millbeck.cli.output import output_option, show_rows
from millbeck.cli.settings import node_config
from millbeck.cli.verbs import VerbGroup
from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import parse_uuid, uuid_text
from millbeck.metadata.features import METADATA_VERSION, VOTERS_IN_LOG_FROM, release_of
from millbeck.server.config import NodeConfig
from millbeck.server.formatting import AlreadyFormatted, format_directories
from millbeck.server.initial_quorum import InitialQuorum, check_quorum_flags, parse_initial_controllers
from millbeck.storage.properties import MetaPropertiesError, read_meta_properties


@click.group(cls=VerbGroup, flags={})
def command() -> None:
    """Make log directories ready for a node, or look at them."""


@command.command("format")
@click.option("-c", "--config", "path", required=True, metavar="FILE", help="The node's server.properties.")
@click.option("-t", "--cluster-id", default=None, help="The cluster's id; a new one when not given.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories that are ready as they are.")
@click.option("-r", "--release-version", default=None, help="The metadata version, such as 4.3-IV0.")
@click.option("-s", "--standalone", is_flag=True, help="A quorum that begins with this node alone.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,…",
    help="The voters that a new quorum begins with, the same for each of them.",
)
@click.option("-N", "--no-initial-controllers", "joins", is_flag=True, help="Join a quorum that is there already.")
@click.option(
    "-f", "--feature", "features", multiple=True, metavar="NAME=LEVEL", help="A feature's level at the start."
)
@click.pass_context
def format_storage(
    ctx: click.Context,
    path: str,
    cluster_id: str | None,
    ignore_formatted: bool,
    release_version: str | None,
    standalone: bool,
    initial_controllers: str | None,
    joins: bool,
    features: tuple[str, ...],
) -> None:
    """Write what a new directory needs before its first start.

    Voters are named by controller.quorum.voters in the file (kraft.version 0), or they are kept in the metadata log
    (kraft.version 1), and then one of --standalone, --initial-controllers and --no-initial-controllers says how it
    begins. A file that says nothing of a quorum is that of a node alone, as with --standalone.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck storage format -t $(millbeck storage random-uuid) -c server.properties
      millbeck storage format -t … -c server.properties --initial-controllers 1@a:9093:…,2@b:9093:…,3@c:9093:…
    """
    from millbeck.cli.feature import levels_of

    config = node_config(path, (), os.environ)
    levels = levels_of(ctx, release_version, features) if release_version or features else {}
    level = levels.pop(METADATA_VERSION, config.supported_features[METADATA_VERSION].max_level)
    try:
        quorum = quorum_of(config, standalone=standalone, initial_controllers=initial_controllers, joins=joins)
        if quorum is not None and level < VOTERS_IN_LOG_FROM:
            raise InvalidConfig(
                f"voters are kept in the metadata log from {release_of(VOTERS_IN_LOG_FROM)} on: with an older release "
                "name them by controller.quorum.voters"
            )
        if cluster_id is not None:
            parse_uuid(cluster_id)
        written = format_directories(
            real_environment(),
            config,
            cluster_id=cluster_id,
            metadata_version=level,
            features=levels,
            quorum=quorum,
            ignore_formatted=ignore_formatted,
        )
    except (AlreadyFormatted, InvalidConfig, MetaPropertiesError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for directory in config.directories:
        click.echo(f"formatted {directory} with metadata.version {release_of(level)}, cluster {written}")


def quorum_of(
    config: NodeConfig, *, standalone: bool, initial_controllers: str | None, joins: bool
) -> InitialQuorum | None:
    """How the quorum begins; None when the node's file says who votes, or is of a node alone."""
    given = {
        "--standalone": standalone,
        "--initial-controllers": initial_controllers is not None,
        "--no-initial-controllers": joins,
    }
    controllers = parse_initial_controllers(initial_controllers) if initial_controllers is not None else ()
    check_quorum_flags(config, [flag for flag, is_given in given.items() if is_given], controllers)
    if standalone:
        return InitialQuorum(controllers=None)
    return InitialQuorum(controllers=controllers) if controllers or joins else None


@command.command("info")
@click.option("-c", "--config", "path", required=True, metavar="FILE", help="The node's server.properties.")
@output_option
def info(path: str, output: str) -> None:
    """Say whose the directories of a configuration are; exit code 1 when one is not formatted.

    \b
    Examples:
      millbeck storage info --config server.properties
      millbeck storage info --config server.properties --output json
    """
    config = node_config(path, (), os.environ)
    files = real_environment().files
    rows: list[dict[str, object]] = []
    for directory in dict.fromkeys([*config.directories, config.metadata_directory]):
        try:
            meta = read_meta_properties(files, directory)
        except (MetaPropertiesError, OSError) as error:
            raise click.ClickException(str(error)) from error
        row: dict[str, object] = {"directory": directory, "state": "not formatted"}
        if meta is not None:
            row |= {
                "state": "formatted",
                "cluster_id": meta.cluster_id,
                "node_id": meta.node_id,
                "directory_id": uuid_text(meta.directory_id),
            }
        rows.append(row)
    show_rows(rows, output, columns=("directory", "state", "cluster_id", "node_id", "directory_id"))
    if any(row["state"] == "not formatted" for row in rows):
        raise SystemExit(1)


@command.command("random-uuid")
def random_uuid() -> None:
    """Print a new uuid, for a cluster's id.

    \b
    Examples:
      millbeck storage random-uuid
    """
    click.echo(uuid_text(real_environment().randomness.uuid()))
