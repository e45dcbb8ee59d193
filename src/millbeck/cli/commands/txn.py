"""``millbeck txn``: list, describe, abort and terminate transactions, and find hanging ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from millbeck.cli.completed_types import TOPIC
from millbeck.cli.connection_options import Target, run_admin, target_options
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import SubcommandGroup, kafka_tool, one_name

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import ProducerDescription
    from millbeck.client.admin.transactions import TransactionDescription, TransactionListing
    from millbeck.kernel.ids import TopicPartition

NO_OFFSET = -1
DEFAULT_TIMEOUT_MINUTES = 15
"""The default transaction.max.timeout.ms of brokers."""


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Manage transactions (Kafka's kafka-transactions)."""


@command.command("list")
@click.option(
    "--duration-filter",
    type=int,
    default=-1,
    help="Show only transactions that are open for more than this many milliseconds.",
)
@click.option(
    "--transactional-id-pattern",
    "pattern",
    help="Show only transactional ids that match this regular expression (RE2).",
)
@click.option("--state", "states", multiple=True, help="Show only transactions in this state, such as Ongoing.")
@click.option(
    "--producer-id", "producer_ids", type=int, multiple=True, help="Show only transactions of this producer id."
)
@output_option
@target_options
def list_command(
    duration_filter: int,
    pattern: str | None,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    output: str,
    target: Target,
) -> None:
    """List transactional ids.

    \b
    Examples:
      millbeck txn list
      millbeck txn list --state Ongoing --duration-filter 60000
    """

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.transactions import list_transactions

        found = await list_transactions(
            admin.cluster, states=states, producer_ids=producer_ids, duration_ms=duration_filter, pattern=pattern
        )
        _show(listing_rows(found), output, LISTING_COLUMNS, "TRANSACTIONS")

    run_admin(target, work)


def _show(rows: list[dict[str, object]], output: str, columns: tuple[str, ...], kafka_columns: str) -> None:
    """Print a table; when run as one of Kafka's tools, in that tool's format (a constant of `kafka_tools.formats`)."""
    if kafka_tool() is None:
        show_rows(rows, output, columns=columns)
        return
    from millbeck.cli.kafka_tools import formats

    formats.print_tabs(rows, getattr(formats, kafka_columns))


LISTING_COLUMNS = ("transactional_id", "coordinator", "producer_id", "state")


def listing_rows(found: list[TransactionListing]) -> list[dict[str, object]]:
    return [
        {
            "transactional_id": each.transactional_id,
            "coordinator": each.coordinator_id,
            "producer_id": each.producer_id,
            "state": each.state,
        }
        for each in found
    ]


@command.command("describe")
@click.argument("names", nargs=-1)
@click.option("--transactional-id", "named", multiple=True, help="The same as TRANSACTIONAL_ID.")
@output_option
@target_options
@click.pass_context
def describe(ctx: click.Context, names: tuple[str, ...], named: tuple[str, ...], output: str, target: Target) -> None:
    """Describe transactional ids: producer, state, and the partitions of the open transaction.

    \b
    Examples:
      millbeck txn describe payments-1
    """
    wanted = (*names, *named)
    if not wanted:
        raise click.UsageError("no transactional id given", ctx)

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.transactions import describe_transactions

        found = (await describe_transactions(admin.cluster, wanted)).all()
        now_ms = admin.cluster.environment.clock.wall_ms()
        _show([description_row(each, now_ms) for each in found.values()], output, DESCRIPTION_COLUMNS, "TRANSACTION")

    run_admin(target, work)


DESCRIPTION_COLUMNS = (
    "transactional_id",
    "coordinator",
    "producer_id",
    "producer_epoch",
    "state",
    "timeout_ms",
    "start_ms",
    "duration_ms",
    "partitions",
)


