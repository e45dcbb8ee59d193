"""Read one partition for a fetch: its offsets, where the reader's log diverges, and its records.

How far a reader may read depends on its isolation, as in Kafka: a follower reads up to the log end, a consumer up to
the high watermark, or with read_committed up to the last stable offset.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import NotLeaderOrFollower
from millbeck.replication.divergence import EpochEnd, divergence
from millbeck.replication.partition import Partition
from millbeck.storage.reading import LogSlice

LOG_END: Final = 0
HIGH_WATERMARK: Final = 1
TXN_COMMITTED: Final = 2


class FetchPosition:
    """The position of a reader in a partition, from its fetch request."""

    __slots__ = ("current_leader_epoch", "fetch_offset", "last_fetched_epoch")

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int


class LogRead:
    """The result of a read: the partition's offsets at that time and a leased slice of the log."""

    __slots__ = ("diverging_epoch", "end_offset", "high_watermark", "last_stable_offset", "log_start_offset", "slice")

    def __init__(self, high_watermark: int, log_start_offset: int) -> None:
        self.high_watermark = high_watermark
        self.last_stable_offset = -1
        self.log_start_offset = log_start_offset
        self.end_offset = -1
        """The offset that this reader may read up to, -1 when it is not known."""
        self.diverging_epoch: EpochEnd | None = None
        self.slice: LogSlice | None = None


def read_partition(
    partition: Partition,
    position: FetchPosition,
    isolation: int,
    *,
    size_bytes_max: int,
    must_lead: bool,
    at_least_one: bool,
    nowait: bool,
) -> LogRead:
    """Read whole batches from the position on; with a negative ``size_bytes_max`` only the offsets are returned.

    Raises the errors of a wrong leader epoch, of an offset outside the log, and of a log that is offline; with
    ``must_lead`` NOT_LEADER_OR_FOLLOWER for a follower's partition. With ``nowait`` it never blocks on the disk:
    `ColdRead` has the job that loads the data needed by the lookup.
    """
    partition.check_leader_epoch(position.current_leader_epoch)
    if must_lead and not partition.is_leader:
        raise NotLeaderOrFollower
    log = partition.log
    high_watermark = partition.high_watermark
    info = LogRead(high_watermark, log.log_start_offset)
    info.last_stable_offset = last_stable_offset = log.last_stable_offset(high_watermark)
    if isolation == LOG_END:
        end_offset = log.end_offset
    else:
        end_offset = last_stable_offset if isolation == TXN_COMMITTED else high_watermark
    info.end_offset = end_offset
    if position.last_fetched_epoch >= 0:
        info.diverging_epoch = divergence(log, position.fetch_offset, position.last_fetched_epoch)
        if info.diverging_epoch is not None:
            return info
    if size_bytes_max >= 0:
        info.slice = log.read(
            position.fetch_offset,
            size_bytes_max=size_bytes_max,
            upto_offset=end_offset,
            at_least_one=at_least_one,
            nowait=nowait,
        )
    return info
