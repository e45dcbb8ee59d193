"""The parts of a node that transactions reach beyond their coordinator: other brokers, and shards of other rooms."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from millbeck.server.context import NodeContext

if TYPE_CHECKING:
    from millbeck.coordinator.runtime.result import ResponseCallback, Result
    from millbeck.coordinator.runtime.shard_runner import TransactionEnd
    from millbeck.coordinator.transaction.records import TransactionRecord
    from millbeck.coordinator.transaction.shard import TransactionShard
    from millbeck.server.network.broker_connections import BrokerConnections
    from millbeck.server.transactions.write_verification import TransactionVerification

T = TypeVar("T")


class GroupMarkers(Protocol):
    """What markers need of the group coordinator."""

    def end_transaction(self, index: int, end: TransactionEnd, reply: ResponseCallback[bool]) -> None: ...


class TransactionShards(Protocol):
    """What the verification of writes needs of the transaction coordinator."""

    def partition_for(self, key: str) -> int: ...

    def write(
        self,
        key: str,
        operation: Callable[[TransactionShard], Result[TransactionRecord, T]],
        reply: ResponseCallback[T],
    ) -> None: ...


class TransactionContext(NodeContext):
    peers: BrokerConnections
    groups: GroupMarkers
    transactions: TransactionShards
    verification: TransactionVerification
