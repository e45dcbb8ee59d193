"""``millbeck elect-leaders``: trigger leader elections."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE, TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.topics.partition_files import read_partitions
from millbeck.cli.verbs import Command, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.ids import TopicPartition


@click.command(cls=Command)
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="preferred: the first replica. unclean: any live replica when no ISR member is alive (records may be lost).",
)
@click.option("-t", "--topic", type=TOPIC, help="The topic; needs --partition.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="The partition of --topic.")
@click.option("--all-topic-partitions", "everything", is_flag=True, help="All partitions of all topics.")
@click.option(
    "--path-to-json-file", "path", metavar="FILE", type=FILE, help='{"partitions": [{"topic": …, "partition": …}]}'
)
@target_options
@click.pass_context
def command(
    ctx: click.Context,
    election_type: str,
    topic: str | None,
    partition: int | None,
    everything: bool,
    path: str | None,
    target: Target,
) -> None:
    """Elect partition leaders (Kafka's kafka-leader-election).

    \b
    Examples:
      millbeck elect-leaders --all-topic-partitions
      millbeck elect-leaders --topic orders --partition 0
      millbeck elect-leaders --election-type unclean --topic orders --partition 0
    """
    if sum((topic is not None, everything, path is not None)) != 1:
        raise click.UsageError("choose one of --topic, --all-topic-partitions and --path-to-json-file", ctx)
    if (topic is None) != (partition is None):
        raise click.UsageError("--topic and --partition go together", ctx)

    async def work(admin: Admin) -> None:
        from millbeck.cli.commands.topic import raise_failures
        from millbeck.kernel.errors import ElectionNotNeeded
        from millbeck.kernel.ids import TopicPartition

        wanted = None
        if topic is not None and partition is not None:
            wanted = [TopicPartition(topic, partition)]
        elif path is not None:
            wanted = read_partitions(path)
        outcomes = await admin.elect_leaders(wanted, unclean=election_type.lower() == "unclean")
        needless = [each for each, error in outcomes.failed.items() if isinstance(error, ElectionNotNeeded)]
        if kafka_tool() is not None:
            kind = election_type.upper()
            _print_as_kafka(f"Successfully completed leader election ({kind}) for partitions", outcomes.succeeded)
            _print_as_kafka("Valid replica already elected for partitions", needless)
            raise_failures({each: error for each, error in outcomes.failed.items() if each not in needless})
            return
        for each in sorted(outcomes.succeeded):
            click.echo(f"{each.topic}-{each.partition}: elected")
        for each in sorted(needless):
            click.echo(f"{each.topic}-{each.partition}: election not needed")
            del outcomes.failed[each]
        raise_failures({f"{each.topic}-{each.partition}": error for each, error in outcomes.failed.items()})

    run_admin(target, work)


def _print_as_kafka(text: str, partitions: Iterable[TopicPartition]) -> None:
    if named := ", ".join(map(str, sorted(partitions))):
        click.echo(f"{text} {named}")
