"""One run of the demo.

A thread writes orders in real time, beginning while Spark starts; Spark runs the pipeline; the main thread reads the
pipeline's output topic; another thread shows the figures. At the end the results are recomputed from the orders, and
any difference is an error. After Ctrl-C this covers the windows that have closed by then, otherwise all of them.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from typing import TYPE_CHECKING, Any, Final

import click

from millbeck.cli.demo.display import Display
from millbeck.cli.demo.order_stream import OrderStream, send
from millbeck.cli.demo.results import Results
from millbeck.cli.demo.summary import summary
from millbeck.cli.demo.topic_reader import TopicReader
from millbeck.client.blocking import Blocking
from millbeck.pipeline.demo.board import Figures
from millbeck.pipeline.demo.orders import CUSTOMERS, ORDERS, REVENUE, TOPICS, closing
from millbeck.pipeline.demo.recount import WINDOW_MS, differences, recount

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from millbeck.pipeline.demo.recount import Window

CLOSE_SECONDS_MAX: Final = 180.0
SETTLE_SECONDS_MAX: Final = 10.0
LOOK_SECONDS: Final = 0.3
LOG_SIZE_SECONDS: Final = 2.0
CLOSING_SECONDS: Final = 2.0
FAR_AHEAD_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000
TOPIC_SETTINGS: Final = {"message.timestamp.after.max.ms": str((1 << 63) - 1)}
"""Event time starts a day in the past and advances faster than the clock, so that windows close during the demo."""
SPARK_SETTINGS: Final = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    # Each shuffle partition has a state store per stateful operator; Spark's default of 200 is too many here.
    "spark.sql.shuffle.partitions": "2",
}
JAVA_OPTIONS: Final = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""Use only Java's fast compiler (C1): the first batch completes sooner, and it suffices for these rates."""


