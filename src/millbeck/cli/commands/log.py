"""``millbeck log``: repair logs in the directory of a stopped node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.verbs import SubcommandGroup

if TYPE_CHECKING:
    from millbeck.kernel.environment import Files
    from millbeck.kernel.ids import TopicPartition
    from millbeck.storage.repair import Damage

METADATA_TOPIC: Final = "__cluster_metadata"


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Repair the logs of a node that is stopped."""


@command.command("repair")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@click.option("-y", "--yes", is_flag=True, help="Truncate without asking.")
def repair(path: str, yes: bool) -> None:
    """Truncate a damaged log before its first corrupt batch, so that the node can serve the records before it.

    PATH is a partition's directory, or a log directory with all its partitions. The whole log is read; a log without
    damage is not changed. The records to be removed are printed first, and are kept in files beside the log whose names
    end in .cut. The node must be stopped. This is not needed if another replica has the records: the node then
    truncates the log and copies them by itself, see docs/operations.md.

    \b
    Examples:
      millbeck log repair /var/lib/millbeck/data/orders-0
      millbeck log repair /var/lib/millbeck/data/orders-0 --yes
      millbeck log repair /var/lib/millbeck/data
    """
    from millbeck.host import real_environment
    from millbeck.kernel.errors import ApiError
    from millbeck.storage.checkpoints import CheckpointError
    from millbeck.storage.repair import RepairFailed, cut, find_damage

    environment = real_environment()
    files = environment.files
    log_directory, partitions = partitions_in(files, os.path.abspath(path))
    with _locked(files, log_directory):
        for partition in partitions:
            try:
                damage = find_damage(files, log_directory, partition)
                if damage is None:
                    click.echo(f"{partition}: not damaged")
                    continue
                for line in lines_of(partition, damage):
                    click.echo(line)
                if not yes and not click.confirm(f"Truncate {partition} at offset {damage.first_offset}?"):
                    click.echo(f"{partition}: left unchanged")
                    continue
                end = cut(files, log_directory, partition, damage, now_ms=environment.clock.wall_ms())
            except (ApiError, CheckpointError, OSError, RepairFailed) as error:
                raise click.ClickException(f"{partition}: {error}") from error
            click.echo(f"{partition}: truncated, it ends at offset {end}; removed part in {', '.join(damage.kept_in)}")


def partitions_in(files: Files, path: str) -> tuple[str, list[TopicPartition]]:
    """The log directory of a path, and the partitions to repair in it."""
    from millbeck.storage import partition_directory
    from millbeck.storage.partition_directory import DirectoryKind

    def partition_of(name: str) -> TopicPartition | None:
        parsed = partition_directory.parse_name(name)
        return parsed.topic_partition if parsed is not None and parsed.kind is DirectoryKind.LOG else None

    if files.exists(f"{path}/meta.properties"):
        found = [partition_of(name) for name in files.names(path) if files.is_directory(f"{path}/{name}")]
        return path, [each for each in found if each is not None and each.topic != METADATA_TOPIC]
    parent, _, name = path.rpartition("/")
    partition = partition_of(name)
    if partition is None or not files.exists(f"{parent}/meta.properties"):
        raise click.ClickException(f"{path} is neither a log directory nor a partition's directory in one")
    if partition.topic == METADATA_TOPIC:
        raise click.ClickException(
            f"{partition} is the metadata log, which is not truncated, since a controller must not lose records it has "
            "acknowledged: replace the controller by a new voter, or restore a copy"
        )
    return parent, [partition]


@contextmanager
def _locked(files: Files, log_directory: str) -> Iterator[None]:
    """Hold the directory's lock as a running node does: fails while a node runs, and keeps a node from starting."""
    from millbeck.storage.directory import LOCK_FILE_NAME

    try:
        lock = files.lock(f"{log_directory}/{LOCK_FILE_NAME}")
    except BlockingIOError:
        raise click.ClickException(f"{log_directory} is in use by a running node: stop it first") from None
    except OSError as error:
        raise click.ClickException(f"{log_directory} cannot be locked: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def lines_of(partition: TopicPartition, damage: Damage) -> Iterator[str]:
    """Describe the damage, what is removed and what remains."""
    count = f"{damage.record_count}" if damage.is_exact else f"at least {damage.record_count}"
    last = damage.end_offset - 1
    yield f"{partition}: {damage.path} is damaged at position {damage.position}: {damage.reason}"
    yield f"  removed: offsets {damage.first_offset} to {last}, {count} records, {damage.size_bytes} bytes"
    yield f"         {os.path.basename(damage.path)} from position {damage.position} on"
    for path in damage.later:
        yield f"         {os.path.basename(path)}"
    if damage.first_offset > damage.start_offset:
        yield f"  stays: offsets {damage.start_offset} to {damage.first_offset - 1}"
    else:
        yield "  stays: nothing"
    yield f"  kept:  {', '.join(map(os.path.basename, damage.kept_in))}"
