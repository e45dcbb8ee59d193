"""Report the log directory of each local replica to the controller (AssignReplicasToDirs, KIP-858).

Assignments made while a request is in flight are batched into the next one; a later assignment of a replica replaces
an earlier one. Failed requests are retried with exponential backoff. A replica that the controller no longer knows is
dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple

from millbeck.kernel.errors import (
    ApiError,
    NotLeaderOrFollower,
    UnknownTopicId,
    UnknownTopicOrPartition,
    from_code,
)
from millbeck.kernel.ids import Uuid
from millbeck.kernel.isolation import Isolation
from millbeck.wire.messages.replicas import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopic,
)

ASSIGNMENTS_MAX: Final = 2250
"""The maximum number of assignments per request, the same as in Kafka."""
RETRY_MS_MIN: Final = 100
RETRY_MS_MAX: Final = 10_000

Send = Callable[[AssignReplicasToDirsRequest], Awaitable[AssignReplicasToDirsResponse]]
"""Sends a request to the active controller; raises ApiError when there was no response."""

_GONE: Final = (UnknownTopicId.code, UnknownTopicOrPartition.code, NotLeaderOrFollower.code)

log = logging.getLogger(__name__)


class TopicIdPartition(NamedTuple):
    topic_id: Uuid
    partition_index: int


class DirectoryAssignment(NamedTuple):
    directory: Uuid
    done: Callable[[], None] | None
    """Called once the controller has accepted the assignment."""


class DirectoryAssignments:
    def __init__(
        self,
        send: Send,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        isolation: Isolation | None = None,
    ) -> None:
        self._send = send
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._spawn = spawn
        self._isolation = isolation or Isolation()
        self._pending: dict[TopicIdPartition, DirectoryAssignment] = {}
        self._is_sending = False

    def assign(self, replica: TopicIdPartition, directory: Uuid, done: Callable[[], None] | None = None) -> None:
        self._pending[replica] = DirectoryAssignment(directory, done)
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send_all())

    @property
    def waiting_count(self) -> int:
        return len(self._pending)

    async def _send_all(self) -> None:
        retry_ms = RETRY_MS_MIN
        try:
            while self._pending:
                batch = dict(list(self._pending.items())[:ASSIGNMENTS_MAX])
                try:
                    response = await self._send(self._request(batch))
                    if response.error_code:
                        raise from_code(response.error_code)
                    is_complete = self._answered(batch, response)
                except Exception as error:
                    if not isinstance(error, ApiError):
                        self._isolation.failed("AssignReplicasToDirs", error)
                    log.info("the controller did not accept %d directory assignments: %s", len(batch), error)
                    is_complete = False
                if is_complete:
                    retry_ms = RETRY_MS_MIN
                else:
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = min(retry_ms * 2, RETRY_MS_MAX)
        finally:
            self._is_sending = False

    def _request(self, batch: dict[TopicIdPartition, DirectoryAssignment]) -> AssignReplicasToDirsRequest:
        directories: dict[Uuid, dict[Uuid, AssignReplicasToDirsTopic]] = {}
        for replica, assignment in batch.items():
            topics = directories.setdefault(assignment.directory, {})
            topic = topics.get(replica.topic_id)
            if topic is None:
                topic = topics[replica.topic_id] = AssignReplicasToDirsTopic(topic_id=replica.topic_id)
            topic.partitions.append(AssignReplicasToDirsPartition(partition_index=replica.partition_index))
        return AssignReplicasToDirsRequest(
            broker_id=self._node_id,
            broker_epoch=self._broker_epoch(),
            directories=[
                AssignReplicasToDirsDirectory(id=directory, topics=list(topics.values()))
                for directory, topics in directories.items()
            ],
        )

    def _answered(
        self, batch: dict[TopicIdPartition, DirectoryAssignment], response: AssignReplicasToDirsResponse
    ) -> bool:
        """Drop the assignments that the controller accepted; False when some have to be sent again."""
        codes = {
            TopicIdPartition(topic.topic_id, result.partition_index): result.error_code
            for directory in response.directories
            for topic in directory.topics
            for result in topic.partitions
        }
        is_complete = True
        for replica, assignment in batch.items():
            code = codes.get(replica, -1)
            if code != 0 and code not in _GONE:
                is_complete = False
                if self._pending.get(replica) is assignment:
                    # Move it to the end of the queue: the others may be accepted.
                    self._pending[replica] = self._pending.pop(replica)
                continue
            if self._pending.get(replica) is assignment:
                del self._pending[replica]
            if code == 0 and assignment.done is not None:
                self._isolation.run(("directory of", replica), assignment.done)
        return is_complete
