"""A client's view of the cluster: connections by broker, fresh metadata, coordinator lookup.

Producer, consumer and admin client own one `Cluster` each. Connections are keyed by address and purpose: a long poll or
a JoinGroup blocks its connection until it is answered, so fetches and group requests use connections of their own. A
connection is opened on first use, by one task that all callers await; after a failure it is not retried before the
reconnect backoff has passed. If no broker of the metadata is reachable, the bootstrap servers are contacted again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millbeck.client.addresses import Address, parse_addresses
from millbeck.client.backoff import Backoff
from millbeck.client.config import ClientConfig
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.client.errors import (
    ClientClosed,
    ConnectFailed,
    Disconnected,
    NoBrokerReachable,
    RequestTimeout,
    UnsupportedByBroker,
)
from millbeck.client.metadata import BrokerMetadata, Metadata, TopicView
from millbeck.client.metrics.connections import ConnectionMetrics
from millbeck.client.metrics.registry import ClientMetrics
from millbeck.client.metrics.reporters import close_all, reporters_named
from millbeck.client.metrics.sampled import Window
from millbeck.client.outages import Outage, Outages
from millbeck.client.retry import Deadline, retrying
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    InvalidRequest,
    InvalidTopic,
    LeaderNotAvailable,
    RebootstrapRequired,
    UnknownTopicOrPartition,
    from_code,
)
from millbeck.kernel.ids import Uuid
from millbeck.kernel.tls import TlsSource
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from millbeck.client.sasl import SaslCredentials
    from millbeck.client.telemetry.reporter import TelemetryReporter

T = TypeVar("T")
R = TypeVar("R")

log = logging.getLogger(__name__)

_REASONS_MAX: Final = 3

GENERAL: Final = "general"
COORDINATOR: Final = "coordinator"
FETCH: Final = "fetch"

GROUP_KEY: Final = 0
_GET_TELEMETRY_SUBSCRIPTIONS: Final = 71
"""Its API key; the message itself is imported only if a broker offers it."""

_Key = tuple[Address, str]


class Cluster:
    def __init__(
        self,
        environment: Environment,
        config: ClientConfig,
        *,
        in_flight_max: int = 5,
        creates_topics: bool = False,
        kind: str = "client",
    ) -> None:
        """``kind`` names the metrics: producer, consumer, consumer-share or admin-client."""
        self.environment = environment
        self.config = config
        self.metadata = Metadata()
        self.wants_all_topics = False
        """Request metadata of all topics instead of the topics named."""
        self.on_abandoned: Callable[[], None] = lambda: None
        """Called when the event loop ends before the client was closed."""
        self.may_forget: Callable[[str], bool] = lambda topic: False
        """Whether the metadata of a topic is no longer needed; asked before each refresh."""
        self.on_update: list[Callable[[], None]] = []
        """Called after every change of the metadata."""
        self.on_connected: list[Callable[[], None]] = []
        """Called after every attempt to open a connection, successful or not, and when one is writable again."""
        self.backoff = Backoff(
            environment.randomness, first_ms=config.retry_backoff_ms, max_ms=config.retry_backoff_max_ms
        )
        self._bootstrap = parse_addresses(config.bootstrap_servers)
        self._loop = asyncio.get_running_loop()
        self._creates_topics = creates_topics
        self._settings = ConnectionSettings(
            client_id=config.client_id,
            in_flight_max=in_flight_max,
            connect_timeout_s=config.connect_timeout_ms / 1000,
            patience_s=config.request_timeout_ms / 1000,
            tls=_tls_of(config, environment),
            sasl=_sasl_of(config, environment),
        )
        self._reconnect = Backoff(
            environment.randomness, first_ms=config.reconnect_backoff_ms, max_ms=config.reconnect_backoff_max_ms
        )
        self._connections: dict[_Key, Connection] = {}
        self._opening: dict[_Key, asyncio.Task[Connection]] = {}
        self._outages = Outages()
        self._coordinators: dict[tuple[int, str], int] = {}
        self._wanted: dict[str, None] = {}
        self._tasks: dict[asyncio.Task[Any], None] = {}
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_wanted = asyncio.Event()
        self._stop_watching: Callable[[], None] | None = None
        self._may_rebootstrap = config.metadata_recovery_strategy == "rebootstrap"
        self._informed_s = self._loop.time()
        """The time at which metadata last arrived."""
        self._is_closed = False
        window = Window(config.metrics_sample_window_ms / 1000, config.metrics_num_samples)
        self.metrics = ClientMetrics(kind, config.client_id, self._loop.time, window)
        self._traffic = ConnectionMetrics(self.metrics, lambda: len(self._connections), self._node_at)
        self.metrics.gauge(f"{kind}-metrics", "metadata-age", lambda now_s: now_s - self._informed_s)
        self.member_id: Callable[[], str] = str
        """The member id of a client that is a member of a group."""
        self._telemetry: TelemetryReporter | None = None
        self._reporters = reporters_named(config.metric_reporters)
        for reporter in self._reporters:
            reporter.start(self.metrics)

    def _node_at(self, address: Address) -> int | None:
        return next((broker.node_id for broker in self.metadata.brokers.values() if broker.address == address), None)

    # tasks

    def spawn(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start a task that `close` cancels."""
        task = self._loop.create_task(coroutine)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def watch_loop(self, group_id: str, limit_s: float) -> None:
        """Warn when a callback holds the event loop for so long that a member of this group cannot send heartbeats."""
        watch = self.environment.watch_loop
        if watch is None or self._stop_watching is not None:
            return

        def on_held(held_s: float, holder: str | None) -> None:
            if holder is None:
                log.warning(
                    "this process did not run for %.1f s, and could send no heartbeats to group %s", held_s, group_id
                )
                return
            log.warning(
                "the event loop was held for %.1f s by %s: no heartbeats were sent to group %s meanwhile; do such work "
                "with asyncio.to_thread, or use millbeck.client.sync",
                held_s,
                holder,
                group_id,
            )

        self._stop_watching = watch(limit_s, on_held)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None and not isinstance(error, ApiError):
            log.error("a background task of the client failed", exc_info=error)

    async def close(self) -> None:
        """Cancel all tasks and close all connections, and wait until they have ended."""
        if not self._is_closed:
            close_all(self._reporters)
            if self._telemetry is not None:
                await self._telemetry.terminate()
        self._is_closed = True
        if self._stop_watching is not None:
            self._stop_watching()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for connection in list(self._connections.values()):
            connection.close()
        self._connections.clear()

    # connections

    async def connection(self, node_id: int, purpose: str = GENERAL, *, deadline: Deadline) -> Connection:
        """An open connection to a broker of the metadata; raises a retriable `ApiError` if there is none."""
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            raise LeaderNotAvailable(f"broker {node_id} is not in the cluster metadata")
        return await self._connect((broker.address, purpose), deadline)

    def connection_nowait(self, node_id: int, purpose: str = GENERAL) -> Connection | None:
        """The open connection to a broker, if there is one; otherwise start opening it and return None."""
        broker = self.metadata.brokers.get(node_id)
        if broker is None:
            return None
        key = (broker.address, purpose)
        found = self._connections.get(key)
        if found is not None and found.is_open:
            return found
        self._begin_opening(key)
        return None

    async def any_connection(self, deadline: Deadline) -> Connection:
        """A connection to the first broker that answers; raises `NoBrokerReachable`."""
        idle = [found for (_, purpose), found in self._connections.items() if purpose == GENERAL and found.is_open]
        if idle:
            return min(idle, key=lambda found: found.in_flight_count)
        problems: list[str] = []
        for address in self._candidates():
            if deadline.has_passed:
                break
            try:
                return await self._connect((address, GENERAL), deadline)
            except (Disconnected, RequestTimeout) as error:
                problems.append(str(error))
        raise NoBrokerReachable("; ".join(problems) or self._why_late("no broker answered in time"))

    def _candidates(self) -> Iterator[Address]:
        """All addresses to try: known brokers in random order, then the bootstrap servers in random order."""
        known = [broker.address for broker in self.metadata.brokers.values()]
        seen: dict[Address, None] = {}
        rests = self.config.metadata_recovery_strategy == "none" and known
        for group in (known, [] if rests else list(self._bootstrap)):
            while group:
                address = group.pop(self.environment.randomness.below(len(group)))
                if address not in seen:
                    seen[address] = None
                    yield address

    async def _connect(self, key: _Key, deadline: Deadline) -> Connection:
        found = self._connections.get(key)
        if found is not None and found.is_open:
            return found
        task = self._begin_opening(key)
        done, _ = await asyncio.wait({task}, timeout=deadline.remaining_s)
        if not done:
            raise RequestTimeout(self._why_late(f"no connection to {key[0]} in time"))
        if task.cancelled():
            raise ClientClosed
        return task.result()

    def _begin_opening(self, key: _Key) -> asyncio.Task[Connection]:
        if self._is_closed:
            raise ClientClosed
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = self.spawn(self._open(key))
        return task

    async def _open(self, key: _Key) -> Connection:
        address, _ = key
        try:
            outage = self._outages.trying(address, self._loop.time())
            delay_s = outage.retry_at_s - self._loop.time()
            if delay_s > 0:
                await asyncio.sleep(delay_s)
            try:
                connection = await self._reach(address, outage.failures)
            except ApiError as error:
                wait_s = self._reconnect.delay_s(outage.failures + 1)
                self._outages.failed(address, self._loop.time(), str(error), delay_s=wait_s)
                self.request_refresh()
                raise
            known = [*self._bootstrap, *(broker.address for broker in self.metadata.brokers.values())]
            self._outages.reached(address, known)
            self._connections[key] = connection
            self._traffic.created.add(1, self._loop.time())
            self._traffic.forget({*known, *(other for other, _ in self._connections)})
            connection.on_closed(lambda _: self._lost(key, connection))
            connection.on_writable = self._announce_connection
            return connection
        finally:
            del self._opening[key]
            self._announce_connection()

    def _advertised_by(self, address: Address) -> str:
        """A hint that names the broker, for an address that only the metadata has and that was never reached."""
        if address in self._bootstrap or self._outages.was_reached(address):
            return ""
        nodes = [broker.node_id for broker in self.metadata.brokers.values() if broker.address == address]
        return f"; broker {nodes[0]} advertises this address: see its advertised.listeners" if nodes else ""

    def why_unreachable(self, node_id: int) -> str | None:
        """The reason why there is no connection to a broker; None if there is one, or no attempt has failed."""
        broker = self.metadata.brokers.get(node_id)
        return None if broker is None else self._outages.reason(broker.address)

    def _why_late(self, what: str) -> str:
        """What did not come about in time, and why brokers cannot be reached, if that is known."""
        reasons = list(dict.fromkeys(self._outages.reasons()))[:_REASONS_MAX]
        return ": ".join([what, "; ".join(reasons)]) if reasons else what

    async def _reach(self, address: Address, failures: int) -> Connection:
        timeout_s = self._connect_timeout_s(failures)
        try:
            return await Connection.open(
                self.environment.network,
                address,
                self._settings,
                timeout_s=timeout_s,
                meter=self._traffic.of(address),
            )
        except ConnectFailed as error:
            hint = self._advertised_by(address)
            if not hint:
                raise
            raise ConnectFailed(f"{error}{hint}") from error

    def _connect_timeout_s(self, failures: int) -> float:
        """The timeout of connecting, which doubles with each consecutive failure, up to the maximum."""
        config = self.config
        longest_ms = max(config.connect_timeout_ms, config.connect_timeout_max_ms)
        return min(config.connect_timeout_ms << min(failures, 16), longest_ms) / 1000

    def _announce_connection(self) -> None:
        for callback in self.on_connected:
            callback()

    def _lost(self, key: _Key, connection: Connection) -> None:
        self._traffic.closed.add(1, self._loop.time())
        if self._connections.get(key) is connection:
            del self._connections[key]

    def outage(self) -> Outage | None:
        """The broker whose outage has lasted longest, if any: it is unreachable, or a request to it is unanswered.

        Unanswered requests to a connected group coordinator do not count, because they may take long by design.
        """
        being_tried = frozenset(address for address, _ in self._opening)
        found = [self._outages.longest(self._loop.time(), being_tried)]
        for (address, purpose), connection in self._connections.items():
            asked = connection.oldest_request() if purpose != COORDINATOR else None
            if asked is not None:
                found.append(Outage(address=address, since_s=asked[1], reason=f"no answer to {asked[0]}"))
        return min((each for each in found if each is not None), key=lambda each: each.since_s, default=None)

    @property
    def in_flight_count(self) -> int:
        """The unanswered requests of all connections."""
        return sum(connection.in_flight_count for connection in self._connections.values())

    def close_idle_connections(self) -> None:
        limit_ms = self.config.connections_max_idle_ms
        if limit_ms < 0:
            return
        oldest_s = self._loop.time() - limit_ms / 1000
        for connection in list(self._connections.values()):
            if connection.in_flight_count == 0 and connection.last_used_s < oldest_s:
                connection.close()

    # requests

    async def request(
        self,
        message: object,
        response: type[R],
        *,
        deadline: Deadline,
        node_id: int | None = None,
        purpose: str = GENERAL,
        version_max: int | None = None,
        version_min: int | None = None,
    ) -> R:
        """Send a request once, to one broker, by default any."""
        if node_id is None:
            connection = await self.any_connection(deadline)
        else:
            connection = await self.connection(node_id, purpose, deadline=deadline)
        return await connection.request(
            message,
            response,
            timeout_s=self.request_timeout_s(deadline),
            version_max=version_max,
            version_min=version_min,
        )

    def request_timeout_s(self, deadline: Deadline) -> float:
        """The timeout of a single request: ``request.timeout.ms``, or less if the call's deadline is nearer."""
        return min(self.config.request_timeout_ms / 1000, deadline.remaining_s)

    async def retrying(
        self, attempt: Callable[[Deadline], Coroutine[Any, Any, T]], *, timeout_s: float | None = None
    ) -> T:
        """Like `retry.retrying`, with this client's settings; metadata is refreshed after a failure."""

        def failed(_: ApiError) -> None:
            self._refresh_wanted.set()

        return await retrying(
            attempt,
            timeout_s=self.config.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s,
            backoff=self.backoff,
            retries_max=self.config.retries,
            on_failure=failed,
        )

    # metadata

    def add_topics(self, names: list[str]) -> bool:
        """Add topics to those whose metadata is refreshed; returns whether one of them is new."""
        missing = [name for name in names if name not in self._wanted]
        self._wanted.update(dict.fromkeys(missing))
        return bool(missing)

    def set_topics(self, names: list[str]) -> None:
        """Replace the topics whose metadata is refreshed."""
        gone = [name for name in self._wanted if name not in names]
        self._wanted = dict.fromkeys(names)
        self.metadata.forget_topics(gone)

    async def refresh(self, deadline: Deadline) -> None:
        """Request the metadata of all wanted topics once; concurrent callers share one request."""
        if self._is_closed:
            raise ClientClosed
        if self._refreshing is None:
            self._refreshing = self.spawn(self._refresh(Deadline(self.config.request_timeout_ms / 1000)))
            self._refreshing.add_done_callback(self._refreshed)
        task = self._refreshing
        done, _ = await asyncio.wait({task}, timeout=deadline.remaining_s)
        if not done:
            raise RequestTimeout(self._why_late("no broker sent metadata in time"))
        if task.cancelled():
            raise ClientClosed
        task.result()

    def _refreshed(self, _: asyncio.Task[None]) -> None:
        self._refreshing = None

    async def _refresh(self, deadline: Deadline) -> None:
        idle = [name for name in self._wanted if self.may_forget(name)]
        if idle:
            self.set_topics([name for name in self._wanted if name not in idle])
        await self.ask_metadata(None if self.wants_all_topics else list(self._wanted), deadline)

    async def ask_metadata(self, names: list[str] | None, deadline: Deadline) -> MetadataResponse:
        """Request the metadata of these topics, or of all, once, and apply the response."""
        connection = await self.any_connection(deadline)
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        if topics is None and connection.version_of(MetadataRequest) == 0:
            topics = []  # version 0 spells all topics as an empty list
        response = await connection.request(
            MetadataRequest(topics=topics, allow_auto_topic_creation=self._creates_topics and names is not None),
            MetadataResponse,
            timeout_s=self.request_timeout_s(deadline),
        )
        if response.error_code == RebootstrapRequired.code and self._may_rebootstrap:
            self._rebootstrap()
            raise Disconnected(f"{connection.address} asks this client to begin again with bootstrap.servers")
        if response.error_code:
            raise from_code(response.error_code)
        self.metadata.update(response, is_complete=names is None)
        self._informed_s = self._loop.time()
        if self._telemetry is None and self.config.enable_metrics_push and _collects_metrics(connection):
            self._begin_telemetry()
        self.announce()
        return response

    def announce(self) -> None:
        for callback in self.on_update:
            callback()

    # telemetry (KIP-714)

    def _begin_telemetry(self) -> None:
        from millbeck.client.telemetry.reporter import TelemetryReporter

        self._telemetry = TelemetryReporter(self)
        self.spawn(self._telemetry.run())

    def labels(self) -> dict[str, str]:
        """What brokers that collect metrics are told of this client."""
        named = ("client_rack", "group_id", "group_instance_id", "transactional_id")
        labels = {name: getattr(self.config, name, None) or "" for name in named}
        return {**labels, "group_member_id": self.member_id()}

    async def client_instance_id(self, timeout_s: float) -> Uuid:
        """The id under which brokers collect this client's metrics; raises `UnsupportedByBroker` if they do not."""
        if not self.config.enable_metrics_push:
            raise InvalidRequest("enable.metrics.push is false: brokers know this client by no instance id")
        deadline = Deadline(timeout_s)
        if self._telemetry is None:

            async def attempt(remaining: Deadline) -> None:
                await self.ask_metadata([], remaining)

            await self.retrying(attempt, timeout_s=timeout_s)
        if self._telemetry is None:
            raise UnsupportedByBroker(
                "the brokers collect no metrics of clients: none of their metric.reporters is a ClientTelemetry"
            )
        try:
            async with asyncio.timeout(deadline.remaining_s):
                return await asyncio.shield(self._telemetry.client_instance_id)
        except TimeoutError:
            raise RequestTimeout("no broker sent a client instance id in time") from None

    def request_refresh(self) -> None:
        """Wake the refresh task before the metadata expires."""
        self._refresh_wanted.set()

    def start_upkeep(self) -> None:
        self.spawn(self._keep_fresh()).add_done_callback(self._upkeep_ended)

    def _upkeep_ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() and not self._is_closed:
            # As asyncio.run does with all tasks when the program is over.
            self.on_abandoned()

    async def _keep_fresh(self) -> None:
        failures = 0
        hurry = 0
        age_s = max(self.config.metadata_max_age_ms / 1000, 0.001)
        while True:
            waiting_since_s = self._loop.time()
            try:
                async with asyncio.timeout(self.backoff.delay_s(failures) if failures else age_s):
                    await self._refresh_wanted.wait()
            except TimeoutError:
                pass
            self._refresh_wanted.clear()
            self.close_idle_connections()
            # A caller that still misses a topic requests a refresh at once; the backoff grows then.
            is_calm = self._loop.time() - waiting_since_s > self.config.retry_backoff_max_ms / 1000
            hurry = 0 if is_calm else hurry + 1
            try:
                await self.refresh(Deadline(self.config.request_timeout_ms / 1000))
                failures = 0
            except ApiError as error:
                log.debug("metadata could not be refreshed: %s", error)
                failures += 1
                self._rebootstrap_when_due()
            await asyncio.sleep(self.backoff.delay_s(max(1, hurry)))

    def _rebootstrap_when_due(self) -> None:
        """Forget all known brokers after too long without metadata from any of them, so that the bootstrap servers are
        contacted again (KIP-1102)."""
        silent_s = self._loop.time() - self._informed_s
        if self._may_rebootstrap and silent_s * 1000 >= self.config.metadata_recovery_trigger_ms:
            self._informed_s = self._loop.time()
            self._rebootstrap()

    def _rebootstrap(self) -> None:
        """Forget all brokers and close the connections to them: an open one would be asked before bootstrap.servers."""
        self.metadata.brokers.clear()
        for connection in list(self._connections.values()):
            connection.close()

    async def topic(self, name: str, *, timeout_s: float) -> TopicView:
        """Wait for a topic's metadata; raises the topic's error, usually `UnknownTopicOrPartition`."""
        known = self.metadata.topics.get(name)
        if known is not None:
            return known
        self.add_topics([name])

        async def attempt(deadline: Deadline) -> TopicView:
            await self.refresh(deadline)
            found = self.metadata.topics.get(name)
            if found is None:
                raise self.metadata.errors.get(name) or UnknownTopicOrPartition(f"there is no topic {name}")
            return found

        try:
            return await self.retrying(attempt, timeout_s=timeout_s)
        except UnknownTopicOrPartition as error:
            raise UnknownTopicOrPartition(f"there is no topic {name}") from error
        except InvalidTopic as error:
            raise InvalidTopic(f"{name!r} is not a valid topic name") from error

    # coordinators

    async def coordinator(self, key: str, *, deadline: Deadline, key_type: int = GROUP_KEY) -> int:
        """The coordinator of a group or transactional id, cached; raises retriable errors."""
        known = self._coordinators.get((key_type, key))
        if known is not None and known in self.metadata.brokers:
            return known
        broker = await self._find_coordinator(key, key_type, deadline)
        self.metadata.add_broker(broker)
        self._coordinators[key_type, key] = broker.node_id
        return broker.node_id

    def forget_coordinator(self, key: str, *, key_type: int = GROUP_KEY) -> None:
        self._coordinators.pop((key_type, key), None)

    async def _find_coordinator(self, key: str, key_type: int, deadline: Deadline) -> BrokerMetadata:
        from millbeck.wire.messages.groups import FindCoordinatorRequest, FindCoordinatorResponse

        connection = await self.any_connection(deadline)
        version = connection.version_of(FindCoordinatorRequest)
        if version == 0 and key_type != GROUP_KEY:
            raise UnsupportedByBroker("the broker supports coordinators of groups only")
        request = (
            FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            if version >= 4
            else FindCoordinatorRequest(key=key, key_type=key_type)
        )
        timeout_s = self.request_timeout_s(deadline)
        response = await connection.request(request, FindCoordinatorResponse, timeout_s=timeout_s, version_max=version)
        if version >= 4 and not response.coordinators:
            raise CoordinatorNotAvailable(f"the broker returned no coordinator for {key}")
        found = response.coordinators[0] if version >= 4 else response
        if found.error_code:
            raise from_code(found.error_code, found.error_message or "")
        return BrokerMetadata(found.node_id, Address(found.host, found.port))


def _collects_metrics(connection: Connection) -> bool:
    return connection.versions is not None and _GET_TELEMETRY_SUBSCRIPTIONS in connection.versions.ranges


def _tls_of(config: ClientConfig, environment: Environment) -> TlsSource | None:
    if not config.security_protocol.endswith("SSL"):
        return None
    # Importing ssl is slow; commands that use plaintext connections skip it.
    from millbeck.client.tls import client_tls

    return client_tls(config, environment)


def _sasl_of(config: ClientConfig, environment: Environment) -> SaslCredentials | None:
    if not config.security_protocol.startswith("SASL"):
        if config.sasl_username is not None or config.sasl_jaas_config is not None:
            log.warning("this client does not log in: security.protocol is %s", config.security_protocol)
        return None
    from millbeck.client.sasl import client_credentials

    return client_credentials(config, environment)
