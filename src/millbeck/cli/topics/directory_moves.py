"""Move replicas to a given log directory of their broker: the ``log_dirs`` of a reassignment.

A broker creates the log of a new replica only when it has applied the metadata change, and refuses to move it before
that (ReplicaNotAvailable). So the request is retried for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from millbeck.cli.output import TEXT, document
from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
PATIENCE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.5

Places = Mapping[tuple[int, TopicPartition], str]
"""The wanted directory, by broker and partition."""


async def move_logs(admin: Admin, places: Places) -> None:
    """Start moving replicas to their directories; raises `click.ClickException` for those that cannot be moved."""
    import asyncio

    from millbeck.cli.commands.topic import raise_failures
    from millbeck.kernel.errors import ReplicaNotAvailable

    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_SECONDS
    left = dict(places)
    while True:
        outcomes = await admin.alter_replica_log_dirs(left)
        for replica in sorted(outcomes.succeeded):
            click.echo(f"{named(replica)}: moving to {places[replica]}")
        left = {replica: places[replica] for replica in outcomes.failed}
        only_absent = all(isinstance(error, ReplicaNotAvailable) for error in outcomes.failed.values())
        if not left or not only_absent or loop.time() >= deadline_s:
            break
        await asyncio.sleep(RETRY_SECONDS)
    raise_failures({f"{named(replica)} to {places[replica]}": error for replica, error in outcomes.failed.items()})


async def print_replica_directories(admin: Admin, places: Places, output: str = TEXT) -> bool:
    """Print for each replica whether it is in the wanted directory; returns whether all are."""
    found = (await admin.describe_log_dirs(sorted({broker for broker, _ in places}))).succeeded
    now: dict[tuple[int, TopicPartition], str] = {}
    coming: dict[tuple[int, TopicPartition], str] = {}
    for broker, directories in found.items():
        for directory in directories:
            for each in directory.replicas:
                (coming if each.is_future else now)[broker, each.partition] = directory.path
    for replica, path in sorted(places.items()):
        if output == TEXT:
            click.echo(f"{named(replica)}: {directory_text(path, now.get(replica), coming.get(replica))}")
        else:
            broker, (topic, partition) = replica
            row = {"topic": topic, "partition": partition, "broker": broker}
            row |= {"directory": now.get(replica), "moving_to": coming.get(replica), "wanted_directory": path}
            click.echo(document(row, output))
    return all(now.get(replica) == path for replica, path in places.items())


def directory_text(wanted: str, now: str | None, coming: str | None) -> str:
    if now == wanted:
        return f"is in {wanted}"
    if coming == wanted:
        return f"still moving to {wanted}"
    if now is None:
        return f"not found on its broker, expected in {wanted}"
    return f"not moving: it is in {now} instead of {wanted}"


def named(replica: tuple[int, TopicPartition]) -> str:
    broker, partition = replica
    return f"{partition.topic}-{partition.partition} on broker {broker}"
