"""Who is alive: the active controller's memory of the brokers' heartbeats.

This is the one thing the controller knows that is not in the metadata log. It is made anew when a controller becomes
active, with a fresh session for every broker, and forgotten when it no longer is. It never reads a clock; times are
those of the monotonic one, in milliseconds. Whether a broker is fenced is the image's to say, and a fenced one has no
session: it neither keeps its id from a new process nor can it expire.
"""

from __future__ import annotations

from millbeck.metadata.image import BrokerRegistration, MetadataImage


class _Session:
    __slots__ = ("contact_ms", "epoch", "metadata_offset", "registration_offset", "shutdown_offset")

    def __init__(self, epoch: int, now_ms: int) -> None:
        self.epoch = epoch
        self.contact_ms = now_ms
        self.metadata_offset = -1
        self.registration_offset = epoch
        self.shutdown_offset: int | None = None


class HeartbeatTracker:
    """Sessions by broker; one whose broker has registered anew is replaced by a fresh one."""

    def __init__(self, session_timeout_ms: int) -> None:
        self.session_timeout_ms = session_timeout_ms
        self._sessions: dict[int, _Session] = {}

    def begin(self, image: MetadataImage, now_ms: int) -> None:
        """A controller takes over: it has heard of nobody yet, and gives everybody the time to be heard."""
        self._sessions = {}
        for broker_id in sorted(image.cluster.brokers):
            self._session(image.cluster.brokers[broker_id], now_ms)

    def has_session(self, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether the registered process may be alive."""
        if broker.is_fenced:
            return False
        return self._session(broker, now_ms).contact_ms + self.session_timeout_ms >= now_ms

    def registered(self, broker: BrokerRegistration, *, offset: int, now_ms: int) -> None:
        """The broker's registration is, or is amended, at that offset."""
        session = self._session(broker, now_ms)
        session.contact_ms = now_ms
        session.registration_offset = offset

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def heard(self, broker: BrokerRegistration, *, metadata_offset: int, now_ms: int) -> None:
        session = self._session(broker, now_ms)
        session.contact_ms = now_ms
        session.metadata_offset = metadata_offset

    def is_caught_up(self, broker: BrokerRegistration, metadata_offset: int, now_ms: int) -> bool:
        """Whether a broker at that offset has seen its own registration, and so all that came before it."""
        return metadata_offset >= self._session(broker, now_ms).registration_offset

    # Controlled shutdown.

    def shutdown_begun(self, broker: BrokerRegistration, *, offset: int, now_ms: int) -> None:
        """The last record of the hand-over is at ``offset``; the first one counts when it is begun again."""
        session = self._session(broker, now_ms)
        if session.shutdown_offset is None:
            session.shutdown_offset = offset

    def shutdown_ended(self, broker_id: int) -> None:
        session = self._sessions.get(broker_id)
        if session is not None:
            session.shutdown_offset = None

    def is_shutting_down(self, broker: BrokerRegistration, now_ms: int) -> bool:
        return not broker.is_fenced and self._session(broker, now_ms).shutdown_offset is not None

    def all_have_seen_shutdown(self, image: MetadataImage, broker: BrokerRegistration, now_ms: int) -> bool:
        """Whether every active broker knows by now that this one leads nothing any more."""
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

    def stale_broker(self, image: MetadataImage, now_ms: int) -> BrokerRegistration | None:
        """The broker not heard of for longest, if that is too long."""
        candidates = [
            (self._session(broker, now_ms).contact_ms, broker_id)
            for broker_id, broker in sorted(image.cluster.brokers.items())
            if not broker.is_fenced
        ]
        if not candidates:
            return None
        contact_ms, broker_id = min(candidates)
        return image.cluster.brokers[broker_id] if contact_ms + self.session_timeout_ms < now_ms else None

    def next_expiry_ms(self, image: MetadataImage, now_ms: int) -> int:
        """When to look for a stale broker again; a session that begins later expires later than that."""
        contacts = [
            self._session(broker, now_ms).contact_ms
            for broker in image.cluster.brokers.values()
            if not broker.is_fenced
        ]
        return min(contacts, default=now_ms) + self.session_timeout_ms + 1

    def prolong(self, late_ms: int, now_ms: int) -> None:
        """The controller itself was not running for so long: nobody could be heard, and nobody is blamed."""
        for session in self._sessions.values():
            session.contact_ms = min(session.contact_ms + late_ms, now_ms)

    def _session(self, broker: BrokerRegistration, now_ms: int) -> _Session:
        session = self._sessions.get(broker.broker_id)
        if session is None or session.epoch != broker.epoch:
            session = self._sessions[broker.broker_id] = _Session(broker.epoch, now_ms)
        return session
