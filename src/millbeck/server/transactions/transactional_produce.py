"""Verify the first transactional batch of a Produce request on a partition, and map errors to the client's version."""

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
from millbeck.server.transactions.write_verification import VerificationGuard

if TYPE_CHECKING:
    from millbeck.server.broker import Broker

ABORTABLE_FROM: Final = 11
ADDS_FROM: Final = 12
"""From this version of Produce on, the first batch adds the partition to the transaction (KIP-890)."""

_NO_COORDINATOR: Final = (
    ConnectFailed,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    Disconnected,
    NotCoordinator,
    RequestTimeout,
)


def guard_for(broker: Broker, partition: Partition, batch: bytes, version: int) -> VerificationGuard | None:
    """A guard for a batch that the transaction coordinator has to verify; None for one that needs no verification."""
    if len(batch) < HEADER_SIZE or not partition.is_leader:
        return None
    header = read_header(batch)
    if not header.is_transactional:
        return None
    return broker.verification.start(
        partition, header.producer_id, header.producer_epoch, header.base_sequence, adds=version >= ADDS_FROM
    )


async def ask_about(
    broker: Broker, transactional_id: str, guards: list[VerificationGuard], version: int
) -> dict[Partition, ApiError]:
    """Ask the coordinator to verify the guarded batches; returns the partitions whose batch is rejected, with the
    error.
    """
    by_producer: dict[tuple[int, int], list[VerificationGuard]] = {}
    for guard in guards:
        by_producer.setdefault((guard.producer_id, guard.producer_epoch), []).append(guard)
    refusals: dict[Partition, ApiError] = {}
    for own in by_producer.values():
        outcomes = await broker.verification.ask(transactional_id, own)
        for guard in own:
            error = outcomes[guard.partition.name]
            if error is not None:
                refusals[guard.partition] = error_for_version(error, version)
    return refusals


def error_for_version(error: ApiError, version: int) -> ApiError:
    """Map an error to one that a producer of this version knows, so that it retries where it should."""
    if isinstance(error, _NO_COORDINATOR) or (isinstance(error, ConcurrentTransactions) and version < ADDS_FROM):
        return NotEnoughReplicas(f"the transaction coordinator is not available: {error}")
    if isinstance(error, TransactionAbortable) and version < ABORTABLE_FROM:
        return InvalidTxnState(error.message)
    return error
