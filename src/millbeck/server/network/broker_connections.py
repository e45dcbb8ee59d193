"""Connections to the other brokers, for what leaders and coordinators have to ask each other.

One connection for each broker and purpose, opened when it is needed: a broker answers a connection's requests in order,
so what may take long has a purpose of its own. Whoever asks gets an `ApiError` when there is no answer, and knows best
whether to ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeVar

from millbeck.client.addresses import Address
from millbeck.client.errors import ConnectFailed, Disconnected
from millbeck.kernel.environment import Environment

if TYPE_CHECKING:
    from millbeck.client.connection import Connection, ConnectionSettings

R = TypeVar("R")

IN_FLIGHT_MAX: Final = 64


class Peers:
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
        """A broker's answer; raises `ApiError` when it gives none in time."""
        connection = await self._connect(node_id, purpose)
        return await connection.request(message, response, timeout_s=timeout_s)

    def close(self) -> None:
        """Whoever waits for an answer is told that none will come."""
        self._is_closed = True
        for connection in self._connections.values():
            connection.close(Disconnected("the node stops"))
        self._connections.clear()

    async def _connect(self, node_id: int, purpose: str) -> Connection:
        key = (node_id, purpose)
        async with self._opening.setdefault(key, asyncio.Lock()):
            if self._is_closed:
                raise Disconnected("the node stops")
            address = self._address_of(node_id)
            known = self._connections.get(key)
            if known is not None and known.is_open and known.address == address:
                return known
            if known is not None:
                self._connections.pop(key).close(Disconnected("the broker has moved"))
            if address is None:
                raise ConnectFailed(f"broker {node_id} has no address")
            # A node that is alone never gets here, and starts faster without it.
            from millbeck.client.connection import Connection

            settings = replace(
                self._connection_settings(), client_id=f"broker-{self._node_id}-{purpose}", in_flight_max=IN_FLIGHT_MAX
            )
            connection = self._connections[key] = await Connection.open(self._environment.network, address, settings)
            return connection
