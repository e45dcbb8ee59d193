"""Broker sessions: the active controller's in-memory state of heartbeats.

This is the only state of the controller that is not in the metadata log. A controller that becomes active starts a new
session for every broker; the sessions are dropped when it is no longer active. It never reads a clock; times are in
milliseconds of a monotonic clock. Whether a broker is fenced is in the metadata image. A fenced broker has no session
that could expire, and a new process may register with its id.

A heartbeat counts as contact when it arrives (`touch`), not when it is processed: a busy controller, or one whose
appends are slow, does not fence live brokers.
"""

from __future__ import annotations

from collections.abc import Container

from millbeck.metadata.image import BrokerRegistration, MetadataImage


class _Session:
    __slots__ = ("contact_ms", "epoch", "is_partly_fenced", "metadata_offset", "registration_offset", "shutdown_offset")

    def __init__(self, epoch: int, now_ms: int) -> None:
        self.epoch = epoch
        self.contact_ms = now_ms
        self.metadata_offset = -1
        self.registration_offset = epoch
        self.shutdown_offset: int | None = None
        self.is_partly_fenced = False


class HeartbeatTracker:
    """Sessions by broker; a new registration starts a new session."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def begin(self, image: MetadataImage, now_ms: int) -> None:
        """Start a session for every broker, because this controller has just become active."""
        self._sessions = {}
        for broker_id in sorted(image.cluster.brokers):
            broker = image.cluster.brokers[broker_id]
            # The previous active controller may have begun to fence it.
            self._session(broker, now_ms).is_partly_fenced = not broker.is_fenced

    def has_session(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether the broker's session has not expired."""
        if broker.is_fenced:
            return False
        return self._session(broker, now_ms).contact_ms + self.session_timeout_ms >= now_ms

    def registered(self, broker: BrokerRegistration, *, offset: int, now_ms: int) -> None:
        """Record the offset of the broker's registration or of its last change."""
        session = self._session(broker, now_ms)
        session.contact_ms = now_ms
        session.registration_offset = offset

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def touch(self, broker_id: int, broker_epoch: int, now_ms: int) -> None:
        """Renew the session when a heartbeat arrives; only the registered epoch counts."""
        session = self._sessions.get(broker_id)
        if session is not None and session.epoch == broker_epoch:
            session.contact_ms = now_ms

    def last_contact_ms(self, broker: BrokerRegistration, now_ms: int) -> int:
        return self._session(broker, now_ms).contact_ms

    def heartbeat_received(self, broker: BrokerRegistration, *, metadata_offset: int, now_ms: int) -> None:
        session = self._session(broker, now_ms)
        session.contact_ms = now_ms
        session.metadata_offset = metadata_offset
        session.is_partly_fenced = False

    def is_caught_up(self, broker: BrokerRegistration, metadata_offset: int, now_ms: int) -> bool:
        """Whether a broker at that offset has replayed its own registration."""
        return metadata_offset >= self._session(broker, now_ms).registration_offset

    # Controlled shutdown.

    def begin_controlled_shutdown(self, broker: BrokerRegistration, *, offset: int, now_ms: int) -> None:
        """Start a controlled shutdown, whose last record is at ``offset``; a repeated start keeps the first."""
        session = self._session(broker, now_ms)
        if session.shutdown_offset is None:
            session.shutdown_offset = offset

    def end_controlled_shutdown(self, broker_id: int) -> None:
        session = self._sessions.get(broker_id)
        if session is not None:
            session.shutdown_offset = None

    def is_shutting_down(self, broker: BrokerRegistration, now_ms: int) -> bool:
        return not broker.is_fenced and self._session(broker, now_ms).shutdown_offset is not None

    def can_shut_down(self, image: MetadataImage, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether all active brokers have replayed the records that moved leadership away from this broker."""
        offset = self._session(broker, now_ms).shutdown_offset
        if offset is None:
            return False
        for broker_id in sorted(image.cluster.brokers):
            other = image.cluster.brokers[broker_id]
            if other.is_fenced:
                continue
            session = self._session(other, now_ms)
            if session.shutdown_offset is None and session.metadata_offset < offset:
                return False
        return True

    # Expiry.

    def fencing_begun(self, broker_id: int) -> None:
        """Record that the broker is being removed from its partitions; a heartbeat may arrive before all are done."""
        session = self._sessions.get(broker_id)
        if session is not None:
            session.is_partly_fenced = True

    def is_partly_fenced(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether fencing may have begun since the last processed heartbeat."""
        return self._session(broker, now_ms).is_partly_fenced

    def find_stale_broker(
        self, image: MetadataImage, now_ms: int, ignored: Container[object] = ()
    ) -> BrokerRegistration | None:
        """The broker with the oldest heartbeat, if its session has expired."""
        candidates = [
            (self._session(broker, now_ms).contact_ms, broker_id)
            for broker_id, broker in sorted(image.cluster.brokers.items())
            if not broker.is_fenced and broker_id not in ignored
        ]
        if not candidates:
            return None
        contact_ms, broker_id = min(candidates)
        return image.cluster.brokers[broker_id] if contact_ms + self.session_timeout_ms < now_ms else None

    def next_expiry_ms(self, image: MetadataImage, now_ms: int, ignored: Container[object] = ()) -> int:
        """The time of the next possible session expiry."""
        contacts = [
            self._session(broker, now_ms).contact_ms
            for broker in image.cluster.brokers.values()
            if not broker.is_fenced and broker.broker_id not in ignored
        ]
        return min(contacts, default=now_ms) + self.session_timeout_ms + 1

    def prolong(self, late_ms: int, now_ms: int) -> None:
        """Extend all sessions by the time in which the controller itself was not running."""
        for session in self._sessions.values():
            session.contact_ms = min(session.contact_ms + late_ms, now_ms)

    def _session(self, broker: BrokerRegistration, now_ms: int) -> _Session:
        session = self._sessions.get(broker.broker_id)
        if session is None or session.epoch != broker.epoch:
            session = self._sessions[broker.broker_id] = _Session(broker.epoch, now_ms)
        return session
