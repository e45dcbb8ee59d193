"""What Produce asks before the first batch of a transaction on a partition, and how a refusal is told to the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.kernel.errors import (
    ApiError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    TransactionAbortable,
)
from millbeck.records.batch import HEADER_SIZE, read_header
from millbeck.replication.partition import Partition
from millbeck.server.transaction_verification import Guard

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

ABORTABLE_FROM: Final = 11
ADDS_FROM: Final = 12
"""From this version of Produce on a partition joins its transaction with the first batch."""

_NO_COORDINATOR: Final = (
    ConnectFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    Disconnected,
    NotCoordinator,
    RequestTimeout,
)


def guard_for(broker: Broker, partition: Partition, batch: bytes, version: int) -> Guard | None:
    """A guard for a batch that the coordinator is to be asked about; None for one that needs no asking."""
    if len(batch) < HEADER_SIZE or not partition.is_leader:
        return None
    header = read_header(batch)
    if not header.is_transactional:
        return None
    return broker.verification.start(
        partition, header.producer_id, header.producer_epoch, header.base_sequence, adds=version >= ADDS_FROM
    )


async def ask_about(
    broker: Broker, transactional_id: str, guards: list[Guard], version: int
) -> dict[Partition, ApiError]:
    """The partitions whose batches are refused, and why."""
    by_producer: dict[tuple[int, int], list[Guard]] = {}
    for guard in guards:
        by_producer.setdefault((guard.producer_id, guard.producer_epoch), []).append(guard)
    refusals: dict[Partition, ApiError] = {}
    for own in by_producer.values():
        outcomes = await broker.verification.ask(transactional_id, own)
        for guard in own:
            error = outcomes[guard.partition.name]
            if error is not None:
                refusals[guard.partition] = told(error, version)
    return refusals


def told(error: ApiError, version: int) -> ApiError:
    """What a producer of this version can make something of: one that should try again hears what it knows."""
    if isinstance(error, _NO_COORDINATOR) or (isinstance(error, ConcurrentTransactions) and version < ADDS_FROM):
        return NotEnoughReplicas(f"the transaction's coordinator cannot be asked now: {error}")
    if isinstance(error, TransactionAbortable) and version < ABORTABLE_FROM:
        return InvalidTxnState(error.message)
    return error
