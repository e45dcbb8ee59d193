"""Replicas that are to be in a certain directory of their broker: what ``log_dirs`` in a reassignment asks for.

A broker that is to get a replica makes its log when the metadata reach it, and only then can be told where to keep
it. So it is asked again for a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin

DIRECTORY_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
PATIENCE_SECONDS: Final = 10.0
RETRY_SECONDS: Final = 0.5

Places = Mapping[tuple[int, TopicPartition], str]
"""Directories by broker and partition."""


async def move_logs(admin: Admin, places: Places) -> None:
    """Begin to move logs; raises `click.ClickException` for those that cannot."""
    import asyncio

    from millbeck.cli.topic import raise_failures
    from millbeck.kernel.errors import ReplicaNotAvailable

    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_SECONDS
    left = dict(places)
    while True:
        outcomes = await admin.alter_replica_log_dirs(left)
        for replica in sorted(outcomes.succeeded):
            click.echo(f"{named(replica)}: on its way to {places[replica]}")
        left = {replica: places[replica] for replica in outcomes.failed}
        only_absent = all(isinstance(error, ReplicaNotAvailable) for error in outcomes.failed.values())
        if not left or not only_absent or loop.time() >= deadline_s:
            break
        await asyncio.sleep(RETRY_SECONDS)
    raise_failures({f"{named(replica)} to {places[replica]}": error for replica, error in outcomes.failed.items()})


async def places_shown(admin: Admin, places: Places) -> bool:
    """Say of each replica whether it is where it shall be; whether all are."""
    found = (await admin.describe_log_dirs(sorted({broker for broker, _ in places}))).succeeded
    now: dict[tuple[int, TopicPartition], str] = {}
    coming: dict[tuple[int, TopicPartition], str] = {}
    for broker, directories in found.items():
        for directory in directories:
            for each in directory.replicas:
                (coming if each.is_future else now)[broker, each.partition] = directory.path
    for replica, path in sorted(places.items()):
        click.echo(f"{named(replica)}: {whereabouts(path, now.get(replica), coming.get(replica))}")
    return all(now.get(replica) == path for replica, path in places.items())


def whereabouts(wanted: str, now: str | None, coming: str | None) -> str:
    if now == wanted:
        return f"is in {wanted}"
    if coming == wanted:
        return f"still moving to {wanted}"
    if now is None:
        return f"not on its broker, and shall be in {wanted}"
    return f"not moving, and is in {now} instead of {wanted}"


def named(replica: tuple[int, TopicPartition]) -> str:
    broker, partition = replica
    return f"{partition.topic}-{partition.partition} on broker {broker}"
