"""``millbeck reassign``: move partitions between brokers, with a throttle, and show the progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import TABLE, TEXT, document, output_option, show_rows, stream_output_option
from millbeck.cli.sizes import ByteSizeType
from millbeck.cli.topics.directory_moves import move_logs, print_replica_directories
from millbeck.cli.topics.moves import copy_progress, move_rows, move_state, progress, proposal, wait_until_moved
from millbeck.cli.topics.partition_files import assignment_text, read_assignment, read_directories, read_topics
from millbeck.cli.topics.throttles import limit_directory_moves, remove_throttles, set_throttles
from millbeck.cli.verbs import SubcommandGroup, kafka_tool
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import TopicDescription

_file_option = click.option(
    "--reassignment-json-file",
    "path",
    required=True,
    metavar="FILE",
    type=FILE,
    help="A JSON file with the partitions and their new replicas.",
)


@click.group(
    cls=SubcommandGroup,
    flags={
        "--generate": "generate",
        "--execute": "execute",
        "--verify": "verify",
        "--list": "list",
        "--cancel": "cancel",
    },
)
def command() -> None:
    """Move partitions between brokers (Kafka's kafka-reassign-partitions)."""


@command.command("generate")
@click.option(
    "--topics-to-move-json-file", "path", required=True, metavar="FILE", type=FILE, help='{"topics": [{"topic": …}]}'
)
@click.option("--broker-list", required=True, metavar="ID,…", help="The brokers to place replicas on.")
@click.option("--disable-rack-aware", is_flag=True, help="Ignore racks when placing replicas.")
@target_options
def generate(path: str, broker_list: str, disable_rack_aware: bool, target: Target) -> None:
    """Propose new replicas for all partitions of some topics, spread over the given brokers.

    \b
    Examples:
      millbeck reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3
    """
    brokers = _brokers(broker_list)
    names = read_topics(path)

    async def work(admin: Admin) -> None:
        topics = await _described(admin, names)
        nodes = {node.node_id: node.rack for node in (await admin.describe_cluster()).nodes}
        unknown = [broker for broker in brokers if broker not in nodes]
        if unknown:
            raise click.ClickException(f"--broker-list: broker {unknown[0]} does not exist")
        racks = {broker: None if disable_rack_aware else nodes[broker] for broker in brokers}
        current = current_assignment(topics)
        proposed = proposal(current, racks)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.reassignments import assignment_line, directories_of

            click.echo("Current partition replica assignment")
            click.echo(assignment_line(current, await directories_of(admin, current)))
            click.echo("\nProposed partition reassignment configuration")
            click.echo(assignment_line(proposed))
            return
        click.echo("Current partition replica assignment")
        click.echo(assignment_text(current))
        click.echo("\nProposed partition reassignment configuration")
        click.echo(assignment_text(proposed))

    run_admin(target, work)


@command.command("execute")
@_file_option
@click.option(
    "--throttle", type=ByteSizeType(), metavar="BYTES", help="Replication throttle in bytes per second, such as 50MB."
)
@click.option(
    "--replica-alter-log-dirs-throttle",
    "directory_throttle",
    type=ByteSizeType(),
    metavar="BYTES",
    help="Throttle in bytes per second for moves between a broker's log directories.",
)
@click.option("--additional", is_flag=True, help="Allow changing reassignments in progress.")
@click.option(
    "--disallow-replication-factor-change",
    "keeps_factor",
    is_flag=True,
    help="Fail if the plan would change the number of replicas of a partition.",
)
@target_options
def execute(
    path: str,
    throttle: int | None,
    directory_throttle: int | None,
    additional: bool,
    keeps_factor: bool,
    target: Target,
) -> None:
    """Start moving partitions. The current replicas are printed first; execute that output to move the partitions back.

    The file holds the output of generate, or {"partitions": [{"topic": …, "partition": …, "replicas": [1, 2]}]}, where
    "log_dirs": ["/disk-a", "any"] chooses the log directory of each replica.

    \b
    Examples:
      millbeck reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3 | tail -n 1 > plan.json
      millbeck reassign execute --reassignment-json-file plan.json --throttle 50000000
    """
    wanted, places = read_assignment(path), read_directories(path)

    async def work(admin: Admin) -> None:
        moving = await admin.list_reassignments()
        if moving and not additional:
            raise click.ClickException(
                "reassignments are in progress: wait for them, or use --additional to change them"
            )
        names = list(dict.fromkeys(partition.topic for partition in wanted))
        current = current_assignment(await _described(admin, names))
        missing = [partition for partition in wanted if partition not in current]
        if missing:
            raise click.ClickException(f"partition {missing[0].topic}-{missing[0].partition} does not exist")
        resized = [each for each, replicas in wanted.items() if len(replicas) != len(current[each])]
        if keeps_factor and resized:
            raise click.ClickException(
                f"{resized[0]} has {len(current[resized[0]])} replicas and would have {len(wanted[resized[0]])}: "
                "--disallow-replication-factor-change forbids that"
            )
        before = {partition: current[partition] for partition in wanted}
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.reassignments import before_moving

            click.echo(await before_moving(admin, before, throttle))
        else:
            click.echo("Current partition replica assignment (save this to move back)")
            click.echo(assignment_text(before))
        if throttle is not None:
            await set_throttles(admin, current, wanted, throttle)
        if directory_throttle is not None:
            await limit_directory_moves(admin, sorted({broker for broker, _ in places}), directory_throttle)
        outcomes = await admin.alter_reassignments(wanted)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.reassignments import started_text

            _raise(outcomes.failed)
            click.echo(started_text(outcomes.succeeded))
        for partition in sorted(outcomes.succeeded) if kafka_tool() is None else ():
            click.echo(f"{partition.topic}-{partition.partition}: reassignment started")
        _raise(outcomes.failed)
        if places:
            await move_logs(admin, places)

    run_admin(target, work)


@command.command("verify")
@_file_option
@click.option("--preserve-throttles", is_flag=True, help="Keep the throttles when all moves are done.")
@click.option("--wait", is_flag=True, help="Wait until all moves are done, showing the progress.")
@stream_output_option
@target_options
def verify(path: str, preserve_throttles: bool, wait: bool, output: str, target: Target) -> None:
    """Show the state of each move; when all are done, remove the throttles.

    \b
    Examples:
      millbeck reassign verify --reassignment-json-file plan.json
      millbeck reassign verify --reassignment-json-file plan.json --wait
      millbeck reassign verify --reassignment-json-file plan.json --output json
    """
    wanted, places = read_assignment(path), read_directories(path)

    async def work(admin: Admin) -> None:
        if wait:
            await wait_until_moved(admin, list(wanted))
        moving = await admin.list_reassignments(list(wanted))
        copies = await copy_progress(admin, moving) if moving else {}
        names = list(dict.fromkeys(partition.topic for partition in wanted))
        current = current_assignment((await admin.describe_topics(names)).all())
        if kafka_tool() is not None:
            click.echo("Status of partition reassignment:")
        for partition, replicas in sorted(wanted.items()):
            if kafka_tool() is not None:
                from millbeck.cli.kafka_tools.reassignments import status_line

                click.echo(status_line(partition, replicas, current, moving))
                continue
            move = (partition, replicas, current, moving, copies.get(partition))
            if output == TEXT:
                click.echo(f"{partition.topic}-{partition.partition}: {progress(*move)}")
            else:
                click.echo(document(move_state(*move), output))
        are_placed = await print_replica_directories(admin, places, output) if places else True
        if not moving and are_placed and not preserve_throttles:
            await remove_throttles(admin, names)
            if kafka_tool() is None:
                click.echo("no partition is moving; the throttles were removed", err=output != TEXT)
            else:
                from millbeck.cli.kafka_tools.reassignments import throttles_cleared

                brokers = [node.node_id for node in (await admin.describe_cluster()).nodes]
                click.echo(throttles_cleared(brokers, names))

    run_admin(target, work)


@command.command("list")
@output_option
@target_options
def list_moves(output: str, target: Target) -> None:
    """List the reassignments in progress.

    \b
    Examples:
      millbeck reassign list
      millbeck reassign list --output json
    """

    async def work(admin: Admin) -> None:
        moving = await admin.list_reassignments()
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.reassignments import listed_text

            click.echo(listed_text(moving))
            return
        if output == TABLE and not moving:
            click.echo("no partition is moving")
        else:
            show_rows(move_rows(moving), output)

    run_admin(target, work)


@command.command("cancel")
@_file_option
@click.option("--preserve-throttles", is_flag=True, help="Keep the throttles.")
@target_options
def cancel(path: str, preserve_throttles: bool, target: Target) -> None:
    """Cancel reassignments in progress: partitions return to their previous replicas.

    \b
    Examples:
      millbeck reassign cancel --reassignment-json-file plan.json
    """
    wanted = read_assignment(path)

    async def work(admin: Admin) -> None:
        moving = await admin.list_reassignments(list(wanted))
        outcomes = await admin.alter_reassignments(dict.fromkeys(moving, None))
        for partition in sorted(outcomes.succeeded):
            click.echo(f"{partition.topic}-{partition.partition}: cancelled")
        if not moving:
            click.echo("no partition is moving")
        if not preserve_throttles:
            await remove_throttles(admin, list(dict.fromkeys(partition.topic for partition in wanted)))
        _raise(outcomes.failed)

    run_admin(target, work)


def current_assignment(topics: Mapping[str, TopicDescription]) -> dict[TopicPartition, tuple[int, ...]]:
    return {
        TopicPartition(name, partition.partition): tuple(partition.replicas)
        for name, topic in topics.items()
        for partition in topic.partitions
    }


async def _described(admin: Admin, names: Sequence[str]) -> dict[str, TopicDescription]:
    from millbeck.cli.commands.topic import raise_failures

    found = await admin.describe_topics(names)
    raise_failures(found.failed)
    return found.succeeded


def _brokers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts) or len(set(parts)) != len(parts):
        raise click.UsageError(f"--broker-list: {text!r} is not a list of different broker ids")
    return [int(part) for part in parts]


def _raise(failed: Mapping[TopicPartition, Exception]) -> None:
    from millbeck.cli.commands.topic import raise_failures

    raise_failures({f"{each.topic}-{each.partition}": error for each, error in failed.items()})
