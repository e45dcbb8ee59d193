"""``millbeck topic delete-records``: delete the oldest records of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.completed_types import FILE, TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.topics.partition_files import read_offsets
from millbeck.cli.verbs import Command, kafka_tool
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin


@click.command(cls=Command)
@click.argument("places", metavar="[TOPIC:N:OFFSET]...", type=TOPIC, nargs=-1)
@click.option(
    "--offset-json-file",
    "path",
    metavar="FILE",
    type=FILE,
    help='{"partitions": [{"topic": …, "partition": …, "offset": …}]}; "-1" is the high watermark.',
)
@output_option
@target_options
@click.pass_context
def command(ctx: click.Context, places: tuple[str, ...], path: str | None, output: str, target: Target) -> None:
    """Permanently delete the records before an offset; -1 or "end" deletes all current records.

    Shows the new first offset (low watermark) of each partition.

    \b
    Examples:
      millbeck topic delete-records orders:0:4711
      millbeck topic delete-records orders:0:end orders:1:end
      millbeck topic delete-records --offset-json-file offsets.json
    """
    offsets = dict(map(parse_place, places)) | (read_offsets(path) if path is not None else {})
    if not offsets:
        raise click.UsageError("name partitions with offsets, such as orders:0:4711, or --offset-json-file", ctx)

    async def work(admin: Admin) -> None:
        from millbeck.cli.commands.topic import raise_failures

        if kafka_tool() is not None:
            click.echo("Executing records delete operation")
        outcomes = await admin.delete_records(offsets)
        if kafka_tool() is not None:
            click.echo("Records delete operation completed:")
            for place, low in outcomes.succeeded.items():
                click.echo(f"partition: {place}\tlow_watermark: {low}")
        else:
            rows = (
                {"topic": place.topic, "partition": place.partition, "low_watermark": low}
                for place, low in sorted(outcomes.succeeded.items())
            )
            show_rows(rows, output)
        raise_failures(outcomes.failed)

    run_admin(target, work)


def parse_place(text: str) -> tuple[TopicPartition, int]:
    """Parse ``orders:0:4711``; the offset may be ``end``. Raises `click.UsageError`."""
    topic, _, rest = text.partition(":")
    number, _, offset = rest.partition(":")
    offset = "-1" if offset == "end" else offset
    if not (topic and number.isascii() and number.isdigit() and offset.removeprefix("-").isdigit()):
        raise click.UsageError(f"{text!r} is not TOPIC:PARTITION:OFFSET, such as orders:0:4711")
    if int(offset) < -1:
        raise click.UsageError(f"{text!r}: an offset is at least 0, or -1 for the end")
    return TopicPartition(topic, int(number)), int(offset)
