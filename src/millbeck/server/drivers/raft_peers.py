"""Connections to the other members of the quorum: what the machine sends goes out here, and comes back as an answer.

Each place has two connections, because a fetch may be held by the leader, and nothing may wait behind it: one for
fetches, one for everything else. They are opened when first needed and given up when they fail; the machine decides
when to try again. At most `WAITING_MAX` questions wait for a connection: what is more is answered with nothing at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InconsistentClusterId
from millbeck.raft.messages import Ask, FetchAsk, Reply, SnapshotAsk
from millbeck.records.control import VoterEndpoint
from millbeck.server.drivers import raft_wire
from millbeck.server.drivers.quorum_settings import QuorumSettings

WAITING_MAX: Final = 64

logger = logging.getLogger(__name__)

OnAnswer = Callable[[Reply | None], None]


class _Line:
    """One connection to one place, and what waits for it to be opened."""

    __slots__ = ("connection", "is_opening", "waiting")

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.is_opening = False
        self.waiting: list[tuple[Ask, OnAnswer]] = []


class RaftPeers:
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
        self._lines: dict[tuple[Address, bool], _Line] = {}
        self._troubles: dict[Address, str] = {}
        """What was said last of each place that does not take part, so that it is said once."""
        self._is_closed = False
        timeout_s = settings.timeouts.request_ms / 1000
        self._timeout_s = timeout_s
        self._connection_settings = ConnectionSettings(
            client_id=f"raft-client-{node_id}", connect_timeout_s=timeout_s, tls=settings.tls
        )

    def send(self, endpoint: VoterEndpoint, ask: Ask, on_answer: OnAnswer) -> None:
        """``on_answer`` is called once, later, with None when there is no answer in time."""
        if self._is_closed:
            return
        address = Address(endpoint.host, endpoint.port)
        line = self._lines.setdefault((address, isinstance(ask, FetchAsk | SnapshotAsk)), _Line())
        if line.connection is not None and line.connection.is_open and line.connection.has_room:
            self._submit(line.connection, ask, on_answer)
            return
        if line.connection is not None and line.connection.is_open:
            # More is under way than a member ever has: it is stuck.
            line.connection.close()
        line.connection = None
        if len(line.waiting) < WAITING_MAX:
            line.waiting.append((ask, on_answer))
        else:
            self._spawn(_answer_with_nothing(on_answer))
        if not line.is_opening:
            line.is_opening = True
            self._spawn(self._open(address, line))

    def close(self) -> None:
        self._is_closed = True
        for line in self._lines.values():
            if line.connection is not None:
                line.connection.close()
        self._lines.clear()

    async def _open(self, address: Address, line: _Line) -> None:
        try:
            connection = await Connection.open(self._network, address, self._connection_settings)
        except (ApiError, OSError) as error:
            self._trouble(address, logging.INFO, str(error))
            connection = None
        finally:
            line.is_opening = False
        waiting, line.waiting = line.waiting, []
        if connection is not None and self._is_closed:
            connection.close()
            return
        line.connection = connection
        for ask, on_answer in waiting:
            if connection is None:
                on_answer(None)
            else:
                self._submit(connection, ask, on_answer)

    def _submit(self, connection: Connection, ask: Ask, on_answer: OnAnswer) -> None:
        settings = self._settings
        asked = raft_wire.question(
            ask,
            cluster_id=settings.cluster_id or None,
            fetch_bytes_max=settings.fetch_bytes_max,
            snapshot_bytes_max=settings.fetch_snapshot_bytes_max,
            wait_ms=settings.timeouts.fetch_wait_ms_max,
        )

        def settle(outcome: Any) -> None:
            if isinstance(outcome, ApiError):
                on_answer(None)
                return
            if outcome.error_code == InconsistentClusterId.code:
                what = f"it belongs to another cluster than this node's, which is {settings.cluster_id}"
                self._trouble(connection.address, logging.WARNING, what)
            elif self._troubles:
                self._troubles.pop(connection.address, None)
            on_answer(raft_wire.reply_of(outcome, ask, settings.listener_name))

        try:
            connection.submit(
                asked.message, asked.response, settle, timeout_s=self._timeout_s, version_min=asked.version_min
            )
        except ApiError as error:
            logger.warning("the quorum's member at %s can not be asked: %s", connection.address, error)
            on_answer(None)

    def _trouble(self, address: Address, level: int, what: str) -> None:
        if self._troubles.get(address) != what:
            self._troubles[address] = what
            logger.log(level, "the quorum's member at %s does not take part: %s", address, what)


async def _answer_with_nothing(on_answer: OnAnswer) -> None:
    on_answer(None)
