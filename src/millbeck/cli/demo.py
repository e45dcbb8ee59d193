"""``millbeck demo``: a node, a stream of orders and a pipeline on Spark, with its result as a live table.

Three parties share this process: the generator, on a thread, writes orders as the clock goes; Spark runs the pipeline;
the main thread reads what the pipeline writes, as any consumer would, and shows it. Without a terminal the stream ends
after a minute, every closed window is counted again from the input, and a difference is an error.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from millbeck.client.blocking import Blocking
    from millbeck.records.record import Record

STREAM_SECONDS: Final = 60.0
CLOSE_SECONDS_MAX: Final = 180.0
SHOW_SECONDS: Final = 5.0
SEED: Final = 7
PER_SECOND: Final = 200
FAR_AHEAD_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
TOPIC_SETTINGS: Final = {"message.timestamp.after.max.ms": str((1 << 63) - 1)}
"""The stream's time begins a day ago and runs faster than the clock: whoever watches for long sees it pass by."""
SPARK_SETTINGS: Final = {
    "spark.log.level": "ERROR",
    # Each is a store of state for every operator that has one; a cluster's 200 are for more than three partitions.
    "spark.sql.shuffle.partitions": "4",
}


@click.command()
@click.option("--seconds", type=click.FloatRange(min=5), help="How long orders come; for ever on a terminal.")
@click.option(
    "--orders-per-second",
    default=PER_SECOND,
    show_default=True,
    type=click.IntRange(1, 100_000),
    help="How many orders come.",
)
@click.option("--master", default="local[*]", show_default=True, metavar="MASTER", help="Where Spark runs.")
@click.option("-b", "--bootstrap-server", metavar="HOST:PORT,…", help="A log that runs; one of its own else.")
def command(seconds: float | None, orders_per_second: int, master: str, bootstrap_server: str | None) -> None:
    """Show the whole: a log, a stream of orders, and revenue by region from a pipeline on Spark.

    On a terminal it goes on until Ctrl-C. Elsewhere it ends after a minute of orders, counts every window again, and
    fails if the pipeline said something else.

    \b
    Examples:
      millbeck demo
      millbeck demo --seconds 60
      millbeck demo --master spark://host:7077 --bootstrap-server host:9092
    """
    try:
        import pyspark  # noqa: F401
    except ImportError as error:
        raise click.ClickException(f"Spark is not installed ({error}): pip install 'millbeck[spark]'") from error
    lasts = seconds if seconds is not None else (None if sys.stdout.isatty() else STREAM_SECONDS)
    from millbeck.pipeline.errors import PipelineError

    with contextlib.ExitStack() as stack:
        if bootstrap_server is None:
            _say("starting a node")
            bootstrap_server = stack.enter_context(_node())
        _say(f"the log is at {bootstrap_server}")
        try:
            Demo(bootstrap_server, master, orders_per_second).run(stack, lasts)
        except PipelineError as error:
            raise click.ClickException(str(error)) from error


@contextlib.contextmanager
def _node() -> Iterator[str]:
    from millbeck.testing.broker_process import broker

    with broker() as node:
        yield node.bootstrap


def _say(text: str) -> None:
    click.echo(f"[{time.strftime('%H:%M:%S')}] {text}")


