"""``millbeck perf``: measure throughput and latency like Kafka's perf tools."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING, Final

import click

from millbeck.cli.commands.topic import settings_of
from millbeck.cli.completed_types import TOPIC
from millbeck.cli.connection_options import (
    Target,
    check_reachable,
    check_topic,
    error_text,
    run,
    target_options,
    topic_guessed,
)
from millbeck.cli.output import TABLE, hides_headers, output_option, show, show_rows
from millbeck.cli.perf_measurements import MEGABYTE, Latencies, Throughput, produce_line
from millbeck.cli.progress import progress, progress_text
from millbeck.cli.verbs import SubcommandGroup, kafka_tool, one_name

if TYPE_CHECKING:
    from millbeck.client.producer import Producer
    from millbeck.client.producer.batch import RecordFuture
    from millbeck.kernel.environment import Environment

LOOKUP_SECONDS_MAX: Final = 2.0
THROTTLE_SECONDS: Final = 0.001
IDLE_MS_MAX: Final = 10_000


@click.group(cls=SubcommandGroup, flags={})
def command() -> None:
    """Measure produce and consume throughput."""


@command.command("produce")
@click.argument("name", metavar="TOPIC", type=TOPIC, required=False)
@click.option("-t", "--topic", "topic_option", type=TOPIC, metavar="TOPIC", help="The same as TOPIC.")
@click.option(
    "-n", "--num-records", required=True, type=click.IntRange(1), metavar="N", help="Number of records to send."
)
@click.option(
    "-s", "--record-size", default=100, show_default=True, type=click.IntRange(0), help="Size of each record in bytes."
)
@click.option("--throughput", default=-1.0, help="Records per second; -1: no limit.")
@click.option("--payload-file", type=click.File("rb"), help="Send the lines of this file, repeatedly.")
@click.option("--payload-monotonic", is_flag=True, help="Send the numbers 0, 1, 2, ... as the records' values.")
@click.option("--producer-props", multiple=True, metavar="KEY=VALUE", help="A producer setting; can be repeated.")
@output_option
@target_options
@click.pass_context
def produce(
    ctx: click.Context,
    name: str | None,
    topic_option: str | None,
    num_records: int,
    record_size: int,
    throughput: float,
    payload_file: IO[bytes] | None,
    payload_monotonic: bool,
    producer_props: tuple[str, ...],
    output: str,
    target: Target,
) -> None:
    """Send records and print throughput and latency. With --throughput, latency counts from when a record was due.

    \b
    Examples:
      millbeck perf produce load --num-records 1000000 --record-size 100
      millbeck perf produce load -n 60000 -s 1024 --throughput 1000 -X acks=all -X linger.ms=0
    """
    topic = one_name(ctx, name, topic_option, "topic")
    settings = {**target.client_settings(), **settings_of(producer_props, "--producer-props")}
    payloads = [b"x" * record_size]
    if payload_file is not None:
        payloads = [line.rstrip(b"\n") for line in payload_file] or payloads

    load: ProduceLoad | None = None

    async def work(environment: Environment) -> None:
        nonlocal load
        from millbeck.client.producer import Producer

        async with Producer(settings, environment=environment) as producer:
            await check_reachable(producer.cluster, target)
            await check_topic(producer.cluster, topic)
            numbers = None if payload_monotonic else payloads
            load = sending = ProduceLoad(producer, topic, numbers, rate=throughput)
            async with progress(
                lambda seconds: progress_text(sending.latencies.count, num_records, seconds, "records")
            ):
                await sending.send(num_records)
        if sending.failed:
            assert sending.first_error is not None
            raise click.ClickException(f"{sending.failed} records failed: {error_text(sending.first_error)}")
        _show_produced(sending, output)

    try:
        run(work)
    except KeyboardInterrupt:
        if load is not None:
            _show_produced(load, output)
        raise


def _show_produced(load: ProduceLoad, output: str) -> None:
    result = load.throughput
    if output == TABLE:
        click.echo(produce_line(result, load.latencies))
        return
    show(
        {
            "records": result.record_count,
            "records_per_s": round(result.records_per_s, 1),
            "mb_per_s": round(result.megabytes_per_s, 2),
            "latency_avg_ms": round(load.latencies.mean_ms, 2),
            "latency_max_ms": round(load.latencies.max_ms, 2),
            **{
                f"latency_p{share * 100:g}_ms": round(load.latencies.quantile_ms(share), 1)
                for share in (0.5, 0.95, 0.99, 0.999)
            },
        },
        output,
    )


class ProduceLoad:
    """Sends records at a fixed rate or without limit, and measures the latency of each acknowledgement."""

    def __init__(self, producer: Producer, topic: str, payloads: list[bytes] | None, *, rate: float) -> None:
        """``payloads`` are sent in turn; None stands for the numbers 0, 1, 2, ... as text."""
        import asyncio

        self.latencies = Latencies()
        self.failed = 0
        self.first_error: Exception | None = None
        self._producer = producer
        self._topic = topic
        self._payloads = payloads
        self._rate = rate
        self._loop = asyncio.get_running_loop()
        self._began_s = self._last_s = self._loop.time()
        self._size_bytes = 0

    @property
    def throughput(self) -> Throughput:
        """Throughput of the acknowledged records, up to the last acknowledgement."""
        return Throughput(
            record_count=self.latencies.count, size_bytes=self._size_bytes, elapsed_s=self._last_s - self._began_s
        )

    async def send(self, count: int) -> None:
        import asyncio

        self._began_s = self._last_s = self._loop.time()
        for number in range(count):
            due_s = self._loop.time() if self._rate <= 0 else self._began_s + number / self._rate
            while self._rate > 0 and (ahead_s := due_s - self._loop.time()) > 0:
                await asyncio.sleep(max(ahead_s, THROTTLE_SECONDS))
            payloads = self._payloads
            payload = b"%d" % number if payloads is None else payloads[number % len(payloads)]
            self._track(await self._producer.enqueue(self._topic, payload), due_s, len(payload))
        await self._producer.flush()

    def _track(self, future: RecordFuture, due_s: float, size_bytes: int) -> None:
        def done(ended: RecordFuture) -> None:
            error = ended.exception()
            if isinstance(error, Exception):
                self.failed += 1
                self.first_error = self.first_error or error
            else:
                self._last_s = self._loop.time()
                self._size_bytes += size_bytes
                self.latencies.add((self._last_s - due_s) * 1000)

        future.add_done_callback(done)


@command.command("consume")
@click.argument("name", metavar="TOPIC", type=TOPIC, required=False)
@click.option("-t", "--topic", "topic_option", type=TOPIC, metavar="TOPIC", help="The same as TOPIC.")
@click.option(
    "-n",
    "--num-records",
    "--messages",
    type=click.IntRange(1),
    metavar="N",
    help="Number of records to consume; default: all up to the current end.",
)
@click.option(
    "--timeout",
    "timeout_ms",
    type=click.IntRange(0),
    default=IDLE_MS_MAX,
    is_flag=False,
    # Kafka's tool also takes the flag without a value.
    flag_value=IDLE_MS_MAX,
    show_default=True,
    metavar="MS",
    help="Stop when no record arrives for this long.",
)
@click.option("--from-latest", is_flag=True, help="Start at the latest offset instead of the earliest.")
@output_option
@target_options
@click.pass_context
def consume(
    ctx: click.Context,
    name: str | None,
    topic_option: str | None,
    num_records: int | None,
    timeout_ms: int,
    from_latest: bool,
    output: str,
    target: Target,
) -> None:
    """Consume records and print the throughput.

    \b
    Examples:
      millbeck perf consume load
      millbeck perf consume load --messages 1000000 --output json
    """
    topic = one_name(ctx, name, topic_option, "topic")
    settings = target.client_settings(enable_auto_commit="false", allow_auto_create_topics="false")
    count = size_bytes = 0
    elapsed_s: float | None = None

    async def work(environment: Environment) -> None:
        nonlocal count, size_bytes, elapsed_s
        import asyncio

        from millbeck.cli.records.start_positions import Start, assign
        from millbeck.client.consumer import Consumer
        from millbeck.kernel.ids import TopicPartition

        loop = asyncio.get_running_loop()
        async with Consumer(settings, environment=environment) as consumer:
            await check_reachable(consumer.cluster, target)
            async with topic_guessed(consumer.cluster, topic):
                view = await consumer.topic(topic, timeout_s=LOOKUP_SECONDS_MAX)
            partitions = [TopicPartition(topic, number) for number in sorted(view.partitions)]
            left = num_records
            if left is None:
                first, end = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
                left = sum(end[each] - first[each] for each in partitions)
            began_s = last_s = loop.time()
            elapsed_s = 0.0
            await assign(consumer, partitions, Start(is_beginning=not from_latest))
            async with progress(lambda seconds: progress_text(count, left, seconds, "records")):
                while count < left and loop.time() < last_s + timeout_ms / 1000:
                    for records in (await consumer.poll(timeout_s=0.5, max_records=left - count)).values():
                        count += len(records)
                        size_bytes += sum(len(each.value or b"") + len(each.key or b"") for each in records)
                        last_s = loop.time()
                        elapsed_s = last_s - began_s

    def show_consumed() -> None:
        if elapsed_s is None:
            return
        if kafka_tool() is not None:
            from millbeck.cli.kafka_tools.formats import consumer_perf_lines

            lines = consumer_perf_lines(count, size_bytes, elapsed_s, time.time())
            click.echo("\n".join(lines[1:] if hides_headers() else lines))
            return
        result = Throughput(record_count=count, size_bytes=size_bytes, elapsed_s=elapsed_s)
        row = {
            "records": result.record_count,
            "mb": round(result.size_bytes / MEGABYTE, 2),
            "seconds": round(result.elapsed_s, 3),
            "records_per_s": round(result.records_per_s, 1),
            "mb_per_s": round(result.megabytes_per_s, 2),
        }
        if output == TABLE:
            show_rows([row], output)
        else:
            show(row, output)

    try:
        run(work)
    except KeyboardInterrupt:
        show_consumed()
        raise
    show_consumed()
