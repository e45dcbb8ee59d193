"""``millbeck consume``: print records as text or JSON."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.commands.topic import settings_of
from millbeck.cli.completed_types import GROUP, TOPIC
from millbeck.cli.connection_options import Target, check_reachable, run, target_options, topic_guessed
from millbeck.cli.output import JSON, TEXT, check_reader, stream_output_option
from millbeck.cli.records.record_format import (
    FormatError,
    RecordPrinter,
    document_formatter,
    kcat_formatter,
    property_formatter,
)
from millbeck.cli.records.start_positions import Start, parse_start_offset
from millbeck.cli.suggestions import retired_option
from millbeck.cli.verbs import Command, one_of_both

if TYPE_CHECKING:
    from millbeck.client.consumer import Consumer
    from millbeck.kernel.environment import Environment
    from millbeck.kernel.ids import TopicPartition

LOOKUP_SECONDS_MAX: Final = 2.0
POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumeRequest:
    """The partitions to read, where to start and when to stop."""

    topics: tuple[str, ...]
    include: str | None
    partitions: tuple[int, ...]
    start: Start
    group: str | None
    count_max: int | None
    idle_ms_max: int | None
    stops_at_end: bool

    @property
    def is_member(self) -> bool:
        """Whether the group coordinator assigns the partitions (no --partition given)."""
        return self.group is not None and not self.partitions


@click.command(cls=Command)
@click.argument("names", metavar="TOPIC...", type=TOPIC, nargs=-1)
@click.option("-t", "--topic", type=TOPIC, multiple=True, metavar="TOPIC", help="The same as TOPIC.")
@click.option("--include", "--whitelist", metavar="REGEX", help="Consume every topic whose whole name matches.")
@click.option(
    "-p",
    "--partition",
    "partitions",
    type=click.IntRange(0),
    multiple=True,
    help="Consume only this partition; can be repeated.",
)
@click.option("--from-beginning", is_flag=True, help="Start at the earliest offset.")
@click.option(
    "--offset", metavar="WHERE", help="Start at earliest, latest, an offset, -N from the end, or s@TIMESTAMP in ms."
)
@click.option("-g", "-G", "--group", type=GROUP, metavar="ID", help="Join this consumer group and commit offsets.")
@click.option(
    "--share",
    is_flag=True,
    help="Read as a member of the share group --group: each record is accepted after it was printed.",
)
@click.option("-c", "-n", "--max-messages", type=click.IntRange(1), metavar="N", help="Stop after this many records.")
@click.option("-e", "--exit", "stops_at_end", is_flag=True, help="Stop at the end of all partitions.")
@click.option("--timeout-ms", type=click.IntRange(0), metavar="MS", help="Stop when no record arrives for this long.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Whether to read records of open and aborted transactions.",
)
@click.option(
    "-f",
    "--format",
    "form",
    metavar="FORMAT",
    help="The output in kcat's format: %k key, %s value, %t %p %o %T %h, \\n …",
)
@stream_output_option
@click.option("-J", "as_json", is_flag=True, help="The same as --output json.")
@click.option("-Z", "--null", "shows_null", is_flag=True, help="With --format: print NULL for null keys and values.")
@click.option(
    "--formatter-property",
    "--property",
    "formatter_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of Kafka's console consumer: print.key, print.timestamp, key.separator, …",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not print the record count.")
@click.option("-u", "--formatter", "--key-deserializer", "--value-deserializer", hidden=True, expose_value=False)
@retired_option("--broker-list", replacement="use --bootstrap-server")
@target_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    topic: tuple[str, ...],
    include: str | None,
    partitions: tuple[int, ...],
    from_beginning: bool,
    offset: str | None,
    group: str | None,
    share: bool,
    max_messages: int | None,
    stops_at_end: bool,
    timeout_ms: int | None,
    isolation_level: str | None,
    form: str | None,
    output: str,
    as_json: bool,
    shows_null: bool,
    formatter_properties: tuple[str, ...],
    quiet: bool,
    target: Target,
) -> None:
    """Print the records of topics, by default only new ones. Ctrl-C stops it.

    \b
    Examples:
      millbeck consume greetings --from-beginning --exit
      millbeck consume -t orders -f '%p:%o %k=%s\\n' --offset -10
      millbeck consume orders --group billing --output json --max-messages 100
      millbeck consume --topic orders --from-beginning --property print.key=true
      millbeck consume orders --group jobs --share
    """
    if share:
        _check_share(ctx, group, (include, offset, isolation_level), from_beginning or stops_at_end or bool(partitions))
    if from_beginning and offset is not None:
        raise click.UsageError("--from-beginning and --offset cannot be combined", ctx)
    try:
        start = Start(is_beginning=True) if from_beginning else parse_start_offset(offset) if offset else Start()
    except ValueError as error:
        raise click.UsageError(f"--offset: {error}", ctx) from error
    wanted = ConsumeRequest(
        topics=() if include is not None else one_of_both(ctx, names, topic, "topic"),
        include=_pattern(ctx, include),
        partitions=partitions,
        start=start,
        group=group,
        count_max=max_messages,
        idle_ms_max=timeout_ms,
        stops_at_end=stops_at_end,
    )
    if wanted.is_member and start not in (Start(), Start(is_beginning=True)):
        raise click.UsageError("a group starts at its committed offsets: change them with `millbeck group reset`", ctx)
    print_record = _record_printer(
        form, settings_of(formatter_properties, "--formatter-property"), output, as_json, shows_null
    )
    settings = target.client_settings(
        enable_auto_commit="true" if group is not None else "false",
        allow_auto_create_topics="false",
        auto_offset_reset="earliest" if start.is_beginning else "latest",
        isolation_level=isolation_level or "read_uncommitted",
        # With --exit, a fetch at the end of the partition only has to return the end offset, so it need not wait.
        fetch_max_wait_ms="50" if stops_at_end else "500",
        **({} if group is None else {"group_id": group}),
    )
    count = 0

    async def work(environment: Environment) -> None:
        nonlocal count
        if share:
            from millbeck.cli.groups.consumption import print_shared

            shared = target.client_settings(group_id=group or "", share_acknowledgement_mode="explicit")
            limits = {"count_max": max_messages, "idle_ms_max": timeout_ms}
            count = await print_shared(
                environment, shared, target, topics=wanted.topics, print_record=print_record, **limits
            )
            return
        async with _consumer(environment, settings, target, wanted) as consumer:
            async for shown, shown_count in _output_of(consumer, wanted, print_record):
                sys.stdout.buffer.write(shown)
                sys.stdout.buffer.flush()
                count += shown_count

    try:
        run(work)
    except KeyboardInterrupt:
        pass
    if not quiet and sys.stderr.isatty():
        click.echo(f"{count} records", err=True)


def _check_share(ctx: click.Context, group: str | None, texts: tuple[str | None, ...], has_place: bool) -> None:
    if group is None:
        raise click.UsageError("--share needs --group", ctx)
    if has_place or any(text is not None for text in texts):
        raise click.UsageError(
            "a share group's settings choose its start and isolation level: see `millbeck config`", ctx
        )


def _pattern(ctx: click.Context, text: str | None) -> str | None:
    import re

    try:
        re.compile(text or "")
    except re.error as error:
        raise click.UsageError(f"--include: {text!r} is not a regular expression: {error}", ctx) from error
    return text


def _record_printer(
    form: str | None, properties: dict[str, str], output: str, as_json: bool, shows_null: bool
) -> RecordPrinter:
    try:
        if form is not None:
            return kcat_formatter(form, null=b"NULL" if shows_null else b"")
        if output == TEXT and not as_json:
            return property_formatter(properties)
        return document_formatter(JSON if as_json else output)
    except FormatError as error:
        raise click.UsageError(str(error)) from error


@asynccontextmanager
async def _consumer(
    environment: Environment, settings: dict[str, str], target: Target, wanted: ConsumeRequest
) -> AsyncIterator[Consumer]:
    """A consumer with the requested assignment or subscription, at the requested start offsets."""
    from millbeck.cli.outage_messages import named, report_leaderless_partitions
    from millbeck.cli.records.start_positions import assign
    from millbeck.client.consumer import Consumer

    async with Consumer(settings, environment=environment) as consumer:
        await check_reachable(consumer.cluster, target)
        consumer.cluster.spawn(report_leaderless_partitions(consumer, "read"))
        if wanted.is_member:
            consumer.subscribe(wanted.topics, pattern=wanted.include)
        else:
            start = Start(is_stored=True) if wanted.group is not None and wanted.start == Start() else wanted.start
            await assign(consumer, await _partitions_of(consumer, wanted), start)
        yield consumer
        if missing := consumer.partitions_without_leader():
            click.echo(f"millbeck: ended while {named(missing)} had no leader; see millbeck doctor", err=True)


async def _partitions_of(consumer: Consumer, wanted: ConsumeRequest) -> list[TopicPartition]:
    import re

    from millbeck.client.retry import Deadline
    from millbeck.kernel.ids import TopicPartition

    names = list(wanted.topics)
    if wanted.include is not None:
        consumer.cluster.wants_all_topics = True
        await consumer.cluster.refresh(Deadline(LOOKUP_SECONDS_MAX))
        consumer.cluster.wants_all_topics = False
        pattern = re.compile(wanted.include)
        names = sorted(name for name in consumer.cluster.metadata.topics if pattern.fullmatch(name))
        if not names:
            raise click.ClickException(f"no topic matches {wanted.include}")
    found: list[TopicPartition] = []
    for name in names:
        async with topic_guessed(consumer.cluster, name):
            there = sorted((await consumer.topic(name, timeout_s=LOOKUP_SECONDS_MAX)).partitions)
        missing = [number for number in wanted.partitions if number not in there]
        if missing:
            raise click.ClickException(f"topic {name} has no partition {missing[0]}, only 0 to {there[-1]}")
        found += [TopicPartition(name, number) for number in wanted.partitions or there]
    return found


async def _output_of(
    consumer: Consumer, wanted: ConsumeRequest, print_record: RecordPrinter
) -> AsyncIterator[tuple[bytes, int]]:
    """The text to print and its number of records, one item per poll."""
    import asyncio

    loop = asyncio.get_running_loop()
    left = wanted.count_max
    last_s = loop.time()
    ends: dict[TopicPartition, int] | None = None if wanted.is_member else {}
    while left is None or left > 0:
        if wanted.stops_at_end and await _is_at_end(consumer, ends):
            return
        idle_s = None if wanted.idle_ms_max is None else last_s + wanted.idle_ms_max / 1000 - loop.time()
        if idle_s is not None and idle_s <= 0:
            return
        polled = await consumer.poll(
            timeout_s=POLL_SECONDS if idle_s is None else min(POLL_SECONDS, idle_s), max_records=left
        )
        if not polled:
            check_reader()
            continue
        last_s = loop.time()
        count = sum(map(len, polled.values()))
        if left is not None:
            left -= count
        yield (
            b"".join(print_record(partition, record) for partition, records in polled.items() for record in records),
            count,
        )


async def _is_at_end(consumer: Consumer, ends: dict[TopicPartition, int] | None) -> bool:
    """Whether all end offsets are reached: those taken at the start, or in a group (``ends`` None) the current ones.

    ``ends`` is filled here. Partitions without a leader come last, so that all records of the others are printed before
    the lookup fails.
    """
    leaderless = set(consumer.partitions_without_leader())
    if ends is None:
        behind = [partition for partition in consumer.assignment if consumer.lag(partition) != 0]
        if behind and all(partition in leaderless for partition in behind):
            await consumer.end_offsets(behind)
        return bool(consumer.assignment) and not behind
    while True:
        for partition, end in ends.items():
            if await consumer.position(partition) < end:
                return False
        unknown = [partition for partition in consumer.assignment if partition not in ends]
        if not unknown:
            return True
        ends |= await consumer.end_offsets([each for each in unknown if each not in leaderless] or unknown)
