"""``millbeck log-dirs``: where brokers keep their logs and how much lies there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from millbeck.cli.connecting import Target, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.topic import raise_failures

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import LogDirDescription


@click.command()
@click.option("--describe", is_flag=True, expose_value=False, help="What is done anyway; Kafka's tool wants it.")
@click.option("--broker-list", metavar="1,2", help="Ids of brokers; all when not given.")
@click.option("--topic-list", metavar="NAME,NAME", help="Only these topics.")
@click.option("--partitions", is_flag=True, help="A line per partition instead of one per directory.")
@output_option
@target_options
def command(broker_list: str | None, topic_list: str | None, partitions: bool, output: str, target: Target) -> None:
    """Show the log directories of brokers: size, room left, and what lies in them.

    \b
    Examples:
      millbeck log-dirs
      millbeck log-dirs --partitions --topic-list orders
      millbeck log-dirs --describe --broker-list 1 --output json
    """
    try:
        brokers = [int(text) for text in broker_list.split(",")] if broker_list else None
    except ValueError:
        raise click.UsageError(f"--broker-list: {broker_list!r} is not a list of broker ids") from None
    topics = set(topic_list.split(",")) if topic_list else None

    async def work(admin: Admin) -> None:
        outcomes = await admin.describe_log_dirs(brokers)
        raise_failures(outcomes.failed)
        found = outcomes.succeeded.items()
        if partitions:
            show_rows((row for broker, each in found for row in partition_rows(broker, each, topics)), output)
            return
        rows = [row for broker, each in found for row in directory_rows(broker, each, topics)]
        if output == TABLE:
            for row in rows:
                del row["replicas"]
        show_rows(rows, output)

    run_admin(target, work)


def directory_rows(
    broker: int, directories: tuple[LogDirDescription, ...], topics: set[str] | None
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for directory in directories:
        replicas = partition_rows(broker, (directory,), topics)
        rows.append(
            {
                "broker": broker,
                "directory": directory.path,
                "state": "ok" if directory.error is None else str(directory.error),
                "partitions": len(replicas),
                "size_bytes": sum(each.size_bytes for each in directory.replicas if _is_wanted(each.partition, topics)),
                "free_bytes": directory.usable_bytes,
                "total_bytes": directory.total_bytes,
                "replicas": replicas,
            }
        )
    return rows


def partition_rows(
    broker: int, directories: tuple[LogDirDescription, ...], topics: set[str] | None
) -> list[dict[str, object]]:
    return [
        {
            "broker": broker,
            "directory": directory.path,
            "topic": each.partition.topic,
            "partition": each.partition.partition,
            "size_bytes": each.size_bytes,
            "offset_lag": each.offset_lag,
            "future": each.is_future,
        }
        for directory in directories
        for each in sorted(directory.replicas, key=lambda replica: replica.partition)
        if _is_wanted(each.partition, topics)
    ]


def _is_wanted(partition: tuple[str, int], topics: set[str] | None) -> bool:
    return topics is None or partition[0] in topics