class Demo:
    def __init__(self, bootstrap: str, master: str, per_second: int) -> None:
        self._bootstrap = bootstrap
        self._master = master
        self._per_second = per_second
        # Yesterday, since event time is faster than the clock and brokers refuse what comes from the future.
        self._begin_ms = int(time.time() * 1000 - DAY_MS) // 300_000 * 300_000
        self._ends = threading.Event()
        self._written_ms = self._begin_ms

    def run(self, stack: contextlib.ExitStack, lasts: float | None) -> None:
        from millbeck.client.blocking import Blocking

        blocking = stack.enter_context(Blocking())
        self._prepare(blocking)
        directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="millbeck-demo-"))
        spark = self._start_spark(stack)
        query = self._start_query(spark, directory)
        generator = threading.Thread(target=self._generate, name="orders")
        generator.start()
        stack.callback(generator.join)
        stack.callback(self._ends.set)
        try:
            self._watch(blocking, query, lasts)
        except KeyboardInterrupt:
            _say("stopping")
            return
        finally:
            self._ends.set()
            with contextlib.suppress(Exception):
                query.stop()

    # Before

    def _prepare(self, blocking: Blocking) -> None:
        from millbeck.client.admin import Admin
        from millbeck.client.admin.results import NewTopic
        from millbeck.pipeline.demo.orders import TOPICS, customers

        admin = blocking.make(lambda environment: Admin(environment, {"bootstrap.servers": self._bootstrap}))
        new = [NewTopic(name=name, partition_count=count, configs=TOPIC_SETTINGS) for name, count in TOPICS.items()]
        for name, error in blocking.run(admin.create_topics(new)).failed.items():
            raise click.ClickException(f"the topic {name} cannot be made: {error}")
        self._send(blocking, customers(self._begin_ms))

    def _send(self, blocking: Blocking, events: Any) -> None:
        from millbeck.client.producer import Producer

        async def send() -> None:
            async with Producer(blocking.environment, {"bootstrap.servers": self._bootstrap}) as producer:
                sent = [
                    await producer.send(event.topic, event.value, key=event.key, timestamp=event.timestamp_ms)
                    for event in events
                ]
                for future in sent:
                    await future

        blocking.run(send())

    def _start_spark(self, stack: contextlib.ExitStack) -> Any:
        from millbeck.pipeline.session import spark_session

        _say(f"starting Spark ({self._master})")
        with _telling("Spark is starting"):
            spark = spark_session("millbeck demo", master=self._master, settings=SPARK_SETTINGS)
        stack.callback(spark.stop)
        return spark

    def _start_query(self, spark: Any, directory: str) -> Any:
        from millbeck.pipeline.demo.revenue import build
        from millbeck.pipeline.topology.topology import Topology

        topology = Topology("revenue", spark, bootstrap_servers=self._bootstrap)
        build(topology)
        for line in topology.outline.lines():
            _say(f"  {line}")
        return topology.start(f"{directory}/checkpoint", trigger={"processingTime": "1 second"})

    # Meanwhile

    def _generate(self) -> None:
        from millbeck.client.blocking import Blocking
        from millbeck.pipeline.demo.orders import SPEED, orders

        with Blocking() as blocking:
            for second, made in enumerate(orders(SEED, self._begin_ms, per_second=self._per_second)):
                if self._ends.is_set():
                    return
                began = time.monotonic()
                self._send(blocking, made)
                self._written_ms = self._begin_ms + (second + 1) * SPEED * 1000
                self._ends.wait(max(0.0, 1 - (time.monotonic() - began)))

    def _watch(self, blocking: Blocking, query: Any, lasts: float | None) -> None:
        from millbeck.pipeline.demo.board import board
        from millbeck.pipeline.demo.orders import REVENUE
        from millbeck.pipeline.demo.recount import written

        began = time.monotonic()
        while lasts is None or time.monotonic() - began < lasts:
            time.sleep(min(SHOW_SECONDS, lasts or SHOW_SECONDS))
            self._check(query)
            totals, _ = written(_rows(self._read(blocking, REVENUE)))
            lines = board(totals)
            _say(f"revenue by region, {len(totals)} windows closed" if lines else "no window has closed yet")
            for line in lines:
                click.echo(f"    {line}")
        self._ends.set()
        self._recount(blocking, query)

    def _check(self, query: Any) -> None:
        if not query.isActive:
            from millbeck.pipeline.explaining import explained

            raise click.ClickException(f"the pipeline has ended: {explained(query.exception())}")

    # The end

    def _recount(self, blocking: Blocking, query: Any) -> None:
        from millbeck.pipeline.demo.orders import CUSTOMERS, ORDERS, REVENUE, TOPICS, closing
        from millbeck.pipeline.demo.recount import WINDOW_MS, differences, recount, written

        time.sleep(1.5)  # the generator's last second
        end_ms = self._written_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS
        _say("the stream has ended; closing the last windows")
        expected: dict[Any, int] = {}
        ends_at = time.monotonic() + CLOSE_SECONDS_MAX
        step = 0
        while True:
            # Each time a little later: Spark closes windows one batch after it has seen the time pass.
            self._send(blocking, closing(end_ms + FAR_AHEAD_MS + step, TOPICS[ORDERS]))
            step += 1
            time.sleep(2)
            self._check(query)
            customers = [(record.key or b"", record.value or b"") for record in self._read(blocking, CUSTOMERS)]
            orders = [(record.timestamp, record.value or b"") for record in self._read(blocking, ORDERS)]
            expected = recount(customers, orders, before_ms=end_ms)
            found, twice = written(_rows(self._read(blocking, REVENUE)))
            wrong = differences(expected, found, twice)
            if len(found) >= len(expected) or time.monotonic() > ends_at:
                break
            _say(f"{len(found)} of {len(expected)} windows have closed")
        if wrong:
            raise click.ClickException("the recount differs:\n" + "\n".join(wrong))
        _say(f"recounted: {len(found)} windows, {sum(found.values()) / 100:,.2f} in all, every one of them the same")

    def _read(self, blocking: Blocking, topic: str) -> list[Record]:
        from millbeck.client.consumer import Consumer
        from millbeck.kernel.ids import TopicPartition

        async def read() -> list[Record]:
            settings = {"bootstrap.servers": self._bootstrap, "isolation.level": "read_committed"}
            async with Consumer(blocking.environment, settings) as consumer:
                view = await consumer.topic(topic)
                partitions = [TopicPartition(topic, number) for number in view.partitions]
                ends = await consumer.end_offsets(partitions)
                consumer.assign(partitions)
                consumer.seek_to_beginning()
                found: list[Record] = []
                while any([await consumer.position(each) < ends[each] for each in partitions]):
                    for records in (await consumer.poll(timeout_s=0.2, max_records=5000)).values():
                        found += records
                return found

        return blocking.run(read())


def _rows(records: list[Record]) -> list[tuple[bytes, bytes]]:
    return [(record.key or b"", record.value or b"") for record in records]


@contextlib.contextmanager
def _telling(text: str) -> Iterator[None]:
    """Say it again every few seconds while something takes long."""
    done = threading.Event()

    def tell() -> None:
        began = time.monotonic()
        while not done.wait(SHOW_SECONDS):
            _say(f"{text} ({time.monotonic() - began:.0f} s)")

    thread = threading.Thread(target=tell, name="telling")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
