"""``millbeck share dead-letters``: show the dead letters of share groups, read from their dead-letter topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.connection_options import Target, check_reachable, run, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millbeck.client.admin import Admin
    from millbeck.client.consumer import Consumer
    from millbeck.kernel.environment import Environment
    from millbeck.kernel.ids import TopicPartition
    from millbeck.records.record import Record

PREFIX: Final = "__dlq.errors."
TOPIC_OPTION: Final = "errors.deadletterqueue.topic.name"
COLUMNS: Final = ("topic", "partition", "offset", "delivery_count", "message", "letter", "timestamp")
POLL_SECONDS: Final = 1.0


@click.command("dead-letters", cls=Command)
@click.argument("name")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="The maximum number of dead letters to show.",
)
@output_option
@target_options
def dead_letters(name: str, limit: int, output: str, target: Target) -> None:
    """Show the dead letters of a share group, oldest first: the record and the reason.

    \b
    Examples:
      millbeck share dead-letters jobs
      millbeck share dead-letters jobs --limit 10 --output json
    """

    async def main(environment: Environment) -> None:
        from millbeck.client.admin import Admin
        from millbeck.client.consumer import Consumer

        async with Admin(target.client_settings(), environment=environment) as admin:
            await check_reachable(admin.cluster, target)
            topic = (await topics_of(admin, [name]))[name]
            if not topic:
                raise click.ClickException(
                    f"share group {name} has no dead-letter topic: "
                    f"`millbeck config alter --group {name} --add-config {TOPIC_OPTION}=dlq.{name}` sets one"
                )
            described = (await admin.describe_topics([topic]))[topic]
        async with Consumer(target.client_settings(enable_auto_commit="false"), environment=environment) as consumer:
            partitions = [each.partition for each in described.partitions]
            show_rows(await _rows(consumer, topic, partitions, name, limit), output, columns=COLUMNS)

    run(main)


async def topics_of(admin: Admin, groups: Iterable[str]) -> dict[str, str]:
    """The dead-letter topic of each group; empty for a group without one, or where the broker has no such setting."""
    from millbeck.client.admin.results import ConfigResource, ResourceType

    resources: dict[ConfigResource, list[str] | None] = {
        ConfigResource(ResourceType.GROUP, group): [TOPIC_OPTION] for group in groups
    }
    found = (await admin.describe_configs(resources)).succeeded
    named = {}
    for resource in resources:
        entry = found.get(resource, {}).get(TOPIC_OPTION)
        named[resource.name] = "" if entry is None else entry.value or ""
    return named


async def _rows(consumer: Consumer, topic: str, partitions: list[int], group: str, limit: int) -> list[dict[str, Any]]:
    from millbeck.kernel.ids import TopicPartition

    places = [TopicPartition(topic, index) for index in partitions]
    consumer.assign(places)
    consumer.seek_to_beginning(*places)
    ends = await consumer.end_offsets(places)
    rows: list[dict[str, Any]] = []
    while len(rows) < limit and [place for place in places if await consumer.position(place) < ends[place]]:
        for place, records in (await consumer.poll(timeout_s=POLL_SECONDS)).items():
            rows += [row for record in records if (row := row_of(place, record, group)) is not None]
    return sorted(rows, key=lambda row: int(row["timestamp"]))[:limit]


def row_of(place: TopicPartition, record: Record, group: str) -> dict[str, Any] | None:
    """The fields of a dead letter; None for a record of another group, or one that is not a dead letter."""
    headers = {
        name.removeprefix(PREFIX): (value or b"").decode(errors="replace")
        for name, value in record.headers
        if name.startswith(PREFIX)
    }
    if headers.get("group") != group:
        return None
    return {
        "topic": headers.get("topic", ""),
        "partition": headers.get("partition", ""),
        "offset": headers.get("offset", ""),
        "delivery_count": headers.get("delivery.count", ""),
        "message": headers.get("message", ""),
        "letter": f"{place.topic}-{place.partition}@{record.offset}",
        "timestamp": record.timestamp,
    }
