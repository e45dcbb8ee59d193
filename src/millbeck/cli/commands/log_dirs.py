"""``millbeck log-dirs``: show the brokers' log directories and their sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from millbeck.cli.commands.topic import raise_failures
from millbeck.cli.completed_types import TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import TABLE, output_option, show_rows
from millbeck.cli.verbs import Command, kafka_tool

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import LogDirDescription


@click.command(cls=Command)
@click.option(
    "--describe", is_flag=True, expose_value=False, help="Has no effect; accepted because Kafka's tool requires it."
)
@click.option("--broker-list", metavar="1,2", help="Show only these brokers (ids); default: all.")
@click.option("--topic-list", metavar="NAME,NAME", type=TOPIC, help="Only these topics.")
@click.option("--partitions", is_flag=True, help="Show one line per partition instead of one per directory.")
@output_option
@target_options
def command(broker_list: str | None, topic_list: str | None, partitions: bool, output: str, target: Target) -> None:
    """Show the log directories of brokers: size, free space and number of replicas.

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
        there = [node.node_id for node in (await admin.describe_cluster()).nodes]
        missing = [broker for broker in brokers or () if broker not in there]
        if missing:
            raise click.ClickException(
                f"broker {missing[0]} does not exist; the brokers are {', '.join(map(str, there))}"
            )
        described = await describe(admin, there if brokers is None else brokers)
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import log_dirs_text

            click.echo(log_dirs_text(described, topics))
            return
        found = described.items()
        if partitions:
            show_rows((row for broker, each in found for row in partition_rows(broker, each, topics)), output)
            return
        rows = [row for broker, each in found for row in directory_rows(broker, each, topics)]
        if output == TABLE:
            for row in rows:
                del row["replicas"]
        show_rows(rows, output)
        if output == TABLE:
            for line in (line for broker, each in found for line in offline_lines(broker, each, topics)):
                click.echo(line)

    run_admin(target, work)


async def describe(admin: Admin, brokers: Sequence[int]) -> dict[int, tuple[LogDirDescription, ...]]:
    """The log directories of brokers, which are asked all at once; shows how many have answered."""
    import asyncio

    from millbeck.cli.progress import progress

    found: dict[int, tuple[LogDirDescription, ...]] = {}
    failed: dict[int, Exception] = {}

    async def ask(broker: int) -> None:
        outcomes = await admin.describe_log_dirs([broker])
        found.update(outcomes.succeeded)
        failed.update(outcomes.failed)

    async with progress(lambda _: f"{len(found) + len(failed)} of {len(brokers)} brokers have answered"):
        await asyncio.gather(*map(ask, brokers))
    raise_failures(failed)
    return {broker: found[broker] for broker in brokers}


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
                "state": state_of(directory, topics),
                "partitions": len(replicas),
                "size_bytes": sum(each.size_bytes for each in directory.replicas if _is_wanted(each.partition, topics)),
                "free_bytes": directory.usable_bytes,
                "total_bytes": directory.total_bytes,
                "replicas": replicas,
            }
        )
    return rows


def state_of(directory: LogDirDescription, topics: set[str] | None) -> str:
    if directory.error is not None:
        return directory.offline_reason or str(directory.error)
    replicas = [each for each in directory.replicas if _is_wanted(each.partition, topics)]
    count = sum(each.offline_reason is not None for each in replicas)
    if count:
        return f"{count} of {len(replicas)} replicas offline"
    from millbeck.storage.room import is_full

    return "full" if is_full(directory.usable_bytes) else "ok"


def offline_lines(broker: int, directories: tuple[LogDirDescription, ...], topics: set[str] | None) -> Iterator[str]:
    """One line per offline replica: the damaged file and position."""
    for directory in directories:
        for each in sorted(directory.replicas, key=lambda replica: replica.partition):
            if each.offline_reason is not None and _is_wanted(each.partition, topics):
                yield f"{each.partition} is offline on broker {broker}: {each.offline_reason}"


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
            "state": f"offline: {each.offline_reason}" if each.offline_reason else "ok",
        }
        for directory in directories
        for each in sorted(directory.replicas, key=lambda replica: replica.partition)
        if _is_wanted(each.partition, topics)
    ]


def _is_wanted(partition: tuple[str, int], topics: set[str] | None) -> bool:
    return topics is None or partition[0] in topics
