"""``millbeck elect-leaders``: have the controller choose leaders anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.partition_files import read_partitions

if TYPE_CHECKING:
    from millbeck.client.admin import Admin


@click.command()
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="The first replica, or any that lives where no replica in sync does (records may be lost).",
)
@click.option("-t", "--topic", help="The topic; needs --partition.")
@click.option("-p", "--partition", type=click.IntRange(min=0), help="The partition of --topic.")
@click.option("--all-topic-partitions", "everything", is_flag=True, help="All partitions of all topics.")
@click.option("--path-to-json-file", "path", metavar="FILE", help='{"partitions": [{"topic": …, "partition": …}]}')
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
    """Elect leaders: what Kafka's kafka-leader-election does.

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
        from millbeck.cli.topic import raise_failures
        from millbeck.kernel.errors import ElectionNotNeeded
        from millbeck.kernel.ids import TopicPartition

        wanted = None
        if topic is not None and partition is not None:
            wanted = [TopicPartition(topic, partition)]
        elif path is not None:
            wanted = read_partitions(path)
        outcomes = await admin.elect_leaders(wanted, unclean=election_type.lower() == "unclean")
        for each in sorted(outcomes.succeeded):
            click.echo(f"{each.topic}-{each.partition}: elected")
        needless = [each for each, error in outcomes.failed.items() if isinstance(error, ElectionNotNeeded)]
        for each in sorted(needless):
            click.echo(f"{each.topic}-{each.partition}: has the leader it should have")
            del outcomes.failed[each]
        raise_failures({f"{each.topic}-{each.partition}": error for each, error in outcomes.failed.items()})

    run_admin(target, work)
