"""What handlers may reach: the node's parts under one name, and the few questions several handlers ask."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.metadata.image import EMPTY, MetadataImage, PartitionRegistration
from millbeck.replication.turn import Turn
from millbeck.security.authorizer import Authorizer
from millbeck.server.config import NodeConfig
from millbeck.server.connection import Connection
from millbeck.server.deadlines import Deadlines
from millbeck.server.fetch_sessions import FetchSessions
from millbeck.server.metadata_replies import MetadataReplies
from millbeck.server.topics import LocalTopics
from millbeck.wire.messages.api_versions import ApiVersion

if TYPE_CHECKING:
    from millbeck.server.drivers.groups import GroupDriver
    from millbeck.server.drivers.quorum import QuorumDriver
    from millbeck.server.logs import Logs
    from millbeck.server.producer_ids import ProducerIds

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

log = logging.getLogger(__name__)


class Broker:
    """Filled by `node`; every attribute is set before the first connection is accepted."""

    quorum: QuorumDriver
    groups: GroupDriver
    producer_ids: ProducerIds
    logs: Logs

    def __init__(
        self,
        environment: Environment,
        config: NodeConfig,
        *,
        turn: Turn,
        deadlines: Deadlines,
        authorizer: Authorizer,
        node_id: int,
        cluster_id: str,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self.environment = environment
        self.config = config
        self.turn = turn
        self.deadlines = deadlines
        self.authorizer = authorizer
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.spawn = spawn
        self.image: MetadataImage = EMPTY
        self.topics = LocalTopics()
        self.metadata_replies = MetadataReplies()
        self.fetch_sessions = FetchSessions(
            config.fetch.max_incremental_fetch_session_cache_slots, environment.randomness.below
        )
        self.served: list[ApiVersion] = []
        self.unexpected_errors = 0

    def now_ms(self) -> int:
        """The wall clock, for timestamps."""
        return self.environment.clock.wall_ms()

    def in_thread(self, job: Callable[[*Ts], T], *arguments: *Ts) -> Awaitable[T]:
        return self.environment.threads.run(job, *arguments)

    def report(self, error: Exception) -> None:
        """Something raised that should not have; nothing of it reaches a client."""
        self.unexpected_errors += 1
        log.error("unexpected error", exc_info=error)

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """Where this client is told to find this node: what is advertised, or else what it dialled."""
        return connection.listener.advertised or (connection.local_host, connection.local_port)

    def offline_replicas(self, topic: str, index: int, partition: PartitionRegistration) -> list[int]:
        """Replicas whose broker is fenced or whose log is out of order."""
        offline = [node for node in partition.replicas if not self.image.cluster.is_active(node)]
        if self.node_id not in offline and self.node_id in partition.replicas:
            local = self.topics.by_name.get(topic)
            served = None if local is None else local.partitions.get(index)
            if served is None or served.log.is_offline:
                offline.append(self.node_id)
        return offline

    async def auto_create(self, names: list[str]) -> dict[str, ApiError]:
        """Create topics that a client asked for by name; what went wrong with which."""
        return await self.logs.auto_create(names)
