"""Send requests to the active controller: find it, and retry when it has moved to another node.

Theory of operation. The quorum driver knows the leader and reports changes. A request goes to the leader over one
connection, which is opened on demand and closed when another node becomes leader; requests in flight are then retried
there. NOT_CONTROLLER and a failed connection are handled alike: retry with exponential backoff until the caller's
timeout, and at once when the leader changes. When this node is itself the leader, its handlers are called without a
connection (`inner_calls`); a single-node cluster needs nothing else.

Everything sent here is safe to repeat: registrations carry an incarnation id, heartbeats and partition changes carry
epochs, and clients would retry their own requests. A controller answers the requests of a connection in order, so each
kind of request that must not wait for others has a separate channel.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from millbeck.client.addresses import Address
from millbeck.client.backoff import Backoff
from millbeck.client.errors import ConnectFailed, Disconnected, ProtocolViolation, RequestTimeout
from millbeck.kernel.errors import NotController, RequestTimedOut
from millbeck.server.network.peer_security import LoginRefused, connect_to_peer

if TYPE_CHECKING:
    from millbeck.client.connection import Connection, ConnectionSettings
    from millbeck.kernel.environment import Environment
    from millbeck.raft.voters import Leader
    from millbeck.server.metadata.quorum_driver import QuorumDriver

R = TypeVar("R")

log = logging.getLogger(__name__)

BACKOFF_MS_FIRST: Final = 50
BACKOFF_MS_MAX: Final = 1000
ATTEMPT_SECONDS_MAX: Final = 30.0

_RETRIABLE: Final = (ConnectFailed, Disconnected, ProtocolViolation, RequestTimeout, NotController)


class LocalController(Protocol):
    """The handlers of the controller in this process (`inner_calls.LocalRequests`)."""

    async def request(self, message: object) -> Any: ...


class ControllerChannel:
    def __init__(
        self,
        environment: Environment,
        quorum: QuorumDriver,
        *,
        local: LocalController | None,
        settings: Callable[[], ConnectionSettings],
    ) -> None:
        """``local`` serves requests while this node is the active controller; None without the controller role."""
        self._environment = environment
        self._quorum = quorum
        self._local = local
        self._settings = settings
        self._backoff = Backoff(environment.randomness, first_ms=BACKOFF_MS_FIRST, max_ms=BACKOFF_MS_MAX)
        self._connection: Connection | None = None
        self._connected_to: Leader | None = None
        self._connecting = asyncio.Lock()
        self._leader_changed = asyncio.Event()
        self._is_closed = False
        self._refusal = ""
        """The last refused login that was logged."""
        quorum.on_leader_change(self._on_leader)

    async def request(
        self, message: object, response: type[R], *, timeout_s: float, attempt_s_max: float = ATTEMPT_SECONDS_MAX
    ) -> R:
        """Send a request and return the active controller's response; raises `RequestTimedOut` without one in time.

        An attempt that is not answered within ``attempt_s_max`` is followed by another one. A channel whose
        `ConnectionSettings` limit the wait closes the connection then, so that the next attempt does not wait behind
        the first.

        Raises `client.errors.UnsupportedByBroker` when the controller does not know the request.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        failures = 0
        while not self._is_closed:
            self._leader_changed.clear()
            left_s = deadline_s - loop.time()
            if left_s <= 0:
                break
            attempt_s = min(left_s, attempt_s_max)
            try:
                # The timeout includes connecting, and waiting for another request that connects.
                async with asyncio.timeout(attempt_s):
                    answer = await self._attempt(message, response, attempt_s)
                if not _is_refused(answer):
                    return answer
            except (*_RETRIABLE, TimeoutError):
                pass
            failures += 1
            await self._back_off(min(self._backoff.delay_s(failures), max(deadline_s - loop.time(), 0.0)))
        raise RequestTimedOut("no active controller answered in time")

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        """Close the channel; requests in flight fail with `RequestTimedOut`."""
        self._is_closed = True
        self._leader_changed.set()
        self._drop_connection()

    async def _attempt(self, message: object, response: type[R], timeout_s: float) -> R:
        if self._quorum.is_active and self._local is not None:
            return await self._local.request(message)  # type: ignore[no-any-return]
        connection = await self._connect()
        return await connection.request(message, response, timeout_s=timeout_s)

    async def _connect(self) -> Connection:
        async with self._connecting:
            leader = self._quorum.leader
            if self._connection is not None and self._connection.is_open and self._connected_to == leader:
                return self._connection
            self._drop_connection()
            if leader.endpoint is None or leader.node_id == self._quorum.node_id:
                raise NotController("the active controller is not known")
            address = Address(leader.endpoint.host, leader.endpoint.port)
            try:
                self._connection = await connect_to_peer(self._environment.network, address, self._settings())
            except LoginRefused as error:
                self._report_refusal(error)
                raise
            self._refusal = ""
            self._connected_to = leader
            return self._connection

    def _report_refusal(self, error: LoginRefused) -> None:
        """Log a refusal once, and again when it is another one."""
        if self._refusal != error.message:
            self._refusal = error.message
            log.warning("the active controller does not let this node in: %s", error)

    async def _back_off(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._leader_changed.wait()
        except TimeoutError:
            return

    def _on_leader(self, leader: Leader) -> None:
        self._leader_changed.set()
        if leader != self._connected_to:
            self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection, self._connected_to = self._connection, None, None
        if connection is not None:
            connection.close(Disconnected("another node is the active controller"))


def _is_refused(answer: Any) -> bool:
    """Whether the node that answered is not the active controller; the response of CreateTopics has this error per
    topic.
    """
    results = (answer,) if hasattr(answer, "error_code") else getattr(answer, "topics", ())
    return any(each.error_code == NotController.code for each in results)
