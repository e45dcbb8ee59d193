"""Write a transaction marker to a partition that this node leads.

The marker also applies or discards the offsets that the transaction committed for a group, so markers for partitions of
``__consumer_offsets`` are written through the group coordinator's shards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import TransactionEnd
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
from millbeck.records.validation import ValidatedBatch
from millbeck.replication.partition_appends import CallbackAppend
from millbeck.storage.producer_state import AppendOrigin

if TYPE_CHECKING:
    from millbeck.server.transactions.context import TransactionContext

NO_APPEND_TIME: Final = -1


def write_marker(
    broker: TransactionContext, name: TopicPartition, end: TransactionEnd, reply: ResponseCallback[bool]
) -> None:
    """Write a marker; ``reply`` gets True once it is committed, or the error of the append."""
    try:
        partition = broker.topics.led_partition(name.topic, name.partition)
        broker.verification.end(partition, end)
        if name.topic == CONSUMER_OFFSETS_TOPIC:
            broker.groups.end_transaction(
                name.partition, end, ResponseCallback(reply.reply, lambda error: reply.fail(_as_leader(error)))
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
            ValidatedBatch(data, header, header.max_timestamp, 1, NO_APPEND_TIME),
            CallbackAppend(lambda error: reply.reply(True) if error is None else reply.fail(error)),
            now_ms=now_ms,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=end.transaction_version,
        )
    except ApiError as error:
        reply.fail(error.with_traceback(None))


def _as_leader(error: ApiError) -> ApiError:
    """Map coordinator errors to NOT_LEADER_OR_FOLLOWER: the sender of markers handles only partition errors."""
    if isinstance(error, (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)):
        return NotLeaderOrFollower(f"the group coordinator of this partition is not available on this broker: {error}")
    return error
