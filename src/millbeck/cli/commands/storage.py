"""``millbeck storage``: format and inspect the log directories of a node."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.settings import node_config
from millbeck.cli.verbs import SubcommandGroup, kafka_tool
from millbeck.host import real_environment
from millbeck.kernel.environment import Files
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import parse_uuid, uuid_text
from millbeck.metadata.features import METADATA_VERSION, SCRAM_FROM, VOTERS_IN_LOG_FROM, release_name
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import AlreadyFormatted, all_directories, format_directories, owner_mismatch
from millbeck.server.local.initial_quorum import InitialQuorum, check_quorum_flags, parse_initial_controllers
from millbeck.storage.properties import MetaProperties, MetaPropertiesError, read_meta_properties

if TYPE_CHECKING:
    from millbeck.security.sasl.credential_text import CredentialText


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Format a node's log directories, or show their state."""


@command.command("format")
@click.option("-c", "--config", "path", required=True, metavar="FILE", type=FILE, help="The node's server.properties.")
@click.option("-t", "--cluster-id", default=None, help="The cluster id; default: a new one.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Skip directories that are already formatted.")
@click.option("-r", "--release-version", default=None, help="The metadata.version to start with, such as 4.3-IV0.")
@click.option("-s", "--standalone", is_flag=True, help="Start a new quorum with this node as its only voter.")
@click.option(
    "-I",
    "--initial-controllers",
    metavar="ID@HOST:PORT:DIRECTORY,…",
    help="The initial voters of a new quorum; the same value for each of them.",
)
@click.option("-N", "--no-initial-controllers", "joins", is_flag=True, help="Join an existing quorum.")
@click.option(
    "-f",
    "--feature",
    "features",
    multiple=True,
    metavar="NAME=LEVEL",
    help="The initial level of a feature; can be repeated.",
)
@click.option(
    "-S",
    "--add-scram",
    "users",
    multiple=True,
    metavar="MECHANISM=[name=USER,password=…]",
    help="A SCRAM user that exists from the first start: "
    "SCRAM-SHA-256=[name=alice,password=…,iterations=…,salt=…]; can be repeated. The "
    "same for every controller.",
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
    users: tuple[str, ...],
) -> None:
    """Format new log directories before a node's first start.

    The voters are either fixed by controller.quorum.voters in the file (kraft.version 0), or kept in the metadata log
    (kraft.version 1): then one of --standalone, --initial-controllers and --no-initial-controllers chooses the first
    voters. A file without quorum settings is formatted as with --standalone.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck storage format -c server.properties -s --add-scram 'SCRAM-SHA-512=[name=admin,password=…]'
      millbeck storage format -t $(millbeck storage random-uuid) -c server.properties
      millbeck storage format -t … -c server.properties --initial-controllers 1@a:9093:…,2@b:9093:…,3@c:9093:…
    """
    from millbeck.cli.commands.feature import levels_of

    config = node_config(path, (), os.environ)
    levels = levels_of(ctx, release_version, features) if release_version or features else {}
    level = levels.pop(METADATA_VERSION, config.supported_features[METADATA_VERSION].max_level)
    credentials = [_credential(each) for each in users]
    if credentials and level < SCRAM_FROM:
        raise click.ClickException(f"--add-scram: users need metadata.version {release_name(SCRAM_FROM)} or newer")
    try:
        quorum = quorum_of(config, standalone=standalone, initial_controllers=initial_controllers, joins=joins)
        if quorum is not None and level < VOTERS_IN_LOG_FROM:
            raise InvalidConfig(
                f"voters can be kept in the metadata log only from {release_name(VOTERS_IN_LOG_FROM)} on: for an "
                "older release set controller.quorum.voters in the file"
            )
        if cluster_id is not None:
            parse_uuid(cluster_id)
        environment = real_environment()
        ready = {each for each in all_directories(config) if _is_formatted(environment.files, each)}
        written = format_directories(
            environment,
            config,
            cluster_id=cluster_id,
            metadata_version=level,
            features=levels,
            quorum=quorum,
            ignore_formatted=ignore_formatted,
            users=credentials,
        )
    except (AlreadyFormatted, InvalidConfig, MetaPropertiesError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    if kafka_tool() is not None:
        _print_as_kafka(config, ready, level)
        return
    for directory in all_directories(config):
        if directory in ready:
            click.echo(f"skipped: {directory} is already formatted for cluster {written}")
        elif _is_formatted(environment.files, directory):
            click.echo(f"formatted {directory} with metadata.version {release_name(level)}, cluster {written}")


def _credential(text: str) -> CredentialText:
    from millbeck.security.sasl.credential_text import parse_credential

    try:
        credential = parse_credential(text)
        if not credential.name:
            raise ValueError("name is missing")
    except ValueError as error:
        raise click.UsageError(f"--add-scram: {error}") from error
    return credential


def _print_as_kafka(config: NodeConfig, ready: set[str], level: int) -> None:
    """Print what Kafka's tool prints: a line for each directory that was formatted."""
    written = [each for each in all_directories(config) if each not in ready]
    for directory in written:
        kind = "metadata" if directory == config.metadata_directory else "data"
        click.echo(f"Formatting {kind} directory {directory} with metadata.version {release_name(level)}.")
    if not written:
        click.echo("All of the log directories are already formatted.")


def _is_formatted(files: Files, directory: str) -> bool:
    """Whether a directory has a meta.properties; an unreadable directory is reported later, by `format_directories`."""
    try:
        return read_meta_properties(files, directory) is not None
    except OSError:
        return False


def quorum_of(
    config: NodeConfig, *, standalone: bool, initial_controllers: str | None, joins: bool
) -> InitialQuorum | None:
    """The initial voters; None if the file sets the voters or has no quorum settings (a single node)."""
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
@click.option("-c", "--config", "path", required=True, metavar="FILE", type=FILE, help="The node's server.properties.")
@output_option
def info(path: str, output: str) -> None:
    """Show the cluster and node of each log directory; exit code 1 if one is unformatted or belongs to another cluster.

    \b
    Examples:
      millbeck storage info --config server.properties
      millbeck storage info --config server.properties --output json
    """
    config = node_config(path, (), os.environ)
    files = real_environment().files
    rows: list[dict[str, object]] = []
    found: dict[str, MetaProperties] = {}
    for directory in all_directories(config):
        try:
            meta = read_meta_properties(files, directory)
        except (MetaPropertiesError, OSError) as error:
            raise click.ClickException(str(error)) from error
        row: dict[str, object] = {"directory": directory, "state": "not formatted"}
        if meta is not None:
            found[directory] = meta
            row |= {
                "state": "formatted",
                "cluster_id": meta.cluster_id,
                "node_id": meta.node_id,
                "directory_id": uuid_text(meta.directory_id),
            }
        rows.append(row)
    if kafka_tool() is None:
        show_rows(rows, output, columns=("directory", "state", "cluster_id", "node_id", "directory_id"))
    else:
        from millbeck.cli.kafka_tools.formats import storage_text

        click.echo(storage_text(rows))
    if (mismatch := owner_mismatch(found, node_id=config.node.node_id)) is not None:
        raise click.ClickException(mismatch)
    if len(found) < len(rows):
        raise SystemExit(1)


@command.command("random-uuid")
def random_uuid() -> None:
    """Print a new uuid, for use as a cluster id.

    \b
    Examples:
      millbeck storage random-uuid
    """
    click.echo(uuid_text(real_environment().randomness.uuid()))
