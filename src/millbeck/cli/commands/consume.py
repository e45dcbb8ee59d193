"""``millbeck consume``: records come out as text."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.connecting import Target, check_reachable, run, target_options
from millbeck.cli.record_format import FormatError, Shower, format_shower, json_shower, property_shower
from millbeck.cli.retired import retired_option
from millbeck.cli.start_positions import Start, parse_start
from millbeck.cli.topic import settings_of
from millbeck.cli.verbs import one_of_both

if TYPE_CHECKING:
    from millbeck.client.consumer import Consumer
    from millbeck.kernel.environment import Environment
    from millbeck.kernel.ids import TopicPartition

LOOKUP_SECONDS_MAX: Final = 2.0
POLL_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read and when to stop."""

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
        """Whether the group, not this command, says which partitions are read."""
        return self.group is not None and not self.partitions


@click.command()
@click.argument("names", metavar="TOPIC...", nargs=-1)
@click.option("-t", "--topic", multiple=True, metavar="TOPIC", help="The same as TOPIC.")
@click.option("--include", "--whitelist", metavar="REGEX", help="Every topic whose whole name matches.")
@click.option(
    "-p", "--partition", "partitions", type=click.IntRange(0), multiple=True, help="Only this; can be repeated."
)
@click.option("--from-beginning", is_flag=True, help="Begin with the first record there is.")
@click.option(
    "--offset", metavar="WHERE", help="Begin at earliest, latest, an offset, -N before the end, or s@TIMESTAMP in ms."
)
@click.option("-g", "-G", "--group", metavar="ID", help="Read as a member of this group, and commit.")
@click.option("--share", is_flag=True, help="The group is a share group: each record is accepted when it was printed.")
@click.option("-c", "-n", "--max-messages", type=click.IntRange(1), metavar="N", help="Stop after so many records.")
@click.option("-e", "--exit", "stops_at_end", is_flag=True, help="Stop when the end of all partitions is reached.")
@click.option("--timeout-ms", type=click.IntRange(0), metavar="MS", help="Stop when nothing has come for so long.")
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    help="Whether records of open and aborted transactions are read.",
)
@click.option("-f", "--format", "form", metavar="FORMAT", help="kcat's: %k key, %s value, %t %p %o %T %h, \\n …")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="JSON: an object to a line.")
@click.option("-J", "as_json", is_flag=True, help="The same as --output json.")
@click.option("-Z", "--null", "shows_null", is_flag=True, help="With --format: print NULL for what is null.")
@click.option(
    "--formatter-property",
    "--property",
    "formatter_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="print.key, print.timestamp, key.separator, …, as Kafka's console consumer has them.",
)
@click.option("-q", "--quiet", is_flag=True, help="Do not say how many records there were.")
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
    """Print the records of topics, from now on unless told otherwise. Ctrl-C ends it.

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
        raise click.UsageError("--from-beginning and --offset exclude each other", ctx)
    try:
        start = Start(is_beginning=True) if from_beginning else parse_start(offset) if offset else Start()
    except ValueError as error:
        raise click.UsageError(f"--offset: {error}", ctx) from error
    wanted = Wanted(
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
        raise click.UsageError("a group goes on where it is: move it with `millbeck group reset`", ctx)
    shower = _shower(form, settings_of(formatter_properties, "--formatter-property"), output, as_json, shows_null)
    settings = target.client_settings(
        enable_auto_commit="true" if group is not None else "false",
        allow_auto_create_topics="false",
        auto_offset_reset="earliest" if start.is_beginning else "latest",
        isolation_level=isolation_level or "read_uncommitted",
        # At the end there is nothing to wait for but to learn that it is the end.
        fetch_max_wait_ms="50" if stops_at_end else "500",
        **({} if group is None else {"group_id": group}),
    )
    count = 0

    async def work(environment: Environment) -> None:
        nonlocal count
        if share:
            from millbeck.cli.consume_share import print_shared

            shared = target.client_settings(group_id=group or "", share_acknowledgement_mode="explicit")
            limits = {"count_max": max_messages, "idle_ms_max": timeout_ms}
            count = await print_shared(environment, shared, target, topics=wanted.topics, shower=shower, **limits)
            return
        async with _consumer(environment, settings, target, wanted) as consumer:
            async for shown, shown_count in _output_of(consumer, wanted, shower):
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
        raise click.UsageError("a share group's settings say where and how it reads: see `millbeck config`", ctx)


def _pattern(ctx: click.Context, text: str | None) -> str | None:
    import re

    try:
        re.compile(text or "")
    except re.error as error:
        raise click.UsageError(f"--include: {text!r} is not a regular expression: {error}", ctx) from error
    return text


def _shower(form: str | None, properties: dict[str, str], output: str, as_json: bool, shows_null: bool) -> Shower:
    try:
        if form is not None:
            return format_shower(form, null=b"NULL" if shows_null else b"")
        return json_shower if as_json or output == "json" else property_shower(properties)
    except FormatError as error:
        raise click.UsageError(str(error)) from error


@asynccontextmanager
async def _consumer(
    environment: Environment, settings: dict[str, str], target: Target, wanted: Wanted
) -> AsyncIterator[Consumer]:
    """A consumer that reads what is wanted, from where it is wanted."""
    from millbeck.cli.start_positions import assign
    from millbeck.client.consumer import Consumer

    async with Consumer(environment, settings) as consumer:
        await check_reachable(consumer.cluster, target)
        if wanted.is_member:
            consumer.subscribe(wanted.topics, pattern=wanted.include)
        else:
            start = Start(is_stored=True) if wanted.group is not None and wanted.start == Start() else wanted.start
            await assign(consumer, await _partitions_of(consumer, wanted), start)
        yield consumer


async def _partitions_of(consumer: Consumer, wanted: Wanted) -> list[TopicPartition]:
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
        there = sorted((await consumer.topic(name, timeout_s=LOOKUP_SECONDS_MAX)).partitions)
        missing = [number for number in wanted.partitions if number not in there]
        if missing:
            raise click.ClickException(f"topic {name} has no partition {missing[0]}")
        found += [TopicPartition(name, number) for number in wanted.partitions or there]
    return found


async def _output_of(consumer: Consumer, wanted: Wanted, shower: Shower) -> AsyncIterator[tuple[bytes, int]]:
    """What to print and how many records it is, poll by poll."""
    import asyncio

    loop = asyncio.get_running_loop()
    left = wanted.count_max
    last_s = loop.time()
    ends = None
    if wanted.stops_at_end and not wanted.is_member:
        ends = await consumer.end_offsets(consumer.assignment)
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
            continue
        last_s = loop.time()
        count = sum(map(len, polled.values()))
        if left is not None:
            left -= count
        yield b"".join(shower(partition, record) for partition, records in polled.items() for record in records), count


async def _is_at_end(consumer: Consumer, ends: dict[TopicPartition, int] | None) -> bool:
    """Whether everything was read that was there when the command began, or, in a group, that there is."""
    if ends is None:
        assignment = consumer.assignment
        return bool(assignment) and all(consumer.lag(partition) == 0 for partition in assignment)
    for partition, end in ends.items():
        if await consumer.position(partition) < end:
            return False
    return True
