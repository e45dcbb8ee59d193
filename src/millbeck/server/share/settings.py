"""The effective configuration of a share group: group configs over broker configs, clamped to the broker's limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millbeck.client.consumer.config import duration_ms
from millbeck.coordinator.group.share.context import MembershipSettings
from millbeck.metadata.features import DEAD_LETTERS_FROM, SHARE_VERSION
from millbeck.metadata.image import ResourceType
from millbeck.replication.partition import Partition
from millbeck.server.config.sections.groups import ShareGroupOptions
from millbeck.server.config.sections.share_groups import ShareDeliveryOptions
from millbeck.storage.segment import ColdRead

if TYPE_CHECKING:
    from millbeck.server.context import NodeContext

READ_COMMITTED: Final = "read_committed"
WARMINGS_MAX: Final = 8


@dataclass(frozen=True, slots=True)
class AutoOffsetReset:
    """``share.auto.offset.reset``: the start offset of a group in a partition that it has never read."""

    text: str

    async def offset_in(self, broker: NodeContext, partition: Partition) -> int:
        match self.text.lower():
            case "earliest":
                return partition.log.log_start_offset
            case "latest":
                return partition.high_watermark
        timestamp = broker.now_ms() - (duration_ms(self.text) or 0)
        for warming in range(WARMINGS_MAX + 1):
            try:
                found = partition.log.offset_for_timestamp(
                    timestamp, upto_offset=partition.high_watermark, nowait=warming < WARMINGS_MAX
                )
            except ColdRead as cold:
                job, release = cold.job, cold.release
            else:
                return partition.high_watermark if found is None else found.offset
            try:
                await broker.in_thread(job)
            finally:
                release()
        raise AssertionError("the last attempt reads with nowait=False and cannot raise ColdRead")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupSettings:
    lock_duration_ms: int
    delivery_count_limit: int
    record_locks_max: int
    is_read_committed: bool
    is_renewing_enabled: bool
    reset: AutoOffsetReset
    dead_letter_topic: str
    """The group's DLQ topic; empty when it has none."""
    copies_dead_letters: bool


def settings_of(broker: NodeContext, group_id: str) -> ShareGroupSettings:
    layers = broker.layers(broker.image, broker.image.configs.of_group(group_id))
    group = ShareGroupOptions.resolve(layers)
    bounds = ShareDeliveryOptions.resolve(broker.layers(broker.image, {}))
    has_dead_letters = broker.image.features.level(SHARE_VERSION) >= DEAD_LETTERS_FROM
    return ShareGroupSettings(
        lock_duration_ms=_within(
            group.record_lock_duration_ms, bounds.record_lock_duration_ms_min, bounds.record_lock_duration_ms_max
        ),
        delivery_count_limit=_within(
            group.delivery_count_limit, bounds.delivery_count_limit_min, bounds.delivery_count_limit_max
        ),
        record_locks_max=_within(
            group.partition_record_locks_max,
            bounds.partition_record_locks_max_min,
            bounds.partition_record_locks_max_max,
        ),
        is_read_committed=group.isolation_level.lower() == READ_COMMITTED,
        is_renewing_enabled=group.renew_acknowledge_enable,
        reset=AutoOffsetReset(group.auto_offset_reset),
        dead_letter_topic=group.dead_letter_topic if has_dead_letters else "",
        copies_dead_letters=group.dead_letters_copy,
    )


def membership_settings(broker: NodeContext) -> dict[str, MembershipSettings]:
    """The membership settings of the groups that have group configs."""
    bounds = broker.config.share_groups
    found = {}
    for group_id in broker.image.configs.names(ResourceType.GROUP):
        group = ShareGroupOptions.resolve(broker.layers(broker.image, broker.image.configs.of_group(group_id)))
        found[group_id] = MembershipSettings(
            session_timeout_ms=_within(
                group.session_timeout_ms, bounds.session_timeout_ms_min, bounds.session_timeout_ms_max
            ),
            heartbeat_interval_ms=_within(
                group.heartbeat_interval_ms, bounds.heartbeat_interval_ms_min, bounds.heartbeat_interval_ms_max
            ),
            assignment_interval_ms=_within(
                group.assignment_interval_ms, bounds.assignment_interval_ms_min, bounds.assignment_interval_ms_max
            ),
        )
    return found


def _within(value: int, least: int, most: int) -> int:
    return max(least, min(value, most))
