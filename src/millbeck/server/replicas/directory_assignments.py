"""Tells the controller in which log directory each replica of this node is (AssignReplicasToDirs, KIP-858).

All that changes while a request is out goes with the next one; of two assignments of a replica the later counts. What
gets no answer is sent again, later and later. A replica that the controller does not know any more is dropped.
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
from millbeck.wire.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsDirectory,
    AssignReplicasToDirsPartition,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsTopic,
)

ASSIGNMENTS_MAX: Final = 2250
"""In one request, as Kafka has it."""
RETRY_MS_MIN: Final = 100
RETRY_MS_MAX: Final = 10_000

Send = Callable[[AssignReplicasToDirsRequest], Awaitable[AssignReplicasToDirsResponse]]
"""Carries a request to the active controller; raises ApiError when there was no answer."""

_GONE: Final = (UnknownTopicId.code, UnknownTopicOrPartition.code, NotLeaderOrFollower.code)

log = logging.getLogger(__name__)


class Replica(NamedTuple):
    topic_id: Uuid
    partition_index: int


class Assignment(NamedTuple):
    directory: Uuid
    done: Callable[[], None] | None
    """Called once the controller has it."""


class DirectoryAssignments:
    def __init__(
        self,
        send: Send,
        *,
        node_id: int,
        broker_epoch: Callable[[], int],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._send = send
        self._node_id = node_id
        self._broker_epoch = broker_epoch
        self._spawn = spawn
        self._wanted: dict[Replica, Assignment] = {}
        self._is_sending = False

    def assign(self, replica: Replica, directory: Uuid, done: Callable[[], None] | None = None) -> None:
        self._wanted[replica] = Assignment(directory, done)
        if not self._is_sending:
            self._is_sending = True
            self._spawn(self._send_all())

    @property
    def waiting_count(self) -> int:
        return len(self._wanted)

    async def _send_all(self) -> None:
        retry_ms = RETRY_MS_MIN
        try:
            while self._wanted:
                batch = dict(list(self._wanted.items())[:ASSIGNMENTS_MAX])
                try:
                    response = await self._send(self._request(batch))
                    if response.error_code:
                        raise from_code(response.error_code)
                    is_complete = self._answered(batch, response)
                except ApiError as error:
                    log.info("the controller has not taken %d assignments to directories: %s", len(batch), error)
                    is_complete = False
                if is_complete:
                    retry_ms = RETRY_MS_MIN
                else:
                    await asyncio.sleep(retry_ms / 1000)
                    retry_ms = min(retry_ms * 2, RETRY_MS_MAX)
        finally:
            self._is_sending = False

    def _request(self, batch: dict[Replica, Assignment]) -> AssignReplicasToDirsRequest:
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

    def _answered(self, batch: dict[Replica, Assignment], response: AssignReplicasToDirsResponse) -> bool:
        """Forget what was taken; False when some are to be sent again."""
        codes = {
            Replica(topic.topic_id, result.partition_index): result.error_code
            for directory in response.directories
            for topic in directory.topics
            for result in topic.partitions
        }
        is_complete = True
        for replica, assignment in batch.items():
            code = codes.get(replica, -1)
            if code != 0 and code not in _GONE:
                is_complete = False
                continue
            if self._wanted.get(replica) is assignment:
                del self._wanted[replica]
            if code == 0 and assignment.done is not None:
                assignment.done()
        return is_complete
