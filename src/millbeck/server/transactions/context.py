"""The context of transactions: connections to other brokers, and shards of the group and transaction coordinators."""

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
    """The part of the group coordinator that markers need."""

    def end_transaction(self, index: int, end: TransactionEnd, reply: ResponseCallback[bool]) -> None: ...


class TransactionShards(Protocol):
    """The part of the transaction coordinator that the verification of writes needs."""

    def partition_for(self, key: str) -> int: ...

    def write(
        self,
        key: str,
        operation: Callable[[TransactionShard], Result[TransactionRecord, T]],
        reply: ResponseCallback[T],
    ) -> None: ...

    def read(self, key: str, operation: Callable[[TransactionShard, int], T], reply: ResponseCallback[T]) -> None: ...


class TransactionContext(NodeContext):
    peers: BrokerConnections
    groups: GroupMarkers
    transactions: TransactionShards
    verification: TransactionVerification
