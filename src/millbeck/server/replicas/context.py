"""The parts of a node that its replicas work with: logs, compaction, replication and TLS to other brokers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from millbeck.server.context import NodeContext

if TYPE_CHECKING:
    from millbeck.kernel.ids import TopicPartition, Uuid
    from millbeck.replication.partition import Partition
    from millbeck.server.network.peer_security import NodePeers
    from millbeck.server.replicas.replica_manager import ReplicaManager
    from millbeck.storage.directory import DirectoryDeletion, LogDirectory
    from millbeck.storage.log import Log
    from millbeck.storage.retention import FileDeletion


class ReplicaLogs(Protocol):
    """The part of `log_manager.LogManager` that other components need."""

    directories: list[LogDirectory]
    interrupted_moves: dict[TopicPartition, tuple[LogDirectory, Uuid]]

    def directory_of(self, name: TopicPartition) -> LogDirectory | None: ...

    async def flush(self, partition: Partition) -> None: ...

    async def truncate(
        self,
        partition: Partition,
        offset: int,
        *,
        starts_over: bool = False,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None: ...

    def swap(self, partition: Partition, future: Log, target: LogDirectory) -> None: ...

    async def scrub(self, partition: Partition, *, pause_seconds: float) -> None: ...

    async def repair_log(self, partition: Partition) -> bool: ...

    def retry_failed_creations(self, room_bytes: int) -> None: ...

    def delete_directory_later(self, removal: DirectoryDeletion) -> None: ...

    def delete_files_later(self, removals: Sequence[FileDeletion]) -> None: ...


class LogCompaction(Protocol):
    """The part of `cleaner.service.Cleaner` that is notified before a log is changed."""

    def partition_gone(self, name: TopicPartition) -> None: ...

    def partition_moved(self, name: TopicPartition, source: LogDirectory, target: LogDirectory) -> None: ...

    async def partition_truncated(self, name: TopicPartition, offset: int) -> None: ...

    async def abort_and_pause(self, partition: Partition) -> None: ...


class ReplicationContext(NodeContext):
    logs: ReplicaLogs
    cleaner: LogCompaction
    replication: ReplicaManager
    security: NodePeers
