"""``millbeck connect dlq``: the dead letters of sink connectors, and the way back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.connection_options import Target, check_reachable, check_topic, run, target_options
from millbeck.cli.connectors.worker import Worker, worker_command
from millbeck.cli.output import output_option, show_rows
from millbeck.cli.verbs import Command
from millbeck.pipeline.connect.dead_letters import (
    FIELDS,
    Redriven,
    letter_fields,
    matches,
    without_letter_headers,
)
from millbeck.pipeline.connect.errors import ConnectError

if TYPE_CHECKING:
    from collections.abc import Callable

    from millbeck.client.consumer import Consumer
    from millbeck.client.producer import Producer
    from millbeck.kernel.environment import Environment
    from millbeck.kernel.ids import TopicPartition
    from millbeck.records.record import Record

SETTING: Final = "errors.deadletterqueue.topic.name"
COLUMNS: Final = ("letter", "topic", "partition", "offset", "stage", "exception", "message", "redriven")
POLL_SECONDS: Final = 1.0
METADATA_SECONDS: Final = 10.0
BATCH: Final = 500
"""How many letters are sent back in one transaction."""


@click.group("dlq")
def dlq() -> None:
    """Show dead letters of sink connectors, and send them back."""


dlq.command_class = Command


def _wanted(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    wanted = dict(text.partition("=")[::2] for text in given)
    for text in given:
        field = text.partition("=")[0]
        if "=" not in text or field not in FIELDS:
            raise click.BadParameter(f"{text}: FIELD=TEXT is expected; fields are {', '.join(FIELDS)}")
    return wanted


def _letter_options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--where",
            multiple=True,
            metavar="FIELD=TEXT",
            callback=_wanted,
            help="Only letters with this text in a field, such as exception=DataException; can be repeated.",
        ),
        click.option(
            "--topic", "letter_topic", metavar="TOPIC", help="The dead-letter topic; asked of a worker if not given."
        ),
        click.argument("name"),
    ):
        function = option(function)
    return function


@dlq.command("list")
@output_option
@target_options
@worker_command
def list_(output: str, target: Target, worker: Worker) -> None:
    """List connectors with a dead-letter topic, and how many letters are there.

    \b
    Examples:
      millbeck connect dlq list
      millbeck connect dlq list -b 127.0.0.1:9092 -o json
    """
    found = worker.ask("GET", "connectors", query={"expand": "info"})
    topics = {
        name: topic.strip()
        for name, each in sorted(found.items())
        if (topic := each.get("info", {}).get("config", {}).get(SETTING, "")).strip()
    }

    async def main(environment: Environment) -> None:
        from millbeck.client.errors import PartitionUnavailable
        from millbeck.kernel.errors import UnknownTopicOrPartition

        rows: list[dict[str, Any]] = []
        async with _consumer(target, environment, "list") as consumer:
            await check_reachable(consumer.cluster, target)
            for name, topic in topics.items():
                try:
                    count: int | str = await _letter_count(consumer, topic)
                except (UnknownTopicOrPartition, PartitionUnavailable):
                    count = "no topic"
                rows.append({"connector": name, "topic": topic, "letters": count})
        show_rows(rows, output, columns=("connector", "topic", "letters"))

    if topics:
        run(main)
    else:
        show_rows([], output, columns=("connector", "topic", "letters"))


async def _letter_count(consumer: Consumer, topic: str) -> int:
    from millbeck.kernel.ids import TopicPartition

    described = await consumer.cluster.topic(topic, timeout_s=METADATA_SECONDS)
    places = [TopicPartition(topic, number) for number in described.partitions]
    begins, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
    return sum(ends[place] - begins[place] for place in places)


@dlq.command("show")
@_letter_options
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most this many letters.")
@output_option
@target_options
@worker_command
def show(
    name: str,
    letter_topic: str | None,
    where: dict[str, str],
    limit: int,
    output: str,
    target: Target,
    worker: Worker,
) -> None:
    """Show the dead letters of a connector, those that were sent back included.

    \b
    Examples:
      millbeck connect dlq show orders
      millbeck connect dlq show orders --where exception=DataException -o json
      millbeck connect dlq show orders --topic orders-dead -b 127.0.0.1:9092
    """
    topic = letter_topic or _topic_of(worker, name)

    async def main(environment: Environment) -> None:
        async with _consumer(target, environment, name) as consumer:
            await _check(consumer, target, topic)
            done = await _redriven(consumer, topic)
            rows: list[dict[str, Any]] = []
            async for place, record in _letters(consumer, dict.fromkeys(done, 0)):
                fields = letter_fields(record.headers)
                if matches(fields, where):
                    rows.append(_row(place, record, fields, done[place]))
                if len(rows) == limit:
                    break
        columns = (*COLUMNS, "stacktrace") if output != "table" else COLUMNS
        show_rows(rows, output, columns=columns)

    run(main)


def _row(place: TopicPartition, record: Record, fields: dict[str, str], done: Redriven) -> dict[str, Any]:
    is_done = "yes" if done.has(record.offset) else "no"
    return {"letter": f"{place.topic}-{place.partition}@{record.offset}", **fields, "redriven": is_done}


@dlq.command("redrive")
@_letter_options
@click.option("--to", "to_topic", metavar="TOPIC", help="Send them here instead of the topics they came from.")
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
@target_options
@worker_command
def redrive(
    name: str,
    letter_topic: str | None,
    where: dict[str, str],
    to_topic: str | None,
    dry_run: bool,
    target: Target,
    worker: Worker,
) -> None:
    """Send dead letters back to the topics that they came from, each exactly once.

    The records and the note which letters they were are one transaction: a command that is interrupted goes on where it
    stopped, and letters that were sent back are left out the next time. All readers of those topics get the records
    again; --to names a topic for one connector alone. Letters stay in their topic.

    \b
    Examples:
      millbeck connect dlq redrive orders --dry-run
      millbeck connect dlq redrive orders --where stage=VALUE_CONVERTER
      millbeck connect dlq redrive orders --to orders-retry
    """
    topic = letter_topic or _topic_of(worker, name)

    async def main(environment: Environment) -> None:
        from millbeck.client.producer import Producer

        identity = target.client_settings(transactional_id=_group(name))
        async with _consumer(target, environment, name) as consumer:
            await _check(consumer, target, topic)
            async with Producer(identity, environment=environment) as producer:
                if not dry_run:
                    # This ends what another run has begun, so that the notes are settled before they are read.
                    await producer.init_transactions()
                redriving = _Redriving(consumer, producer, name, to_topic, where)
                count = await redriving.run(topic, is_dry=dry_run)
        click.echo(f"{count} letters would be sent back" if dry_run else f"{count} letters are sent back")

    try:
        run(main)
    except ConnectError as error:
        raise click.ClickException(str(error)) from error


class _Redriving:
    def __init__(
        self, consumer: Consumer, producer: Producer, name: str, to_topic: str | None, where: dict[str, str]
    ) -> None:
        self._consumer = consumer
        self._producer = producer
        self._group = _group(name)
        self._to_topic = to_topic
        self._where = where
        self._seen: dict[TopicPartition, list[tuple[int, bool]]] = {}
        self._ends: dict[TopicPartition, int] = {}
        self._batch: list[tuple[str, int | None, Record]] = []
        self._count = 0

    async def run(self, topic: str, *, is_dry: bool) -> int:
        """How many letters were sent back."""
        done = await _redriven(self._consumer, topic)
        self._seen = {place: [] for place in done}
        async for place, record in _letters(self._consumer, {place: each.position for place, each in done.items()}):
            is_done = done[place].has(record.offset)
            fields = letter_fields(record.headers)
            is_chosen = not is_done and matches(fields, self._where)
            if is_chosen:
                self._batch.append((*self._goal(place, record, fields), record))
                self._count += 1
            self._seen[place].append((record.offset, is_done or is_chosen))
            self._ends[place] = record.offset + 1
            if len(self._batch) == BATCH:
                await self._send(is_dry=is_dry)
        if self._batch:
            await self._send(is_dry=is_dry)
        return self._count

    def _goal(self, place: TopicPartition, record: Record, fields: dict[str, str]) -> tuple[str, int | None]:
        """Topic and partition to send a letter to."""
        if self._to_topic is not None:
            return self._to_topic, None
        if not fields["topic"]:
            raise ConnectError(
                f"{place.topic}-{place.partition}@{record.offset} does not say where it came from (set"
                " errors.deadletterqueue.context.headers.enable=true on the connector): name a topic with --to"
            )
        return fields["topic"], int(fields["partition"]) if fields["partition"].isdecimal() else None

    async def _send(self, *, is_dry: bool) -> None:
        batch, self._batch = self._batch, []
        if is_dry:
            return
        from millbeck.client.committed_offset import CommittedOffset

        notes = {place: Redriven.of_letters(seen, self._ends[place]) for place, seen in self._seen.items() if seen}
        offsets = {place: CommittedOffset(note.position, -1, note.metadata()) for place, note in notes.items()}
        counts = {topic: await self._partition_count(topic) for topic in {topic for topic, _, _ in batch}}
        async with self._producer.transaction() as transaction:
            for topic, partition, record in batch:
                await self._producer.enqueue(
                    topic,
                    record.value,
                    record.key,
                    partition=partition if partition is not None and partition < counts[topic] else None,
                    timestamp=record.timestamp,
                    headers=without_letter_headers(record.headers),
                )
            await transaction.send_offsets(self._consumer, offsets)

    async def _partition_count(self, topic: str) -> int:
        await check_topic(self._producer.cluster, topic)
        return (await self._producer.cluster.topic(topic, timeout_s=METADATA_SECONDS)).partition_count


def _group(name: str) -> str:
    """The consumer group, and the transactional id, of what is redriven for a connector."""
    return f"connect-dlq-{name}"


def _consumer(target: Target, environment: Environment, name: str) -> Consumer:
    from millbeck.client.consumer import Consumer

    settings = target.client_settings(
        group_id=_group(name), enable_auto_commit="false", isolation_level="read_committed"
    )
    return Consumer(settings, environment=environment)


async def _check(consumer: Consumer, target: Target, topic: str) -> None:
    await check_reachable(consumer.cluster, target)
    await check_topic(consumer.cluster, topic)


def _topic_of(worker: Worker, name: str) -> str:
    settings = worker.ask("GET", "connectors", name, "config")
    topic = str(settings.get(SETTING) or "")
    if not topic:
        raise click.ClickException(f"{name} has no dead-letter topic ({SETTING}): name one with --topic")
    return topic


async def _redriven(consumer: Consumer, topic: str) -> dict[TopicPartition, Redriven]:
    """What was sent back, by partition of the dead-letter topic."""
    from millbeck.kernel.ids import TopicPartition

    described = await consumer.cluster.topic(topic, timeout_s=METADATA_SECONDS)
    places = [TopicPartition(topic, index) for index in sorted(described.partitions)]
    committed = await consumer.committed(places)
    return {
        place: Redriven() if note is None else Redriven.of_note(note.offset, note.metadata)
        for place, note in committed.items()
    }


async def _letters(
    consumer: Consumer, positions: dict[TopicPartition, int]
) -> AsyncIterator[tuple[TopicPartition, Record]]:
    """The letters that are there now, from these positions on, in order within each partition."""
    places = list(positions)
    starts = await consumer.beginning_offsets(places)
    ends = await consumer.end_offsets(places)
    consumer.assign(places)
    for place in places:
        consumer.seek(place, max(positions[place], starts[place]))
    while [place for place in places if await consumer.position(place) < ends[place]]:
        for place, records in (await consumer.poll(timeout_s=POLL_SECONDS)).items():
            for record in records:
                yield place, record
