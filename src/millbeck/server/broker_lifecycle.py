"""A broker's lifecycle in the cluster: registration, heartbeats to the active controller, unfencing, shutdown.

States
    STARTING     -> REGISTERED    the controller gave this process an epoch; the broker is fenced
    REGISTERED   -> RUNNING       this broker has replayed its registration, and was unfenced
    RUNNING      -> RUNNING       fenced after a session timeout: the next heartbeat asks to be unfenced
    RUNNING      -> LEAVING       `leave`: the partitions of this broker get other leaders
    any          -> STOPPED       `stop`

Theory of operation. A heartbeat is sent every ``broker.heartbeat.interval.ms`` over a separate channel. It carries the
metadata offset replayed here, whether a shutdown is requested, and the failed directories. Error responses do not stop
the heartbeats; one without a response within half a session is sent again on another connection. A registration is
refused until the session of the previous process has expired; a permanent refusal stops the node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum
from typing import Final

from millbeck.client.backoff import Backoff
from millbeck.client.errors import UnsupportedByBroker
from millbeck.controller.nodes import NodeRegistration
from millbeck.kernel.errors import (
    ApiError,
    InconsistentClusterId,
    InvalidRegistration,
    NotController,
    RequestTimedOut,
    UnsupportedVersion,
    from_code,
)
from millbeck.kernel.ids import Uuid
from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image import Endpoint
from millbeck.server.context import NodeContext
from millbeck.server.metadata.controller_channel import ControllerChannel
from millbeck.storage.directory import NO_BROKER_EPOCH
from millbeck.wire.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Feature,
    Listener,
)

LEAVE_SECONDS_MAX: Final = 300.0
LEAVE_POLL_SECONDS: Final = 0.1
RETRY_MS_FIRST: Final = 100
RETRY_MS_MAX: Final = 1000
_FINAL: Final = (InconsistentClusterId, InvalidRegistration, UnsupportedVersion)

log = logging.getLogger(__name__)


class RegistrationFailed(Exception):
    """The controller refused to register this broker."""


class BrokerLifecycleState(Enum):
    STARTING = "starting"
    REGISTERED = "registered"
    RUNNING = "running"
    LEAVING = "leaving"
    STOPPED = "stopped"


def to_registration(request: BrokerRegistrationRequest) -> NodeRegistration:
    """The controller's form of a BrokerRegistration request."""
    return NodeRegistration(
        node_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ),
        rack=request.rack,
        features={
            each.name: FeatureRange(each.min_supported_version, each.max_supported_version) for each in request.features
        },
        directories=tuple(request.log_dirs),
        cluster_id=request.cluster_id,
        previous_broker_epoch=request.previous_broker_epoch,
    )


