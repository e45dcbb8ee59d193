"""End the sessions of clients whose credentials were deleted (``millbeck.disconnect.on.revoke``).

In Kafka a client stays logged in as long as its connection is open, even if its user was deleted. Here every node
follows the metadata: when a user or token is deleted, or the JAAS entry of a PLAIN user is removed from a listener's
configuration, the sessions that used it are closed. Logins in progress at that time are checked again when they
complete.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from millbeck.metadata.delta import MetadataDelta
from millbeck.security.audit.events import AuditKind, event_of
from millbeck.security.sasl.exchange import PLAIN
from millbeck.security.sasl.jaas import plain_users
from millbeck.security.sasl.scram_messages import BY_NAME
from millbeck.server.loop.tasks import TimeSlices

if TYPE_CHECKING:
    from millbeck.security.sasl.authentication import Session
    from millbeck.server.context import NodeContext
    from millbeck.server.network.connection import Connection
    from millbeck.server.network.listeners import Listeners

CONNECTIONS_AT_ONCE: Final = 500
_REASON: Final = "the credentials of its session were deleted"

log = logging.getLogger(__name__)


class Revocation:
    def __init__(self, node: NodeContext, listening: Listeners) -> None:
        self._node = node
        self._listening = listening
        self._dynamic: Mapping[str, str] = node.config.dynamic
        self._users: dict[str, frozenset[str] | None] = {}
        """The PLAIN users in the JAAS entry of each listener; None if the listener uses the SCRAM users."""
        self.ended_count = 0

    async def follow(self, delta: MetadataDelta) -> None:
        """Close the sessions that must end because of this applied metadata change."""
        dynamic = self._node.config.dynamic
        is_reconfigured = dynamic is not self._dynamic and dynamic != self._dynamic
        self._dynamic = dynamic
        if is_reconfigured:
            self._users.clear()
        is_deleted = None in delta.scram.changed.values() or None in delta.delegation_tokens.changed.values()
        if is_reconfigured or is_deleted:
            await self._end_sessions()

    def is_valid(self, listener: str, session: Session) -> bool:
        """Whether the credentials of a session still exist."""
        image = self._node.image
        if session.principal.is_token:
            return session.login in image.delegation_tokens.by_id
        if session.mechanism in BY_NAME:
            return (BY_NAME[session.mechanism].number, session.login) in image.scram.by_user
        if session.mechanism != PLAIN or self._is_checked_elsewhere(listener):
            return True
        users = self._plain_users(listener)
        if users is None:
            return any((each.number, session.login) in image.scram.by_user for each in BY_NAME.values())
        return session.login in users

    def _is_checked_elsewhere(self, listener: str) -> bool:
        """Whether a plugin checks the passwords of PLAIN: it alone knows which users there are."""
        settings = self._node.config.sasl(listener).mechanisms.get(PLAIN)
        return settings is not None and settings.checked_by is not None

    def _plain_users(self, listener: str) -> frozenset[str] | None:
        if listener not in self._users:
            settings = self._node.config.sasl(listener).mechanisms.get(PLAIN)
            if settings is not None and settings.verifies_with_scram:
                self._users[listener] = None
            else:
                jaas = None if settings is None else settings.jaas
                self._users[listener] = frozenset() if jaas is None else frozenset(plain_users(jaas))
        return self._users[listener]

    async def _end_sessions(self) -> None:
        slices = TimeSlices(self._node.environment.clock)
        for listener in self._listening.listeners:
            if not listener.address.has_sasl:
                continue
            for number, connection in enumerate(list(listener.connections.values()), 1):
                session = connection.session
                if session is not None and not self.is_valid(listener.address.name, session):
                    self.end(connection, session)
                if number % CONNECTIONS_AT_ONCE == 0:
                    await slices.yield_to_loop()

    def end(self, connection: Connection, session: Session) -> None:
        self.ended_count += 1
        audit = self._node.audit
        if audit is not None:
            audit.record(
                event_of(
                    AuditKind.DISCONNECTED,
                    principal=connection.principal.text,
                    host=connection.peer_host,
                    listener=connection.listener.address.name,
                    mechanism=session.mechanism,
                    reason=_REASON,
                )
            )
        connection.close(_REASON)
