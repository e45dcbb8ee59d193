"""What handlers may reach: the node's parts under one name, and the few questions several handlers ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from millbeck.controller.auto_creation import InternalTopic, auto_creation_request
from millbeck.controller.machine import Controller
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotController, TopicAlreadyExists, from_code
from millbeck.kernel.options import Layers
from millbeck.metadata.image import EMPTY, Endpoint, MetadataImage, PartitionRegistration
from millbeck.replication.turn import Turn
from millbeck.security.authorizer import Authorizer
from millbeck.server.cold_readers import ColdReaders
from millbeck.server.config import NodeConfig
from millbeck.server.connection import Connection
from millbeck.server.deadlines import Deadlines
from millbeck.server.fetch_sessions import FetchSessions
from millbeck.server.metadata_replies import MetadataReplies
from millbeck.server.off_loop import run_off_loop
from millbeck.server.topics import LocalTopics
from millbeck.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from millbeck.server.cleaner.service import Cleaner
    from millbeck.server.drivers.coordinator import CoordinatorDriver
    from millbeck.server.drivers.groups import GroupDriver
    from millbeck.server.drivers.quorum import QuorumDriver
    from millbeck.server.drivers.share_state import ShareStateDriver
    from millbeck.server.drivers.transactions import TransactionDriver
    from millbeck.server.forwarding import Forwarder
    from millbeck.server.inner_calls import InnerRequests
    from millbeck.server.logs import Logs
    from millbeck.server.peers import Peers
    from millbeck.server.producer_ids import ProducerIds
    from millbeck.server.replication import Replication
    from millbeck.server.share.keeper import Keeper
    from millbeck.server.share.shares import Shares
    from millbeck.server.transaction_verification import TransactionVerification

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

AUTO_CREATION_VERSION: Final = 5
CREATED_SECONDS_MAX: Final = 2.0
CREATED_POLL_SECONDS: Final = 0.01

log = logging.getLogger(__name__)


class Broker:
    """Filled by `node`; every attribute is set before the first connection is accepted.

    A node that is no broker has neither logs nor groups, one that is no controller takes no decisions: handlers of the
    other role's APIs are not in its routes.
    """

    quorum: QuorumDriver
    controller: Controller
    inner_requests: InnerRequests
    forwarder: Forwarder
    forwarded_apis: frozenset[int]
    internal_topics: Mapping[str, InternalTopic]
    groups: GroupDriver
    transactions: TransactionDriver
    verification: TransactionVerification
    peers: Peers
    share_state: ShareStateDriver
    shares: Shares
    keeper: Keeper
    producer_ids: ProducerIds
    logs: Logs
    cleaner: Cleaner
    replication: Replication

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
        self.default_texts = config.option_set.default_texts()
        self.topics = LocalTopics()
        self.metadata_replies = MetadataReplies()
        self.fetch_sessions = FetchSessions(
            config.fetch.max_incremental_fetch_session_cache_slots, environment.randomness.below
        )
        self.cold_readers = ColdReaders()
        self.unexpected_errors = 0

    @property
    def coordinators(self) -> tuple[CoordinatorDriver[Any, Any], ...]:
        """Those whose shards follow what this node leads."""
        return (self.groups, self.transactions, self.share_state)

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
        """Whom clients are told to send administrative requests to: brokers take them all, of controllers the active
        one, -1 while this node knows of none."""
        if not is_controllers:
            return self.node_id
        return self.quorum.leader.node_id

    def layers(self, image: MetadataImage, overrides: Mapping[str, str]) -> Layers:
        """Where a setting's value is looked for: what is set for a topic or group, then this node's settings."""
        return Layers(
            overrides=overrides,
            dynamic_broker=image.configs.of_broker(self.node_id),
            dynamic_default=image.configs.of_all_brokers(),
            static=self.config.texts,
            defaults=self.default_texts,
        )

    def offline_replicas(self, topic: str, index: int, partition: PartitionRegistration) -> list[int]:
        """Replicas whose broker is fenced or whose log is out of order."""
        offline = [node for node in partition.replicas if not self.image.cluster.is_active(node)]
        if self.node_id not in offline and self.node_id in partition.replicas:
            local = self.topics.by_name.get(topic)
            served = None if local is None else local.partitions.get(index)
            if served is None or served.log.is_offline:
                offline.append(self.node_id)
        return offline

    async def auto_create(
        self, names: Iterable[str], made_as: Mapping[str, InternalTopic] | None = None
    ) -> dict[str, ApiError]:
        """Create topics on first use, this node's own included; what went wrong with which.

        When another node is the active controller, the topics may be there a moment before this node knows of them.
        """
        names = list(names)
        request = auto_creation_request(names, {**self.internal_topics, **(made_as or {})})
        response = await self._create_topics(request)
        errors = {
            topic.name or "": from_code(topic.error_code, topic.error_message or "")
            for topic in response.topics
            if topic.error_code not in (0, TopicAlreadyExists.code)
        }
        await self._wait_for_topics([name for name in names if name not in errors])
        return errors

    async def _create_topics(self, request: CreateTopicsRequest) -> CreateTopicsResponse:
        if not self.forwarder.is_needed:
            try:
                return await self.quorum.submit(lambda image: self.controller.create_topics(image, request))
            except NotController:
                pass
        return await self.forwarder.ask(request, CreateTopicsResponse, AUTO_CREATION_VERSION)

    async def _wait_for_topics(self, names: Iterable[str]) -> None:
        clock = self.environment.clock
        deadline = clock.monotonic() + CREATED_SECONDS_MAX
        while any(self.image.topics.named(name) is None for name in names) and clock.monotonic() < deadline:
            await asyncio.sleep(CREATED_POLL_SECONDS)
