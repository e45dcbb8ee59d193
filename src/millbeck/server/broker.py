"""What handlers may reach: the node's parts under one name, and the few questions several handlers ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from millbeck.controller.auto_creation import InternalTopic, auto_creation_request
from millbeck.controller.machine import Controller
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, TopicAlreadyExists, by_code
from millbeck.metadata.image import EMPTY, Endpoint, MetadataImage, PartitionRegistration
from millbeck.replication.turn import Turn
from millbeck.security.authorizer import Authorizer
from millbeck.server.config import NodeConfig
from millbeck.server.connection import Connection
from millbeck.server.deadlines import Deadlines
from millbeck.server.fetch_sessions import FetchSessions
from millbeck.server.metadata_replies import MetadataReplies
from millbeck.server.off_loop import run_off_loop
from millbeck.server.topics import LocalTopics

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
    controller: Controller
    internal_topics: Mapping[str, InternalTopic]
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
        self.unexpected_errors = 0

    def now_ms(self) -> int:
        """The wall clock, for timestamps."""
        return self.environment.clock.wall_ms()

    async def in_thread(self, job: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Run a job off the loop, waiting for room when the threads' queue is full."""
        return await run_off_loop(self.environment.threads, job, *arguments)

    def report(self, error: Exception, where: str = "unexpected error") -> None:
        """Something raised that should not have; nothing of it reaches a client."""
        self.unexpected_errors += 1
        log.error("%s", where, exc_info=error)

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """Where this client is told to find this node: what is advertised, or else what it dialled."""
        return connection.listener.advertised or (connection.local_host, connection.local_port)

    def address_of(self, node_id: int, endpoints: Iterable[Endpoint], connection: Connection) -> tuple[str, int] | None:
        """Where this client is told to find a node: under the listener it came by. None where that node has none."""
        if node_id == self.node_id:
            return self.address_for(connection)
        name = connection.listener.address.name
        return next(((each.host, each.port) for each in endpoints if each.listener == name), None)

    def controller_id(self, is_controllers: bool) -> int:
        """Whom clients are told to send administrative requests to: brokers take them all, of controllers one."""
        return self.node_id

    def offline_replicas(self, topic: str, index: int, partition: PartitionRegistration) -> list[int]:
        """Replicas whose broker is fenced or whose log is out of order."""
        offline = [node for node in partition.replicas if not self.image.cluster.is_active(node)]
        if self.node_id not in offline and self.node_id in partition.replicas:
            local = self.topics.by_name.get(topic)
            served = None if local is None else local.partitions.get(index)
            if served is None or served.log.is_offline:
                offline.append(self.node_id)
        return offline

    async def auto_create(self, names: Iterable[str]) -> dict[str, ApiError]:
        """Create topics on first use, this node's own included; what went wrong with which."""
        request = auto_creation_request(names, self.internal_topics)
        response = await self.quorum.submit(lambda image: self.controller.create_topics(image, request))
        return {
            topic.name or "": by_code[topic.error_code](topic.error_message or "")
            for topic in response.topics
            if topic.error_code not in (0, TopicAlreadyExists.code)
        }
