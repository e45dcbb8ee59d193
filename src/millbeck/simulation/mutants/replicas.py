"""Mistakes in the replication of data and in the log."""

from __future__ import annotations

from typing import Any

from millbeck.raft import leading
from millbeck.replication import log_read
from millbeck.replication.isr import IsrState
from millbeck.replication.partition import Partition
from millbeck.simulation.mutants.patching import Patch
from millbeck.storage.recovery import Recovery


def leader_acknowledges_alone(patch: Patch) -> None:
    patch.replace(IsrState, "watermark", lambda in_sync, own_offset, leader_end_offset: own_offset)


def acknowledges_before_min_isr(patch: Patch) -> None:
    patch.replace(IsrState, "is_under", lambda in_sync, min_insync_replicas: False)


def no_diverging_epoch_check(patch: Patch) -> None:
    patch.replace(log_read, "divergence", lambda *_, **__: None)
    patch.replace(leading, "divergence", lambda *_, **__: None)


def truncation_to_the_high_watermark(patch: Patch) -> None:
    """A new follower truncates to its own high watermark, as in Kafka before KIP-101."""

    def follow(partition: Partition, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        is_news = bool(before(partition, leader_id, leader_epoch, partition_epoch))
        if is_news and leader_id >= 0 and partition.high_watermark < partition.log.end_offset:
            if (job := partition.log.lowering_job(partition.high_watermark)) is not None:
                job()
            partition.log.cut_to(partition.high_watermark)
            partition.log.flush()
        return is_news

    before = patch.replace(Partition, "follow", follow)


def isr_member_that_is_behind(patch: Patch) -> None:
    def expansion(in_sync: IsrState, follower: Any, high_watermark: int, epoch_start_offset: int) -> Any:
        return before(in_sync, follower, -1, -1)

    before = patch.replace(IsrState, "expansion", expansion)


def high_watermark_over_a_stale_isr(patch: Patch) -> None:
    """The high watermark does not wait for replicas of a proposed ISR."""

    def propose(in_sync: IsrState, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> Any:
        proposal = before(in_sync, isr, leader_epoch, partition_epoch)
        in_sync.maximal = in_sync.isr
        return proposal

    before = patch.replace(IsrState, "propose", propose)
    patch.replace(IsrState, "_may_join", lambda in_sync, follower, leader_end_offset: False)


def zero_filled_hole_accepted(patch: Patch) -> None:
    """Recovery accepts a zero-filled hole after a power loss as a batch, and continues after it."""

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