class Demo:
    def __init__(self, directory: Path, master: str, per_second: int) -> None:
        self._directory = directory
        self._master = master
        # Start yesterday, since event time advances faster than the clock, and brokers refuse timestamps too far in
        # the future.
        self._begin_ms = int(time.time() * 1000 - DAY_MS) // WINDOW_MS * WINDOW_MS
        self._figures = Figures(orders_per_second=per_second)
        self._is_stopped = threading.Event()
        self._has_own_log = False

    def run(self, stack: contextlib.ExitStack, bootstrap: str | None, lasts_s: float | None) -> None:
        """Run for ``lasts_s`` seconds of the stream, or until Ctrl-C; raises `click.ClickException`."""
        display = Display(self._figures)
        stack.callback(display.stop)
        display.start()
        self._figures.bootstrap = bootstrap or self._start_node(stack)
        blocking = stack.enter_context(Blocking())
        self._create_topics(blocking)
        stream = OrderStream(
            self._figures.bootstrap, begin_ms=self._begin_ms, per_second=self._figures.orders_per_second
        )
        stream.start()
        stack.callback(stream.stop)
        results = Results(self._figures, TopicReader(blocking, self._figures.bootstrap, REVENUE))
        query = self._start_pipeline(stack)
        with self._stopping_on_interrupt():
            self._watch(blocking, results, query, stream, None if lasts_s is None else time.monotonic() + lasts_s)
            self._figures.batch = "stopping"
            stream.stop()
            is_cut = self._is_stopped.is_set()
            if not is_cut:
                self._close_windows(blocking, results, query, stream)
            query.stop()
            expected = self._settled(blocking, results, None if is_cut else _end_of(stream))
            self._figures.orders_in = stream.record_count
            display.stop()
        self._report(expected, results)

    # Setup

    def _start_node(self, stack: contextlib.ExitStack) -> str:
        from millbeck.testing.broker_process import broker

        self._has_own_log = True
        return stack.enter_context(broker(data=self._directory / "log")).bootstrap

    def _create_topics(self, blocking: Blocking) -> None:
        from millbeck.client.admin import Admin
        from millbeck.client.admin.results import NewTopic

        servers = {"bootstrap.servers": self._figures.bootstrap}
        self._admin = blocking.make(lambda environment: Admin(servers, environment=environment))
        new = [NewTopic(name=name, partition_count=count, configs=TOPIC_SETTINGS) for name, count in TOPICS.items()]
        for name, error in blocking.run(self._admin.create_topics(new)).failed.items():
            raise click.ClickException(f"the topic {name} cannot be created: {error}")

    def _start_pipeline(self, stack: contextlib.ExitStack) -> Any:
        self._figures.stage = f"starting Spark ({self._master})"
        from millbeck.pipeline.demo.revenue import build
        from millbeck.pipeline.session import spark_session
        from millbeck.pipeline.spark_output import silence
        from millbeck.pipeline.topology.topology import Topology

        settings = {**SPARK_SETTINGS, **(JAVA_OPTIONS if self._master.startswith("local") else {})}
        spark = spark_session("millbeck demo", master=self._master, settings=settings)
        stack.callback(spark.stop)
        # Runs first, because messages of Spark's processes while they are stopped are of no use.
        stack.callback(silence)
        self._figures.stage = "Spark has started; planning the pipeline"
        topology = Topology("revenue", spark, bootstrap_servers=self._figures.bootstrap)
        build(topology)
        query = topology.start(str(self._directory / "checkpoint"), trigger={"processingTime": "1 second"})
        self._figures.stage = "the first batch is running"
        return query

    @contextlib.contextmanager
    def _stopping_on_interrupt(self) -> Iterator[None]:
        """Make the first Ctrl-C end the stream and let calls to Spark complete; a second one stops at once."""

        def interrupt(number: int, frame: object) -> None:
            from millbeck.pipeline.spark_output import silence

            if self._is_stopped.is_set():
                raise KeyboardInterrupt
            silence()
            self._is_stopped.set()

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # While the stream runs

    def _watch(
        self, blocking: Blocking, results: Results, query: Any, stream: OrderStream, ends_s: float | None
    ) -> None:
        from millbeck.pipeline.demo.revenue import SALES

        log_size_s = 0.0
        while not self._is_stopped.is_set() and (ends_s is None or time.monotonic() < ends_s):
            _check(query, stream)
            self._figures.orders_in = stream.record_count
            results.add_batch(query.lastProgress, SALES)
            results.read()
            if time.monotonic() >= log_size_s:
                self._figures.log_bytes = self._log_bytes(blocking)
                log_size_s = time.monotonic() + LOG_SIZE_SECONDS
            self._is_stopped.wait(LOOK_SECONDS)

    def _log_bytes(self, blocking: Blocking) -> int | None:
        from millbeck.kernel.errors import ApiError

        try:
            described = blocking.run(self._admin.describe_log_dirs())
        except (ApiError, OSError):
            return None
        directories = [each for found in described.succeeded.values() for each in found]
        return sum(replica.size_bytes for directory in directories for replica in directory.replicas)

    # The end

    def _close_windows(self, blocking: Blocking, results: Results, query: Any, stream: OrderStream) -> None:
        """Advance event time until the last windows have closed."""
        from millbeck.client.producer import Producer

        servers = {"bootstrap.servers": self._figures.bootstrap}
        producer = blocking.make(lambda environment: Producer(servers, environment=environment))
        end_ms = _end_of(stream)
        expected = len(self._expected(blocking, end_ms))
        ends_s = time.monotonic() + CLOSE_SECONDS_MAX
        step = 0
        while len(results.windows) < expected and time.monotonic() < ends_s and not self._is_stopped.is_set():
            # Use a later time in each round: Spark closes windows one batch after its watermark has passed them.
            blocking.run(send(producer, closing(end_ms + FAR_AHEAD_MS + step, TOPICS[ORDERS])))
            step += 1
            self._is_stopped.wait(CLOSING_SECONDS)
            _check(query, stream)
            results.read()
            self._figures.batch = f"closing the last windows: {len(results.windows):,} of {expected:,}"

    def _settled(self, blocking: Blocking, results: Results, end_ms: int | None) -> dict[Window, int]:
        """Read the last results and compute what they have to be.

        Without ``end_ms``, the windows up to the last one that has closed. The markers of Spark's last transaction
        reach the partitions one after the other, so results that differ are read once more.
        """
        ends_s = time.monotonic() + SETTLE_SECONDS_MAX
        while True:
            results.read()
            closed_ms = max((start for _, start in results.windows), default=-WINDOW_MS) + WINDOW_MS
            expected = self._expected(blocking, closed_ms if end_ms is None else end_ms)
            if expected == results.windows or time.monotonic() > ends_s:
                return expected
            time.sleep(LOOK_SECONDS)

    def _expected(self, blocking: Blocking, end_ms: int) -> dict[Window, int]:
        customers = TopicReader(blocking, self._figures.bootstrap, CUSTOMERS).read()
        orders = TopicReader(blocking, self._figures.bootstrap, ORDERS).read()
        return recount(
            [(record.key or b"", record.value or b"") for record in customers],
            [(record.timestamp, record.value or b"") for record in orders],
            before_ms=end_ms,
        )

    def _report(self, expected: dict[Window, int], results: Results) -> None:
        wrong = differences(expected, results.windows, results.twice)
        lines = summary(self._figures, self._directory, has_own_log=self._has_own_log, is_equal=not wrong)
        click.echo("\n".join(lines))
        if wrong:
            raise click.ClickException("the recount differs:\n" + "\n".join(wrong))


def _end_of(stream: OrderStream) -> int:
    """The end of the last window with orders."""
    return stream.written_ms // WINDOW_MS * WINDOW_MS + WINDOW_MS


def _check(query: Any, stream: OrderStream) -> None:
    if not query.isActive:
        from millbeck.pipeline.error_summaries import explained

        raise click.ClickException(f"the pipeline has ended: {explained(query.exception())}")
    if stream.error is not None:
        raise click.ClickException(f"the orders cannot be written: {stream.error}")
