"""Writing one transaction's marker into one partition that this node leads.

What a transaction has committed for a group is applied or dropped with the marker, so the partitions of
``__consumer_offsets`` are written through their shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.coordinator.runtime.host import TransactionEnd
from millbeck.coordinator.runtime.result import Reply
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    NotLeaderOrFollower,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.records import batch, control
from millbeck.records.validation import Validated
from millbeck.storage.producer_state import Origin

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

NO_APPEND_TIME: Final = -1


def write_marker(broker: Broker, name: TopicPartition, end: TransactionEnd, reply: Reply[bool]) -> None:
    """``reply`` gets True once the marker is committed, or the log's error."""
    try:
        partition = broker.topics.led_partition(name.topic, name.partition)
        broker.verification.end(partition, end)
        if name.topic == CONSUMER_OFFSETS_TOPIC:
            broker.groups.end_transaction(
                name.partition, end, Reply(reply.reply, lambda error: reply.fail(_as_leader(error)))
            )
            return
        now_ms = broker.now_ms()
        data = control.marker_batch(
            control.EndTransaction(committed=end.is_committed, coordinator_epoch=end.coordinator_epoch),
            producer_id=end.producer_id,
            producer_epoch=end.producer_epoch,
            timestamp=now_ms,
        )
        header = batch.read_header(data)
        partition.append(
            Validated(data, header, header.max_timestamp, 1, NO_APPEND_TIME),
            wants_all=True,
            now_ms=now_ms,
            settle=lambda error: reply.reply(True) if error is None else reply.fail(error),
            origin=Origin.COORDINATOR,
            transaction_version=end.transaction_version,
        )
    except ApiError as error:
        reply.fail(error.with_traceback(None))


def _as_leader(error: ApiError) -> ApiError:
    """Whoever sends markers knows partitions and their leaders, not what coordinates what."""
    if isinstance(error, (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)):
        return NotLeaderOrFollower(f"the partition's groups are not served here now: {error}")
    return error
