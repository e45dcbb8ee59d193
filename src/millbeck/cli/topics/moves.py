"""Moves of partitions between brokers: the proposed replicas, and how far a move is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.admin.results import Reassignment

WAIT_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyProgress:
    """Bytes copied to the added replicas, and bytes to copy in all."""

    done_bytes: int
    total_bytes: int

    def __str__(self) -> str:
        share = 100 * self.done_bytes // self.total_bytes if self.total_bytes else 100
        return f"{self.done_bytes / 1e6:.1f} of {self.total_bytes / 1e6:.1f} MB copied ({share} %)"


def proposal(
    current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None]
) -> dict[TopicPartition, tuple[int, ...]]:
    """Propose as many replicas as before: leaders round robin, and racks without a replica first."""
    brokers = sorted(racks)
    proposed: dict[TopicPartition, tuple[int, ...]] = {}
    for turn, partition in enumerate(sorted(current)):
        count = len(current[partition])
        if count > len(brokers):
            raise click.ClickException(
                f"{partition.topic}-{partition.partition} has {count} replicas, and --broker-list names {len(brokers)}"
            )
        first = turn % len(brokers)
        # Shift the followers by one more broker each round, so that leaders do not always have the same followers.
        shift = turn // len(brokers)
        rest = [*brokers[first + 1 :], *brokers[:first]]
        rest = rest[shift % len(rest) :] + rest[: shift % len(rest)] if rest else rest
        chosen = [brokers[first]]
        while len(chosen) < count:
            used = [racks[broker] for broker in chosen if racks[broker] is not None]
            left = [broker for broker in rest if broker not in chosen]
            chosen.append(next((broker for broker in left if racks[broker] not in used), left[0]))
        proposed[partition] = tuple(chosen)
    return proposed


def progress(
    partition: TopicPartition,
    wanted: Sequence[int],
    current: Mapping[TopicPartition, Sequence[int]],
    moving: Mapping[TopicPartition, Reassignment],
    copy: CopyProgress | None = None,
) -> str:
    """The state of a partition's move in words."""
    if partition in moving:
        how_much = "" if copy is None else f", {copy}"
        return f"still moving, adding {ids_text(moving[partition].adding)}{how_much}"
    if partition not in current:
        return "no such partition"
    if tuple(current[partition]) == tuple(wanted):
        return "done"
    return f"not moving: it has replicas {ids_text(current[partition])} instead of {ids_text(wanted)}"


def move_state(
    partition: TopicPartition,
    wanted: Sequence[int],
    current: Mapping[TopicPartition, Sequence[int]],
    moving: Mapping[TopicPartition, Reassignment],
    copy: CopyProgress | None = None,
) -> dict[str, object]:
    """The state of a partition's move for programs."""
    is_done = tuple(current.get(partition, ())) == tuple(wanted)
    state = "missing" if partition not in current else "done" if is_done else "not moving"
    row: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "state": "moving" if partition in moving else state,
        "replicas": list(current.get(partition, ())),
        "wanted": list(wanted),
    }
    if partition in moving:
        row["adding"] = list(moving[partition].adding)
    if copy is not None:
        row |= {"copied_bytes": copy.done_bytes, "total_bytes": copy.total_bytes}
    return row


async def copy_progress(
    admin: Admin, moving: Mapping[TopicPartition, Reassignment]
) -> dict[TopicPartition, CopyProgress]:
    """Bytes copied to the replicas being added, by log size; brokers that do not answer count as 0 bytes."""
    found = (await admin.describe_log_dirs()).succeeded
    sizes = {
        (broker, replica.partition): replica.size_bytes
        for broker, directories in found.items()
        for directory in directories
        for replica in directory.replicas
        if not replica.is_future
    }
    return {partition: copy_of(partition, move, sizes) for partition, move in moving.items()}


def copy_of(
    partition: TopicPartition, move: Reassignment, sizes: Mapping[tuple[int, TopicPartition], int]
) -> CopyProgress:
    whole = max((sizes.get((broker, partition), 0) for broker in move.replicas), default=0)
    there = [min(sizes.get((broker, partition), 0), whole) for broker in move.adding]
    return CopyProgress(done_bytes=sum(there), total_bytes=whole * len(there))


def sum_of(copies: Iterable[CopyProgress]) -> CopyProgress:
    each = list(copies)
    return CopyProgress(
        done_bytes=sum(one.done_bytes for one in each), total_bytes=sum(one.total_bytes for one in each)
    )


async def wait_until_moved(admin: Admin, partitions: Sequence[TopicPartition]) -> None:
    import asyncio

    from millbeck.cli.progress import progress as shown_while

    left, sofar = 0, CopyProgress(done_bytes=0, total_bytes=0)
    async with shown_while(lambda seconds: f"{left} of {len(partitions)} partitions still moving, {sofar}"):
        while moving := await admin.list_reassignments(partitions):
            left, sofar = len(moving), sum_of((await copy_progress(admin, moving)).values())
            await asyncio.sleep(WAIT_SECONDS)


def ids_text(replicas: Sequence[int]) -> str:
    return ",".join(map(str, replicas)) or "none"


def move_rows(moving: Mapping[TopicPartition, Reassignment]) -> list[dict[str, object]]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
        }
        for partition, move in sorted(moving.items())
    ]
