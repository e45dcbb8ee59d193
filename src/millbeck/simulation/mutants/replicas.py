"""Mistakes in the replication of data, and in the log under it."""

from __future__ import annotations

from typing import Any

from millbeck.raft import leading
from millbeck.replication.in_sync import InSync
from millbeck.replication.partition import Partition
from millbeck.server.handlers.fetch import fetching
from millbeck.storage.recovery import Recovery
from millbeck.testing.mutants.patching import Patch


def leader_acknowledges_alone(patch: Patch) -> None:
    patch.replace(InSync, "watermark", lambda in_sync, own_offset, leader_end_offset: own_offset)


def acknowledges_before_min_isr(patch: Patch) -> None:
    patch.replace(InSync, "is_under", lambda in_sync, min_insync_replicas: False)


def no_diverging_epoch_check(patch: Patch) -> None:
    patch.replace(fetching, "divergence", lambda *_, **__: None)
    patch.replace(leading, "divergence", lambda *_, **__: None)


def truncation_to_the_high_watermark(patch: Patch) -> None:
    """As Kafka did before KIP-101: a new follower cuts what it does not know to be committed."""

    def follow(partition: Partition, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        is_news = bool(before(partition, leader_id, leader_epoch, partition_epoch))
        if is_news and leader_id >= 0 and partition.high_watermark < partition.log.end_offset:
            partition.log.truncate_to(partition.high_watermark)
        return is_news

    before = patch.replace(Partition, "follow", follow)


def isr_member_that_is_behind(patch: Patch) -> None:
    def expansion(in_sync: InSync, follower: Any, high_watermark: int, epoch_start_offset: int) -> Any:
        return before(in_sync, follower, -1, -1)

    before = patch.replace(InSync, "expansion", expansion)


def high_watermark_over_a_stale_isr(patch: Patch) -> None:
    """Whoever comes into the ISR is not waited for before the answer says that it has."""

    def propose(in_sync: InSync, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> Any:
        proposal = before(in_sync, isr, leader_epoch, partition_epoch)
        in_sync.maximal = in_sync.isr
        return proposal

    before = patch.replace(InSync, "propose", propose)
    patch.replace(InSync, "_may_join", lambda in_sync, follower, leader_end_offset: False)


def zero_filled_hole_accepted(patch: Patch) -> None:
    """Recovery takes a hole that a power cut has left for a batch, and reads on behind it."""

    def read(recovery: Recovery, index: int) -> Any:
        position, problem = before(recovery, index)
        segment = recovery.segments[index]
        rest = bytes(segment.read_bytes(segment.size - position, position)) if problem is not None else b""
        if rest and not rest.strip(b"\0"):
            recovery.end_offset += 1
            return segment.size, None
        return position, problem

    before = patch.replace(Recovery, "_read", read)


def producer_state_not_rebuilt(patch: Patch) -> None:
    def lead(partition: Partition, *arguments: Any, **options: Any) -> bool:
        is_new = bool(before(partition, *arguments, **options))
        if is_new:
            partition.log.producer_state.clear()
        return is_new

    before = patch.replace(Partition, "lead", lead)