def description_row(each: TransactionDescription, now_ms: int) -> dict[str, object]:
    is_open = each.start_ms >= 0 and each.state in ("Ongoing", "PrepareCommit", "PrepareAbort")
    return {
        "transactional_id": each.transactional_id,
        "coordinator": each.coordinator_id,
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "state": each.state,
        "timeout_ms": each.timeout_ms,
        "start_ms": each.start_ms if each.start_ms >= 0 else None,
        "duration_ms": now_ms - each.start_ms if is_open else None,
        "partitions": [str(partition) for partition in each.partitions],
    }


@command.command("describe-producers")
@click.option("--topic", type=TOPIC, required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(min=0), help="Its partition.")
@output_option
@target_options
def describe_producers(topic: str, partition: int, output: str, target: Target) -> None:
    """Show the active producers of a partition and their open transactions.

    \b
    Examples:
      millbeck txn describe-producers --topic orders --partition 0
    """

    async def work(admin: Admin) -> None:
        from millbeck.kernel.ids import TopicPartition

        place = TopicPartition(topic, partition)
        producers = (await admin.describe_producers([place]))[place]
        _show([producer_row(each) for each in producers], output, PRODUCER_COLUMNS, "PRODUCERS")

    run_admin(target, work)


PRODUCER_COLUMNS = (
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "last_sequence",
    "last_timestamp",
    "transaction_start_offset",
)


def producer_row(each: ProducerDescription) -> dict[str, object]:
    return {
        "producer_id": each.producer_id,
        "producer_epoch": each.producer_epoch,
        "coordinator_epoch": each.coordinator_epoch,
        "last_sequence": each.last_sequence,
        "last_timestamp": each.last_timestamp,
        "transaction_start_offset": None if each.transaction_start_offset < 0 else each.transaction_start_offset,
    }


@command.command("abort")
@click.option("--topic", type=TOPIC, required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(min=0), help="Its partition.")
@click.option(
    "--start-offset",
    type=click.IntRange(min=0),
    help="The first offset of the transaction; the command looks up its producer.",
)
@click.option("--producer-id", type=int, help="The producer id, for brokers without DescribeProducers.")
@click.option("--producer-epoch", type=int, help="The producer epoch.")
@click.option("--coordinator-epoch", type=int, help="The epoch of the transaction coordinator.")
@target_options
@click.pass_context
def abort(
    ctx: click.Context,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
    target: Target,
) -> None:
    """Abort a hanging transaction on a partition, which its coordinator will not end.

    \b
    Examples:
      millbeck txn find-hanging --topic orders
      millbeck txn abort --topic orders --partition 0 --start-offset 4711
    """
    by_hand = (producer_id, producer_epoch, coordinator_epoch)
    if start_offset is None and None in by_hand:
        raise click.UsageError("give --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch", ctx)

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.transactions import abort_transaction
        from millbeck.kernel.ids import TopicPartition

        place = TopicPartition(topic, partition)
        who: tuple[Any, Any, Any] = by_hand
        if start_offset is not None:
            producers = (await admin.describe_producers([place]))[place]
            who = owner_of(producers, place, start_offset)
        await abort_transaction(
            admin.cluster, place, producer_id=who[0], producer_epoch=who[1], coordinator_epoch=who[2]
        )

    run_admin(target, work)


@command.command("terminate")
@click.argument("name", metavar="TRANSACTIONAL_ID", required=False)
@click.option("--transactional-id", "named", metavar="ID", help="The same as TRANSACTIONAL_ID.")
@target_options
@click.pass_context
def terminate(ctx: click.Context, name: str | None, named: str | None, target: Target) -> None:
    """Abort the open transaction of a transactional id and fence its producer (Kafka's forceTerminateTransaction).

    A transaction prepared for two-phase commit stays open until its owner commits or aborts it. This aborts it,
    regardless of what the external transaction manager decided.

    \b
    Examples:
      millbeck txn terminate payments
    """
    transactional_id = one_name(ctx, name, named, "transactional id")

    async def work(admin: Admin) -> None:
        from millbeck.client.admin.transactions import describe_transactions, force_terminate_transaction
        from millbeck.kernel.errors import TransactionalIdNotFound

        # The request that terminates would create a mistyped id.
        described = await describe_transactions(admin.cluster, [transactional_id])
        if isinstance(error := described.failed.get(transactional_id), TransactionalIdNotFound):
            raise error
        await force_terminate_transaction(admin.cluster, transactional_id)

    run_admin(target, work)


