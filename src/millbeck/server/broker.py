"""The context of request handlers: the components of the node, and queries that several handlers need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar, TypeVarTuple

from millbeck.controller.auto_creation import InternalTopic, auto_creation_request
from millbeck.controller.machine import Controller
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, NotController, RequestTimedOut, TopicAlreadyExists, from_code
from millbeck.kernel.event_batch import EventBatch
from millbeck.metadata.image import Endpoint, PartitionRegistration
from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.security.authorizer import Authorizer
from millbeck.server.config import NodeConfig
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.fetch.cold_readers import ColdReaders
from millbeck.server.fetch.sessions import FetchSessions
from millbeck.server.loop.deadlines import Deadlines
from millbeck.server.metadata.auto_creation import SECONDS_MAX, AutoCreation
from millbeck.server.metadata.reply_cache import MetadataReplies
from millbeck.server.network.authorization import Authorization
from millbeck.server.network.connection import Connection
from millbeck.server.quotas.client_quotas import ClientQuotas
from millbeck.server.quotas.limits import QuotaCallback
from millbeck.server.replicas.context import ReplicationContext
from millbeck.server.seams import load_seam
from millbeck.server.share.context import ShareContext
from millbeck.server.transactions.context import TransactionContext
from millbeck.wire.messages.topics import CreateTopicsRequest, CreateTopicsResponse

if TYPE_CHECKING:
    from millbeck.server.cleaner.service import Cleaner
    from millbeck.server.coordinators.coordinator import CoordinatorDriver
    from millbeck.server.coordinators.group_coordinator import GroupDriver
    from millbeck.server.coordinators.producer_ids import ProducerIds
    from millbeck.server.coordinators.transaction_coordinator import TransactionDriver
    from millbeck.server.metadata.quorum_driver import QuorumDriver
    from millbeck.server.network.inner_calls import LocalRequests
    from millbeck.server.network.node_tls import NodeTls
    from millbeck.server.replicas.log_manager import LogManager
    from millbeck.server.requests.forwarding import Forwarder
    from millbeck.server.requests.revocation import Revocation
    from millbeck.server.schemas.validation import SchemaValidation
    from millbeck.server.share.share_partition_manager import SharePartitionManager
    from millbeck.server.share.state_initializer import ShareStateInitializer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CREATED_SECONDS_MAX: Final = 2.0
CREATED_POLL_SECONDS: Final = 0.01

_QUOTA_CALLBACK: Final = QuotaOptions.client_quota_callback_class.name

log = logging.getLogger(__name__)


class Broker(ReplicationContext, TransactionContext, ShareContext):
    """The components of a node. `node` sets every attribute before the first connection is accepted.

    A node without the broker role has no logs and no groups, one without the controller role makes no decisions; the
    APIs of the missing role are not in its routes.
    """

    quorum: QuorumDriver
    controller: Controller
    inner_requests: LocalRequests
    forwarder: Forwarder
    forwarded_apis: frozenset[int]
    internal_topics: Mapping[str, InternalTopic]
    groups: GroupDriver
    transactions: TransactionDriver
    shares: SharePartitionManager
    state_initializer: ShareStateInitializer
    producer_ids: ProducerIds
    logs: LogManager
    schemas: SchemaValidation
    cleaner: Cleaner
    tls: NodeTls

    def __init__(
        self,
        environment: Environment,
        config: NodeConfig,
        *,
        turn: EventBatch,
        deadlines: Deadlines,
        authorizer: Authorizer,
        node_id: int,
        cluster_id: str,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        super().__init__(
            environment,
            config,
            turn=turn,
            deadlines=deadlines,
            authorizer=authorizer,
            node_id=node_id,
            cluster_id=cluster_id,
            spawn=spawn,
        )
        self.decisions = Authorization(self, is_dry_run=config.authorizer.authorizer_dry_run)
        self.quotas: ClientQuotas | None = None
        """The client quotas; None while none is set."""
        self.all_quotas = ClientQuotas(
            config.quotas, deadlines, self._quota_callback(), partial(self.seam_failed, _QUOTA_CALLBACK)
        )
        self.metadata_replies = MetadataReplies()
        self.revocation: Revocation | None = None
        """Ends the sessions of deleted users, if ``millbeck.disconnect.on.revoke`` is set."""
        self.fetch_sessions = FetchSessions(
            config.fetch.max_incremental_fetch_session_cache_slots, environment.randomness.below
        )
        self.cold_readers = ColdReaders()
        self.auto_creation = AutoCreation(self)

    def _quota_callback(self) -> QuotaCallback | None:
        """Raises `InvalidConfig`."""
        name = (self.config.quotas.client_quota_callback_class or "").strip()
        if not name:
            return None
        loaded: QuotaCallback = load_seam(
            "millbeck.client_quota_callback", _QUOTA_CALLBACK, name, self.config.texts, method="quota"
        )
        return loaded

    def follow_quotas(self, image: ClientQuotasImage) -> None:
        self.all_quotas.follow(image)
        self.quotas = self.all_quotas if self.all_quotas.is_set else None

    @property
    def coordinators(self) -> tuple[CoordinatorDriver[Any, Any], ...]:
        """The coordinators, whose shards follow the partitions that this node leads."""
        return (self.groups, self.transactions, self.share_state)

    def address_for(self, connection: Connection) -> tuple[str, int]:
        """The address of this node for a client: the listener's advertised address, or else the address the client
        connected to."""
        return connection.listener.advertised or (connection.local_host, connection.local_port)

    def address_of(self, node_id: int, endpoints: Iterable[Endpoint], connection: Connection) -> tuple[str, int] | None:
        """The address of a node on the listener that the client uses; None when the node has no such listener."""
        if node_id == self.node_id:
            return self.address_for(connection)
        name = connection.listener.address.name
        return next(((each.host, each.port) for each in endpoints if each.listener == name), None)

    def controller_id(self, is_controllers: bool) -> int:
        """The controller id for clients: a broker names itself, since it forwards administrative requests. A controller
        names the active controller, -1 when it knows none."""
        if not is_controllers:
            return self.node_id
        return self.quorum.leader.node_id

    def offline_replicas(self, topic: str, index: int, partition: PartitionRegistration) -> list[int]:
        """The replicas whose broker is fenced, whose directory is offline, or whose local log is offline or missing."""
        offline = [node for node in partition.replicas if not self._is_online(node, partition)]
        if self.node_id not in offline and self.node_id in partition.replicas:
            local = self.topics.by_name.get(topic)
            served = None if local is None else local.partitions.get(index)
            if served is None or served.log.is_offline:
                offline.append(self.node_id)
        return offline

    def _is_online(self, node_id: int, partition: PartitionRegistration) -> bool:
        registration = self.image.cluster.broker(node_id)
        return (
            registration is not None
            and registration.is_active
            and registration.has_online(partition.directory(node_id))
        )

    async def auto_create(
        self, names: Iterable[str], made_as: Mapping[str, InternalTopic] | None = None
    ) -> dict[str, ApiError]:
        """Like `create_missing`, then wait until the topics are in this node's metadata; no client waits for this.

        When another node is the active controller, a topic exists a moment before this node's metadata has it.
        """
        names = list(names)
        errors = await self.create_missing(names, made_as)
        await self._wait_for_topics([name for name in names if name not in errors])
        return errors

    async def create_missing(
        self,
        names: Iterable[str],
        made_as: Mapping[str, InternalTopic] | None = None,
        *,
        timeout_s: float = SECONDS_MAX,
    ) -> dict[str, ApiError]:
        """Create topics on first use, internal ones included; returns the errors by topic."""
        names = list(names)
        request = auto_creation_request(names, {**self.internal_topics, **(made_as or {})})
        deadline_s = self.environment.clock.monotonic() + timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._create_topics(request, deadline_s)
        except TimeoutError:
            return dict.fromkeys(names, RequestTimedOut("no active controller created the topic in time"))
        except ApiError as error:
            return dict.fromkeys(names, error)
        return {
            topic.name or "": from_code(topic.error_code, topic.error_message or "")
            for topic in response.topics
            if topic.error_code not in (0, TopicAlreadyExists.code)
        }

    async def _create_topics(self, request: CreateTopicsRequest, deadline_s: float) -> CreateTopicsResponse:
        if not self.forwarder.is_needed:
            try:
                return await self.quorum.submit(lambda image: self.controller.create_topics(image, request))
            except NotController:
                pass
        timeout_s = deadline_s - self.environment.clock.monotonic()
        return await self.forwarder.ask(request, CreateTopicsResponse, timeout_s=timeout_s)

    async def _wait_for_topics(self, names: Iterable[str]) -> None:
        clock = self.environment.clock
        deadline = clock.monotonic() + CREATED_SECONDS_MAX
        while any(self.image.topics.named(name) is None for name in names) and clock.monotonic() < deadline:
            await asyncio.sleep(CREATED_POLL_SECONDS)
