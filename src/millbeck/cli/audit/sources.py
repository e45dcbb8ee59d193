"""The sources of audit lines: files, including rotated ones, or the topic of a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

import click

from millbeck.cli.connection_options import Target, check_reachable, file_problem
from millbeck.cli.output import check_reader

if TYPE_CHECKING:
    from millbeck.kernel.environment import Environment

AUDIT_TOPIC: Final = "__millbeck_audit"
LOOKUP_SECONDS_MAX: Final = 5.0
POLL_SECONDS: Final = 0.2


def lines_of_files(paths: Iterable[str]) -> Iterator[str]:
    """Yield the lines of all files, in order; raises `click.ClickException` if one cannot be read."""
    for path in paths:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                yield from file
        except OSError as error:
            raise click.ClickException(file_problem(path, error)) from error


def with_rotated(paths: Iterable[str]) -> list[str]:
    """The files, each preceded by its rotated ones, in the order of their lines."""
    return [each for path in paths for each in (*reversed(rotated(path)), path)]


def rotated(path: str) -> list[str]:
    """The rotated files of an audit file, the newest first."""
    found: list[str] = []
    while os.path.exists(name := f"{path}.{len(found) + 1}"):
        found.append(name)
    return found


class FollowedFile:
    """A file to which lines are being added: returns the existing lines, then the added ones, without a gap in
    between."""

    def __init__(self, path: str) -> None:
        """Open the file; raises `click.ClickException` if that fails."""
        self._path = path
        self._file = self._open()
        self._rest = ""

    def present(self) -> list[str]:
        """The complete lines that have been added since the last call."""
        self._rest += self._file.read()
        *whole, self._rest = self._rest.split("\n")
        return whole

    def added(self) -> Iterator[str]:
        """Yield added lines forever; a rotated file is read to its end first."""
        while True:
            yield from self.present()
            if _is_other(self._file.fileno(), self._path):
                yield from self.present()
                self._file.close()
                self._file, self._rest = self._open(), ""
            else:
                check_reader()
                time.sleep(POLL_SECONDS)

    def _open(self) -> TextIO:
        try:
            return open(self._path, encoding="utf-8", errors="replace")
        except OSError as error:
            raise click.ClickException(file_problem(self._path, error)) from error


def _is_other(descriptor: int, path: str) -> bool:
    """Whether the path now refers to a file other than the open one."""
    try:
        there = os.stat(path)
    except OSError:
        return False
    here = os.fstat(descriptor)
    return (here.st_ino, here.st_dev) != (there.st_ino, there.st_dev)


async def lines_of_topic(
    environment: Environment, target: Target, *, since_ms: int | None, follows: bool
) -> AsyncIterator[list[str]]:
    """Yield the current lines of the topic, then an empty list; with ``follows`` also lines added later."""
    from millbeck.client.consumer import Consumer
    from millbeck.kernel.errors import UnknownTopicOrPartition
    from millbeck.kernel.ids import TopicPartition

    settings = target.client_settings(enable_auto_commit="false")
    async with Consumer(settings, environment=environment) as consumer:
        await check_reachable(consumer.cluster, target)
        try:
            topic = await consumer.topic(AUDIT_TOPIC, timeout_s=LOOKUP_SECONDS_MAX)
        except UnknownTopicOrPartition as error:
            raise click.ClickException(
                f"there is no topic {AUDIT_TOPIC}: set millbeck.audit.topic=true on the brokers, or name a file with "
                "--file"
            ) from error
        partitions = [TopicPartition(AUDIT_TOPIC, number) for number in topic.partitions]
        consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        starts = None if since_ms is None else await consumer.offsets_for_times(dict.fromkeys(partitions, since_ms))
        for partition in partitions:
            found = None if starts is None else starts.get(partition)
            if starts is None:
                consumer.seek_to_beginning(partition)
            else:
                consumer.seek(partition, ends[partition] if found is None else found.offset)
        is_behind = True
        while True:
            if is_behind:
                is_behind = any([await consumer.position(each) < ends[each] for each in partitions])
                if not is_behind:
                    yield []
                    if not follows:
                        return
            polled = await consumer.poll(timeout_s=POLL_SECONDS)
            check_reader()
            lines = [
                (record.value or b"").decode("utf-8", "replace") for records in polled.values() for record in records
            ]
            if lines:
                yield lines