def owner_of(
    producers: tuple[ProducerDescription, ...], place: TopicPartition, start_offset: int
) -> tuple[int, int, int]:
    for each in producers:
        if each.transaction_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, each.coordinator_epoch
    raise click.ClickException(f"{place} has no open transaction that starts at offset {start_offset}")


@command.command("find-hanging")
@click.option("--broker-id", type=int, help="Search only partitions that this broker leads.")
@click.option(
    "--max-transaction-timeout",
    "minutes",
    type=click.IntRange(min=0),
    default=DEFAULT_TIMEOUT_MINUTES,
    show_default=True,
    help="Consider transactions open for longer than this many minutes.",
)
@click.option("--topic", type=TOPIC, help="Only this topic.")
@click.option("--partition", type=click.IntRange(min=0), help="Search only this partition of the topic.")
@output_option
@target_options
@click.pass_context
def find_hanging(
    ctx: click.Context,
    broker_id: int | None,
    minutes: int,
    topic: str | None,
    partition: int | None,
    output: str,
    target: Target,
) -> None:
    """Find transactions that are open on a partition but unknown to their coordinator, which will never end them.

    \b
    Examples:
      millbeck txn find-hanging --topic orders
      millbeck txn find-hanging --broker-id 1 --max-transaction-timeout 60
    """
    if topic is None and broker_id is None:
        raise click.UsageError("give --topic, or --broker-id for all partitions that a broker leads", ctx)

    async def work(admin: Admin) -> None:
        rows = await hanging_rows(admin, broker_id, minutes, topic, partition)
        _show(rows, output, HANGING_COLUMNS, "HANGING")

    run_admin(target, work)


HANGING_COLUMNS = (
    "topic",
    "partition",
    "producer_id",
    "producer_epoch",
    "coordinator_epoch",
    "start_offset",
    "last_timestamp",
    "idle_minutes",
)


async def hanging_rows(
    admin: Admin, broker_id: int | None, minutes: int, topic: str | None, partition: int | None
) -> list[dict[str, object]]:
    from millbeck.client.admin.transactions import describe_transactions, list_transactions
    from millbeck.kernel.ids import TopicPartition

    names = [topic] if topic is not None else list(await admin.list_topics())
    described = (await admin.describe_topics(names)).all()
    places = [
        TopicPartition(name, each.partition)
        for name, found in described.items()
        for each in found.partitions
        if partition in (None, each.partition) and broker_id in (None, each.leader_id)
    ]
    now_ms = admin.cluster.environment.clock.wall_ms()
    suspects = [
        (place, each)
        for place, producers in (await admin.describe_producers(places)).all().items()
        for each in producers
        if each.transaction_start_offset != NO_OFFSET and now_ms - each.last_timestamp > minutes * 60_000
    ]
    if not suspects:
        return []
    owners = await list_transactions(admin.cluster, producer_ids=sorted({each.producer_id for _, each in suspects}))
    known = (await describe_transactions(admin.cluster, [each.transactional_id for each in owners])).succeeded
    alive = {(each.producer_id, place) for each in known.values() for place in each.partitions}
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "coordinator_epoch": each.coordinator_epoch,
            "start_offset": each.transaction_start_offset,
            "last_timestamp": each.last_timestamp,
            "idle_minutes": (now_ms - each.last_timestamp) // 60_000,
        }
        for place, each in suspects
        if (each.producer_id, place) not in alive
    ]
