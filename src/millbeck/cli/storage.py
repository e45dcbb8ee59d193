"""``millbeck storage``: directories made ready for a node, and looked at."""

from __future__ import annotations

import os

import click

from millbeck.cli.output import output_option, show_rows
from millbeck.cli.settings import node_config
from millbeck.cli.verbs import VerbGroup
from millbeck.host import real_environment
from millbeck.kernel.ids import parse_uuid, uuid_text
from millbeck.metadata.features import LATEST_METADATA_VERSION, metadata_version_of, release_of
from millbeck.server.formatting import AlreadyFormatted, format_directories
from millbeck.storage.properties import MetaPropertiesError, read_meta_properties


@click.group(cls=VerbGroup, flags={})
def command() -> None:
    """Make log directories ready for a node, or look at them."""


@command.command("format")
@click.option("-c", "--config", "path", required=True, metavar="FILE", help="The node's server.properties.")
@click.option("-t", "--cluster-id", default=None, help="The cluster's id; a new one when not given.")
@click.option("-g", "--ignore-formatted", is_flag=True, help="Leave directories that are ready as they are.")
@click.option("-r", "--release-version", default=None, help="The metadata version, such as 4.3-IV0.")
@click.option("-s", "--standalone", is_flag=True, help="A quorum of this node alone, which it is in any case.")
def format_storage(
    path: str, cluster_id: str | None, ignore_formatted: bool, release_version: str | None, standalone: bool
) -> None:
    """Write what a new directory needs before its first start.

    \b
    Examples:
      millbeck storage format --config server.properties --standalone
      millbeck storage format -t $(millbeck storage random-uuid) -c server.properties
    """
    config = node_config(path, (), os.environ)
    try:
        if cluster_id is not None:
            parse_uuid(cluster_id)
        level = LATEST_METADATA_VERSION if release_version is None else metadata_version_of(release_version)
        written = format_directories(
            real_environment(),
            config,
            cluster_id=cluster_id,
            metadata_version=level,
            ignore_formatted=ignore_formatted,
        )
    except (AlreadyFormatted, MetaPropertiesError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    for directory in config.directories:
        click.echo(f"formatted {directory} with metadata.version {release_of(level)}, cluster {written}")


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