class BrokerLifecycleManager:
    def __init__(
        self,
        context: NodeContext,
        channel: ControllerChannel,
        *,
        register_here: Callable[[NodeRegistration], Awaitable[int]] | None = None,
        on_unreported: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_unreported`` is called when no controller could be informed of a lost directory in time: the other
        brokers still assume that this broker has those replicas.

        ``register_here`` calls the active controller in this process; it raises `NotController` elsewhere.

        This process holds the lock of the directories, so the previous process has ended: it need not wait for its
        session to expire at the controller.
        """
        self._register_here = register_here
        self._context = context
        self._environment = environment = context.environment
        self._channel = channel
        self._options = context.config.membership
        self._node_id = context.node_id
        self._cluster_id = context.cluster_id
        self._rack = context.config.node.broker_rack or None
        self._spawn = context.spawn
        self._incarnation_id = environment.randomness.uuid()
        self._backoff = Backoff(environment.randomness, first_ms=RETRY_MS_FIRST, max_ms=RETRY_MS_MAX)
        self._wake = asyncio.Event()
        self._unfenced = asyncio.Event()
        self._may_end = asyncio.Event()
        self._offline_directories: dict[Uuid, None] = {}
        self._unreported_since_s: float | None = None
        self._unreported_s_max = context.config.node.log_dir_failure_timeout_ms / 1000
        self._on_unreported = on_unreported
        self._supported_features = context.config.supported_features
        self._is_fenced = True
        self.refusal = ""
        """The error of the last refused registration."""
        self.epoch = NO_BROKER_EPOCH
        self.state = BrokerLifecycleState.STARTING

    # joining

    async def join(
        self, endpoints: Sequence[Endpoint], directories: Sequence[Uuid], *, previous_epoch: int = NO_BROKER_EPOCH
    ) -> None:
        """Register and start the heartbeats; raises `RegistrationFailed`."""
        request = BrokerRegistrationRequest(
            broker_id=self._node_id,
            cluster_id=self._cluster_id,
            incarnation_id=self._incarnation_id,
            listeners=[Listener(each.listener, each.host, each.port, each.security_protocol) for each in endpoints],
            features=[
                Feature(name, levels.min_level, levels.max_level)
                for name, levels in sorted(self._supported_features.items())
            ],
            rack=self._rack,
            log_dirs=list(directories),
            previous_broker_epoch=previous_epoch,
        )
        self.epoch = await self._register(request)
        self.state = BrokerLifecycleState.REGISTERED
        self.refusal = ""
        log.info("broker %d is registered, with epoch %d", self._node_id, self.epoch)
        self._spawn(self._beat())

    async def _register(self, request: BrokerRegistrationRequest) -> int:
        timeout_s = self._options.initial_broker_registration_timeout_ms / 1000
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        failures = 0
        last: ApiError = RequestTimedOut("no controller has answered")
        while (left_s := deadline_s - loop.time()) > 0:
            try:
                return await self._ask_for_epoch(request, left_s)
            except RequestTimedOut as error:
                last = error
                break
            except UnsupportedByBroker as error:
                raise RegistrationFailed(str(error)) from error
            except ApiError as error:
                last = error
            if isinstance(last, _FINAL):
                raise RegistrationFailed(f"the controller refuses this broker: {last.kafka_name}, {last}")
            failures += 1
            self.refusal = last.kafka_name
            log.info("broker %d is not registered yet: %s", self._node_id, self.refusal)
            await asyncio.sleep(self._backoff.delay_s(failures))
        raise RegistrationFailed(
            f"broker {self._node_id} could not register within {timeout_s:g} s "
            f"(initial.broker.registration.timeout.ms): {last.kafka_name}, {last}"
        )

    async def _ask_for_epoch(self, request: BrokerRegistrationRequest, timeout_s: float) -> int:
        if self._register_here is not None:
            try:
                return await self._register_here(to_registration(request))
            except NotController:
                pass
        answer = await self._channel.request(request, BrokerRegistrationResponse, timeout_s=timeout_s)
        if answer.error_code:
            raise from_code(answer.error_code)
        return answer.broker_epoch

    async def wait_unfenced(self) -> None:
        """Wait until the controller has unfenced this broker, so that clients use it."""
        await self._unfenced.wait()

    # heartbeats

    @property
    def is_fenced(self) -> bool:
        """Whether the broker is fenced, according to the last heartbeat response."""
        return self._is_fenced

    async def _beat(self) -> None:
        loop = asyncio.get_running_loop()
        while self.state is not BrokerLifecycleState.STOPPED:
            sent_s = loop.time()
            is_answered = await self._heartbeat()
            if self.state is BrokerLifecycleState.LEAVING:
                pause_s = LEAVE_POLL_SECONDS
            elif self.state is BrokerLifecycleState.REGISTERED and is_answered:
                # Ask often, to be unfenced as soon as this broker has replayed its registration.
                pause_s = min(LEAVE_POLL_SECONDS, self._options.broker_heartbeat_interval_ms / 1000)
            else:
                pause_s = self._options.broker_heartbeat_interval_ms / 1000
            await self._rest(max(sent_s + pause_s - loop.time(), 0.0))

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()

    async def _heartbeat(self) -> bool:
        """Send a heartbeat; returns whether the controller answered."""
        offline = list(self._offline_directories)
        request = BrokerHeartbeatRequest(
            broker_id=self._node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._context.image.offset,
            want_fence=False,
            want_shut_down=self.state is BrokerLifecycleState.LEAVING,
            offline_log_dirs=offline,
        )
        timeout_s = self._options.broker_session_timeout_ms / 1000
        try:
            answer = await self._channel.request(
                request, BrokerHeartbeatResponse, timeout_s=timeout_s, attempt_s_max=timeout_s / 2
            )
        except (RequestTimedOut, UnsupportedByBroker) as error:
            if self._channel.is_closed:
                # The node stops.
                return False
            self._check_unreported()
            if request.want_shut_down:
                # No controller answered for a whole session, as when all nodes stop: nothing can be handed over.
                log.info("broker %d stops without handing over its partitions: %s", self._node_id, error)
                self._may_end.set()
            else:
                log.warning("no controller answers the heartbeats of broker %d: %s", self._node_id, error)
            return False
        if answer.error_code:
            error_name = from_code(answer.error_code).kafka_name
            log.warning("the controller refuses the heartbeat of broker %d: %s", self._node_id, error_name)
            self._check_unreported()
            return False
        if len(offline) == len(self._offline_directories):
            self._unreported_since_s = None
        self._on_heartbeat_response(answer)
        return True

    def _check_unreported(self) -> None:
        since_s = self._unreported_since_s
        if since_s is not None and self._environment.clock.monotonic() - since_s >= self._unreported_s_max:
            log.critical("no controller could be informed of a lost log directory within log.dir.failure.timeout.ms")
            self._on_unreported()

    def _on_heartbeat_response(self, answer: BrokerHeartbeatResponse) -> None:
        if answer.is_fenced and not self._is_fenced and self.state is BrokerLifecycleState.RUNNING:
            log.warning("the controller has fenced broker %d: no heartbeat arrived in time", self._node_id)
        self._is_fenced = answer.is_fenced
        if not answer.is_fenced and self.state is BrokerLifecycleState.REGISTERED:
            self.state = BrokerLifecycleState.RUNNING
            self._unfenced.set()
        if answer.should_shut_down and self.state is BrokerLifecycleState.LEAVING:
            self._may_end.set()

    def directory_failed(self, directory_id: Uuid) -> None:
        """Report a failed log directory to the controller: at once, and in every later heartbeat."""
        if directory_id in self._offline_directories:
            return
        self._offline_directories[directory_id] = None
        if self._unreported_since_s is None:
            self._unreported_since_s = self._environment.clock.monotonic()
        self._wake.set()

    # leaving

    async def leave(self) -> None:
        """Controlled shutdown: move the leadership of this broker's partitions to other brokers. Returns when that is
        done, or takes too long.

        The only broker of a cluster keeps its leaderships.
        """
        if self.state is not BrokerLifecycleState.RUNNING or not self._has_peers():
            return
        self.state = BrokerLifecycleState.LEAVING
        self._wake.set()
        try:
            async with asyncio.timeout(LEAVE_SECONDS_MAX):
                await self._may_end.wait()
        except TimeoutError:
            log.warning("broker %d leaves although its partitions have not been taken over", self._node_id)

    def _has_peers(self) -> bool:
        return any(each.broker_id != self._node_id for each in self._context.image.cluster.unfenced_brokers())

    def stop(self) -> None:
        self.state = BrokerLifecycleState.STOPPED
        self._wake.set()
