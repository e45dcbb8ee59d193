"""``millbeck perf``: how fast records go in and out, as Kafka's perf tools measure it."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

import click

from millbeck.cli.connecting import Target, check_reachable, check_topic, error_text, run, target_options
from millbeck.cli.measurements import MEGABYTE, Latencies, Throughput, produce_line
from millbeck.cli.output import TABLE, output_option, show, show_rows
from millbeck.cli.progress import how_far, progress
from millbeck.cli.topic import settings_of
from millbeck.cli.verbs import VerbGroup

if TYPE_CHECKING:
    from millbeck.client.producer import Producer
    from millbeck.client.producer.batch import RecordFuture
    from millbeck.kernel.environment import Environment

LOOKUP_SECONDS_MAX: Final = 2.0
THROTTLE_SECONDS: Final = 0.001


@click.group(cls=VerbGroup, flags={})
def command() -> None:
    """Measure how fast records go in and out."""


@command.command("produce")
@click.option("-t", "--topic", required=True, metavar="TOPIC", help="Where to send.")
@click.option("-n", "--num-records", required=True, type=click.IntRange(1), metavar="N", help="How many.")
@click.option("-s", "--record-size", default=100, show_default=True, type=click.IntRange(0), help="Bytes of each.")
@click.option("--throughput", default=-1.0, help="Records a second; -1 is as many as go.")
@click.option("--payload-file", type=click.File("rb"), help="Send the lines of this file, over and over.")
@click.option("--producer-props", multiple=True, metavar="KEY=VALUE", help="A producer setting; can be repeated.")
@output_option
@target_options
def produce(
    topic: str,
    num_records: int,
    record_size: int,
    throughput: float,
    payload_file: IO[bytes] | None,
    producer_props: tuple[str, ...],
    output: str,
    target: Target,
) -> None:
    """Send records and say how fast that was. With --throughput, latencies count from when a record was due.

    \b
    Examples:
      millbeck perf produce --topic load --num-records 1000000 --record-size 100
      millbeck perf produce --topic load -n 60000 -s 1024 --throughput 1000 -X acks=all -X linger.ms=0
    """
    settings = {**target.client_settings(), **settings_of(producer_props, "--producer-props")}
    payloads = [b"x" * record_size]
    if payload_file is not None:
        payloads = [line.rstrip(b"\n") for line in payload_file] or payloads

    async def work(environment: Environment) -> None:
        from millbeck.client.producer import Producer

        async with Producer(environment, settings) as producer:
            await check_reachable(producer.cluster, target)
            await check_topic(producer.cluster, topic)
            load = Load(producer, topic, payloads, rate=throughput)
            async with progress(lambda seconds: how_far(load.latencies.count, num_records, seconds, "records")):
                result = await load.send(num_records)
        if load.failed:
            assert load.first_error is not None
            raise click.ClickException(f"{load.failed} records failed: {error_text(load.first_error)}")
        if output == TABLE:
            click.echo(produce_line(result, load.latencies))
        else:
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

    run(work)


class Load:
    """Sends records at a rate, or as fast as they go, and times each until it is acknowledged."""

    def __init__(self, producer: Producer, topic: str, payloads: list[bytes], *, rate: float) -> None:
        import asyncio

        self.latencies = Latencies()
        self.failed = 0
        self.first_error: Exception | None = None
        self._producer = producer
        self._topic = topic
        self._payloads = payloads
        self._rate = rate
        self._loop = asyncio.get_running_loop()

    async def send(self, count: int) -> Throughput:
        import asyncio

        began_s = self._loop.time()
        size_bytes = 0
        for number in range(count):
            due_s = self._loop.time() if self._rate <= 0 else began_s + number / self._rate
            while self._rate > 0 and (ahead_s := due_s - self._loop.time()) > 0:
                await asyncio.sleep(max(ahead_s, THROTTLE_SECONDS))
            payload = self._payloads[number % len(self._payloads)]
            size_bytes += len(payload)
            self._track(await self._producer.send(self._topic, payload), due_s)
        await self._producer.flush()
        return Throughput(record_count=count, size_bytes=size_bytes, elapsed_s=self._loop.time() - began_s)

    def _track(self, future: RecordFuture, due_s: float) -> None:
        def done(ended: RecordFuture) -> None:
            error = ended.exception()
            if isinstance(error, Exception):
                self.failed += 1
                self.first_error = self.first_error or error
            else:
                self.latencies.add((self._loop.time() - due_s) * 1000)

        future.add_done_callback(done)


@command.command("consume")
@click.option("-t", "--topic", required=True, metavar="TOPIC", help="What to read.")
@click.option("-n", "--num-records", "--messages", type=click.IntRange(1), metavar="N", help="How many; all there are.")
@click.option("--timeout", "timeout_ms", default=10_000, show_default=True, help="Stop when nothing comes for so long.")
@click.option("--from-latest", is_flag=True, help="Begin at the end instead of the beginning.")
@output_option
@target_options
def consume(
    topic: str, num_records: int | None, timeout_ms: int, from_latest: bool, output: str, target: Target
) -> None:
    """Read records and say how fast that was.

    \b
    Examples:
      millbeck perf consume --topic load
      millbeck perf consume --topic load --messages 1000000 --output json
    """
    settings = target.client_settings(enable_auto_commit="false", allow_auto_create_topics="false")

    async def work(environment: Environment) -> None:
        import asyncio

        from millbeck.cli.start_positions import Start, assign
        from millbeck.client.consumer import Consumer
        from millbeck.kernel.ids import TopicPartition

        loop = asyncio.get_running_loop()
        async with Consumer(environment, settings) as consumer:
            await check_reachable(consumer.cluster, target)
            view = await consumer.topic(topic, timeout_s=LOOKUP_SECONDS_MAX)
            partitions = [TopicPartition(topic, number) for number in sorted(view.partitions)]
            left = num_records
            if left is None:
                first, end = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
                left = sum(end[each] - first[each] for each in partitions)
            count = size_bytes = 0
            began_s = last_s = loop.time()
            await assign(consumer, partitions, Start(is_beginning=not from_latest))
            async with progress(lambda seconds: how_far(count, left, seconds, "records")):
                while count < left and loop.time() < last_s + timeout_ms / 1000:
                    for records in (await consumer.poll(timeout_s=0.5, max_records=left - count)).values():
                        count += len(records)
                        size_bytes += sum(len(each.value or b"") + len(each.key or b"") for each in records)
                        last_s = loop.time()
        result = Throughput(record_count=count, size_bytes=size_bytes, elapsed_s=last_s - began_s)
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

    run(work)
