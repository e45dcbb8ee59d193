"""How a node speaks to the active controller: it finds it, asks, and asks again when it was the wrong one.

Theory of operation. The quorum knows its leader, and tells when it changes. A request goes to the leader over one
connection, which is opened when it is needed and closed when another node leads; whatever was unanswered then is asked
again there. NOT_CONTROLLER and a connection that fails mean the same: wait a little, longer each time but never past
the next change of leader, and try again until the caller's time is up. When the leader is this very node, its handlers
are called without a connection (`inner_calls`), which is all that a node needs that is alone.

Everything sent here is safe to repeat: registrations carry an incarnation, heartbeats and partition changes carry
epochs, and what clients send they would repeat themselves. A controller answers a connection's requests one after
another, so each kind of request that must not wait for the others has a channel of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millbeck.client.addresses import Address
from millbeck.client.apis import call_of
from millbeck.client.backoff import Backoff
from millbeck.client.errors import ConnectFailed, Disconnected, ProtocolViolation, RequestTimeout
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import NotController, RequestTimedOut
from millbeck.raft.voters import Leader
from millbeck.security.authorizer import AllowAll
from millbeck.security.principal import ANONYMOUS
from millbeck.server.broker import Broker
from millbeck.server.drivers.quorum import QuorumDriver
from millbeck.server.inner_calls import InnerCall, InnerRequests

if TYPE_CHECKING:
    from millbeck.client.connection import Connection, ConnectionSettings

R = TypeVar("R")

BACKOFF_MS_FIRST: Final = 50
BACKOFF_MS_MAX: Final = 1000
ATTEMPT_SECONDS_MAX: Final = 30.0

_TROUBLE: Final = (ConnectFailed, Disconnected, ProtocolViolation, RequestTimeout, NotController)


class ControllerChannel:
    def __init__(
        self,
        environment: Environment,
        quorum: QuorumDriver,
        *,
        local: InnerRequests | None,
        broker: Broker,
        settings: Callable[[], ConnectionSettings],
    ) -> None:
        """``local`` serves requests while this node is the active controller; None where it can not be."""
        self._environment = environment
        self._quorum = quorum
        self._local = local
        self._broker = broker
        self._settings = settings
        self._backoff = Backoff(environment.randomness, first_ms=BACKOFF_MS_FIRST, max_ms=BACKOFF_MS_MAX)
        self._connection: Connection | None = None
        self._connected_to: Leader | None = None
        self._connecting = asyncio.Lock()
        self._leader_changed = asyncio.Event()
        self._is_closed = False
        quorum.on_leader_change(self._on_leader)

    async def request(self, message: object, response: type[R], *, timeout_s: float) -> R:
        """The active controller's answer, whoever that is; raises `RequestTimedOut` when nobody gave one in time.

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
            try:
                answer = await self._attempt(message, response, min(left_s, ATTEMPT_SECONDS_MAX))
                if getattr(answer, "error_code", 0) != NotController.code:
                    return answer
            except _TROUBLE:
                pass
            failures += 1
            await self._rest(min(self._backoff.delay_s(failures), max(deadline_s - loop.time(), 0.0)))
        raise RequestTimedOut("no active controller answered in time")

    def close(self) -> None:
        """Whoever waits is told that its time is up."""
        self._is_closed = True
        self._leader_changed.set()
        self._drop_connection()

    async def _attempt(self, message: object, response: type[R], timeout_s: float) -> R:
        if self._quorum.is_active and self._local is not None:
            return await self._ask_here(message)  # type: ignore[no-any-return]
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        connection = await self._connect()
        left_s = max(deadline_s - asyncio.get_running_loop().time(), 0.0)
        return await connection.request(message, response, timeout_s=left_s)

    async def _ask_here(self, message: object) -> Any:
        assert self._local is not None
        api = call_of(type(message))
        route = self._local.route(api.key)
        assert route is not None, f"{api} is not served by controllers"
        call = InnerCall(
            self._broker,
            route.max_version,
            principal=ANONYMOUS,
            peer_host="127.0.0.1",
            # A node need not ask itself for permission.
            authorizer=AllowAll(),
            connection=None,
        )
        return await self._local.answer(route, call, message)

    async def _connect(self) -> Connection:
        async with self._connecting:
            leader = self._quorum.leader
            if self._connection is not None and self._connection.is_open and self._connected_to == leader:
                return self._connection
            self._drop_connection()
            if leader.endpoint is None or leader.node_id == self._quorum.node_id:
                raise NotController("the active controller is not known")
            # A node that is alone never gets here, and starts faster without it.
            from millbeck.client.connection import Connection

            address = Address(leader.endpoint.host, leader.endpoint.port)
            self._connection = await Connection.open(self._environment.network, address, self._settings())
            self._connected_to = leader
            return self._connection

    async def _rest(self, seconds: float) -> None:
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
