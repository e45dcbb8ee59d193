"""``millbeck produce``: send lines of standard input as records."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

import click

from millbeck.cli.commands.topic import settings_of
from millbeck.cli.completed_types import TOPIC
from millbeck.cli.connection_options import Target, check_reachable, check_topic, error_text, run, target_options
from millbeck.cli.records.record_lines import Header, LineError, LineReader, line_format, unescaped
from millbeck.cli.suggestions import retired_option
from millbeck.cli.verbs import Command

if TYPE_CHECKING:
    from millbeck.client.producer import Producer
    from millbeck.client.producer.batch import RecordFuture
    from millbeck.kernel.environment import Environment

CHUNK_BYTES: Final = 1 << 16
LINE_BYTES_MAX: Final = 64 << 20
PROGRESS_EVERY: Final = 1000
INTERRUPTED_SECONDS_MAX: Final = 5.0


@click.command(cls=Command)
@click.argument("name", metavar="TOPIC", type=TOPIC, required=False)
@click.option("-t", "--topic", type=TOPIC, metavar="TOPIC", help="The same as TOPIC.")
@click.option("-k", "--key", help="The key of every record.")
@click.option("-K", "--key-separator", metavar="DELIM", help="Split each line into key and value at this separator.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header to add to every record.")
@click.option("-p", "--partition", type=click.IntRange(0), help="Send to this partition, ignoring the key.")
@click.option("-D", "--delimiter", default="\\n", show_default=True, help="The delimiter between records.")
@click.option("-Z", "--null", "null_is_empty", is_flag=True, help="Send empty keys and values as null.")
@click.option(
    "-z",
    "--compression",
    "--compression-codec",
    type=click.Choice(["none", "gzip", "snappy", "lz4", "zstd"]),
    is_flag=False,
    flag_value="gzip",
    help="Compress batches; gzip when no codec is named.",
)
@click.option(
    "-a",
    "--acks",
    "--request-required-acks",
    type=click.Choice(["all", "-1", "0", "1"]),
    help="The acks setting of the producer.",
)
@click.option("--sync", is_flag=True, help="Wait for each acknowledgement before reading the next record.")
@click.option("-v", "--verbose", is_flag=True, help="Print the partition and offset of each record.")
@click.option(
    "--reader-property",
    "--property",
    "reader_properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="A property of Kafka's console producer: parse.key, key.separator, parse.headers, null.marker, …",
)
@retired_option("--broker-list", replacement="use --bootstrap-server")
@target_options
@click.pass_context
def command(
    ctx: click.Context,
    name: str | None,
    topic: str | None,
    key: str | None,
    key_separator: str | None,
    headers: tuple[str, ...],
    partition: int | None,
    delimiter: str,
    null_is_empty: bool,
    compression: str | None,
    acks: str | None,
    sync: bool,
    verbose: bool,
    reader_properties: tuple[str, ...],
    target: Target,
) -> None:
    """Send each line of standard input as a record.

    \b
    Examples:
      echo hello | millbeck produce greetings
      millbeck produce -t orders -K : -H source=shell --compression zstd < orders.txt
      millbeck produce --topic orders --property parse.key=true --property key.separator=,
    """
    if (name is None) == (topic is None):
        raise click.UsageError("name one topic", ctx)
    try:
        form = line_format(
            settings_of(reader_properties, "--reader-property"),
            key_separator=key_separator,
            null_is_empty=null_is_empty,
        )
    except ValueError as error:
        raise click.UsageError(f"--reader-property: {error}", ctx) from error
    if not delimiter:
        raise click.UsageError("--delimiter must not be empty", ctx)
    given = {"compression_type": compression, "acks": acks}
    settings = target.client_settings(**{option: value for option, value in given.items() if value is not None})
    fixed = tuple((each, value.encode()) for each, value in settings_of(headers, "--header").items())

    tally = DeliveryCounts(shows_progress=sys.stderr.isatty() and not verbose, verbose=verbose)

    async def work(environment: Environment) -> None:
        from millbeck.cli.outage_messages import report_leaderless_partitions
        from millbeck.client.producer import Producer

        async with Producer(settings, environment=environment) as producer:
            await check_reachable(producer.cluster, target)
            producer.cluster.spawn(report_leaderless_partitions(producer, "written"))
            await check_topic(producer.cluster, topic or name or "")
            sending = LineProducer(
                producer,
                topic or name or "",
                form,
                key=key.encode() if key is not None else None,
                headers=fixed,
                partition=partition,
                waits=sync,
                tally=tally,
            )
            await sending.run(sys.stdin.buffer, unescaped(delimiter).encode())
        tally.finish()

    try:
        run(work)
    except KeyboardInterrupt:
        tally.finish()
        raise


class DeliveryCounts:
    """Counts sent, acknowledged and failed records, and prints progress on a terminal."""

    def __init__(self, *, shows_progress: bool, verbose: bool) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.first_error: BaseException | None = None
        self._shows_progress = shows_progress
        self._verbose = verbose

    def track(self, future: RecordFuture) -> None:
        self.sent += 1
        future.add_done_callback(self._done)

    def _done(self, future: RecordFuture) -> None:
        error = future.exception()
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or error
            return
        self.acknowledged += 1
        if self._verbose:
            where = future.result()
            click.echo(f"{where.topic}-{where.partition} at offset {where.offset}", err=True)
        elif self._shows_progress and self.acknowledged % PROGRESS_EVERY == 0:
            click.echo(f"\r{self.acknowledged} records", nl=False, err=True)

    def finish(self) -> None:
        """Print the final count; raises if a record was not acknowledged."""
        if self._shows_progress:
            click.echo(f"\r{self.acknowledged} records", err=True)
        if self.first_error is not None:
            reason = error_text(self.first_error) if isinstance(self.first_error, Exception) else "interrupted"
            raise click.ClickException(f"{self.failed} of {self.sent} records were not acknowledged: {reason}")


class LineProducer:
    """One run of the command: sends each line as a record."""

    def __init__(
        self,
        producer: Producer,
        topic: str,
        form: LineReader,
        *,
        key: bytes | None,
        headers: tuple[Header, ...],
        partition: int | None,
        waits: bool,
        tally: DeliveryCounts,
    ) -> None:
        self._producer = producer
        self._topic = topic
        self._form = form
        self._key = key
        self._headers = headers
        self._partition = partition
        self._waits = waits
        self._tally = tally

    async def run(self, source: IO[bytes], delimiter: bytes) -> None:
        """Send every line and wait for the acknowledgements; when interrupted, wait only briefly."""
        import asyncio

        from millbeck.client.errors import RequestTimeout

        try:
            await self.send_all(source, delimiter)
        except asyncio.CancelledError:
            # As Kafka's console producer does: records already typed are still flushed after Ctrl-C.
            with suppress(RequestTimeout):
                await self._producer.flush(INTERRUPTED_SECONDS_MAX)
            raise
        await self._producer.flush()

    async def send_all(self, source: IO[bytes], delimiter: bytes) -> None:
        number = 0
        async for line in lines_of(source, delimiter):
            number += 1
            try:
                key, value, headers = self._form.parse(line)
            except LineError as error:
                await self._producer.flush()
                raise click.ClickException(f"line {number}: {error}; {number - 1} lines were sent") from error
            future = await self._producer.enqueue(
                self._topic,
                value,
                key=key if key is not None else self._key,
                headers=(*self._headers, *headers),
                partition=self._partition,
            )
            self._tally.track(future)
            if self._waits:
                await self._producer.flush()
            if self._tally.first_error is not None:
                return


async def lines_of(source: IO[bytes], delimiter: bytes) -> AsyncIterator[bytes]:
    """Yield lines as they arrive. A thread does the blocking read, so that records are sent while a user types."""
    rest = bytearray()
    async for chunk in _chunks_of(source):
        # Search only the new bytes for the delimiter: searching a long line again with every chunk would be quadratic.
        unseen = max(0, len(rest) - len(delimiter) + 1)
        rest += chunk
        if rest.find(delimiter, unseen) >= 0:
            *lines, rest = rest.split(delimiter)
            for line in lines:
                yield bytes(line)
        if len(rest) > LINE_BYTES_MAX:
            raise click.ClickException(f"a line is longer than {LINE_BYTES_MAX} bytes")
    if rest:
        yield bytes(rest)


async def _chunks_of(source: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield the content of a source in chunks.

    The thread is a daemon and reads the file descriptor directly: on exit, the process waits neither for another line
    of input nor for the lock of a buffered reader.
    """
    import asyncio
    import queue
    import threading

    loop = asyncio.get_running_loop()
    read = _reader_of(source)
    arrived: asyncio.Queue[bytes | OSError] = asyncio.Queue()
    wanted: queue.SimpleQueue[None] = queue.SimpleQueue()

    def read_all() -> None:
        while True:
            wanted.get()
            try:
                found: bytes | OSError = read(CHUNK_BYTES)
            except OSError as error:
                found = error
            if loop.is_closed():
                return
            loop.call_soon_threadsafe(arrived.put_nowait, found)
            if not found or isinstance(found, OSError):
                return

    threading.Thread(target=read_all, name="stdin", daemon=True).start()
    while True:
        wanted.put(None)
        chunk = await arrived.get()
        if isinstance(chunk, OSError):
            raise chunk
        if not chunk:
            return
        yield chunk


def _reader_of(source: IO[bytes]) -> Callable[[int], bytes]:
    try:
        descriptor = source.fileno()
    except OSError:
        return getattr(source, "read1", source.read)
    return lambda size: os.read(descriptor, size)
