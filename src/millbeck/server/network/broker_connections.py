"""Connections to other brokers, for requests between leaders and coordinators.

There is one connection per broker and purpose, opened on demand. A broker answers the requests of a connection in
order, so slow requests have a separate purpose. Without a response the caller gets an `ApiError` and decides whether to
retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from millbeck.client.addresses import Address
from millbeck.client.errors import ConnectFailed, Disconnected, RequestTimeout
from millbeck.kernel.environment import Environment
from millbeck.server.network.peer_security import connect_to_peer

if TYPE_CHECKING:
    from millbeck.client.connection import Connection, ConnectionSettings

R = TypeVar("R")

IN_FLIGHT_MAX: Final = 64


class BrokerConnections:
    def __init__(
        self,
        environment: Environment,
        *,
        node_id: int,
        address_of: Callable[[int], Address | None],
        connection_settings: Callable[[], ConnectionSettings],
    ) -> None:
        self._environment = environment
        self._node_id = node_id
        self._address_of = address_of
        self._connection_settings = connection_settings
        self._connections: dict[tuple[int, str], Connection] = {}
        self._opening: dict[tuple[int, str], asyncio.Lock] = {}
        self._is_closed = False

    async def request(self, node_id: int, purpose: str, message: object, response: type[R], *, timeout_s: float) -> R:
        """Send a request and return the response; raises `ApiError` when there is none in time.

        The timeout includes connecting, and waiting for other requests that connect: a broker that cannot be reached
        does not refuse connections, so each attempt takes the whole connection timeout.
        """
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        try:
            async with asyncio.timeout_at(deadline_s):
                connection = await self._connect(node_id, purpose)
        except TimeoutError:
            raise RequestTimeout(f"no connection to broker {node_id} within {round(timeout_s * 1000)} ms") from None
        return await connection.request(message, response, timeout_s=deadline_s - loop.time())

    def close(self) -> None:
        """Close the connections; requests in flight fail with `Disconnected`."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close(Disconnected("this node is shutting down"))
        self._connections.clear()

    async def _connect(self, node_id: int, purpose: str) -> Connection:
        key = (node_id, purpose)
        async with self._opening.setdefault(key, asyncio.Lock()):
            if self._is_closed:
                raise Disconnected("this node is shutting down")
            address = self._address_of(node_id)
            known = self._connections.get(key)
            if known is not None and known.is_open and known.address == address:
                return known
            if known is not None:
                self._connections.pop(key).close(Disconnected("the address of the broker has changed"))
            if address is None:
                raise ConnectFailed(f"broker {node_id} has no address")
            settings = replace(
                self._connection_settings(), client_id=f"broker-{self._node_id}-{purpose}", in_flight_max=IN_FLIGHT_MAX
            )
            connection = self._connections[key] = await connect_to_peer(self._environment.network, address, settings)
            return connection
