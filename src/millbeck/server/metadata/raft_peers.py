"""Connections to the other quorum members, over which the raft state machine's requests are sent.

Each address has two connections: one for fetches, whose responses the leader may delay, and one for all other requests,
which must not wait behind a fetch. A connection is opened on first use and dropped when it fails; the state machine
decides when to retry. At most `WAITING_MAX` requests wait for a connection to open; further ones fail at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InconsistentClusterId
from millbeck.raft.messages import FetchRequest, Request, Response, SnapshotRequest
from millbeck.records.control import VoterEndpoint
from millbeck.server.metadata import raft_messages
from millbeck.server.metadata.quorum_settings import QuorumSettings
from millbeck.server.network.peer_security import LoginRefused, connect_to_peer

WAITING_MAX: Final = 64

logger = logging.getLogger(__name__)

OnAnswer = Callable[[Response | None], None]


class _PeerConnection:
    """A connection to an address, with the requests that wait for it to open."""

    __slots__ = ("connection", "is_opening", "waiting")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.is_opening = False
        self.waiting: list[tuple[Request, OnAnswer]] = []


class RaftClient:
    def __init__(
        self,
        environment: Environment,
        settings: QuorumSettings,
        *,
        node_id: int,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._network = environment.network
        self._settings = settings
        self._spawn = spawn
        self._peers: dict[tuple[Address, bool], _PeerConnection] = {}
        self._logged_errors: dict[Address, str] = {}
        """The last logged error of each unreachable address, so that it is logged once."""
        self._is_closed = False
        timeout_s = settings.timeouts.request_ms / 1000
        self._timeout_s = timeout_s
        self._connection_settings = ConnectionSettings(
            client_id=f"raft-client-{node_id}",
            connect_timeout_s=timeout_s,
            tls=settings.security.tls,
            sasl=settings.security.sasl,
        )

    def send(self, endpoint: VoterEndpoint, request: Request, on_answer: OnAnswer) -> None:
        """Send a request; ``on_answer`` is called once, later, with None when there is no response in time."""
        if self._is_closed:
            return
        address = Address(endpoint.host, endpoint.port)
        peer = self._peers.setdefault((address, isinstance(request, FetchRequest | SnapshotRequest)), _PeerConnection())
        if peer.connection is not None and peer.connection.is_open and peer.connection.has_room:
            self._submit(peer.connection, request, on_answer)
            return
        if peer.connection is not None and peer.connection.is_open:
            # More requests are in flight than a healthy member ever has: the connection is stuck.
            peer.connection.close()
        peer.connection = None
        if len(peer.waiting) < WAITING_MAX:
            peer.waiting.append((request, on_answer))
        else:
            self._spawn(_fail_request(on_answer))
        if not peer.is_opening:
            peer.is_opening = True
            self._spawn(self._open(address, peer))

    def close(self) -> None:
        self._is_closed = True
        for peer in self._peers.values():
            if peer.connection is not None:
                peer.connection.close()
        self._peers.clear()

    async def _open(self, address: Address, peer: _PeerConnection) -> None:
        try:
            connection = await connect_to_peer(self._network, address, self._connection_settings)
        except (ApiError, OSError) as error:
            level = logging.WARNING if isinstance(error, LoginRefused) else logging.INFO
            self._log_error(address, level, str(error))
            connection = None
        finally:
            peer.is_opening = False
        waiting, peer.waiting = peer.waiting, []
        if connection is not None and self._is_closed:
            connection.close()
            return
        peer.connection = connection
        for request, on_answer in waiting:
            if connection is None:
                on_answer(None)
            else:
                self._submit(connection, request, on_answer)

    def _submit(self, connection: Connection, request: Request, on_answer: OnAnswer) -> None:
        settings = self._settings
        outgoing = raft_messages.to_wire_request(
            request,
            cluster_id=settings.cluster_id or None,
            fetch_bytes_max=settings.fetch_bytes_max,
            snapshot_bytes_max=settings.fetch_snapshot_bytes_max,
            wait_ms=settings.timeouts.fetch_wait_ms_max,
        )

        def complete(outcome: Any) -> None:
            if isinstance(outcome, ApiError):
                on_answer(None)
                return
            if outcome.error_code == InconsistentClusterId.code:
                what = f"its cluster id differs from this node's, {settings.cluster_id}"
                self._log_error(connection.address, logging.WARNING, what)
            elif self._logged_errors:
                self._logged_errors.pop(connection.address, None)
            on_answer(raft_messages.from_wire_response(outcome, request, settings.listener_name))

        try:
            connection.submit(
                outgoing.message,
                outgoing.response,
                complete,
                timeout_s=self._timeout_s,
                version_min=outgoing.version_min,
            )
        except ApiError as error:
            logger.warning("cannot send a request to the quorum member at %s: %s", connection.address, error)
            on_answer(None)

    def _log_error(self, address: Address, level: int, what: str) -> None:
        if self._logged_errors.get(address) != what:
            self._logged_errors[address] = what
            logger.log(level, "the quorum member at %s is unavailable: %s", address, what)


async def _fail_request(on_answer: OnAnswer) -> None:
    on_answer(None)
