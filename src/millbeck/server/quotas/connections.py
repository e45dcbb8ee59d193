"""Connection creation rates (KIP-612): of a broker, of one listener, and of one address.

``max.connection.creation.rate`` limits a broker or a listener: after a connection over the rate no other is accepted
until the rate has fallen, and none is closed for it.

``connection_creation_rate`` is a quota of an address, or the default for each other one. A connection over it is closed
before TLS, and does not count. Kafka closes it after the throttle time; here it is closed at once, so that it costs no
memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millbeck.controller.client_quotas import CONNECTION_CREATION_RATE, IP
from millbeck.metadata.image.client_quotas import QuotaEntity
from millbeck.server.quotas.rates import WindowedRate

ADDRESSES_MAX = 10_000
"""The maximum number of addresses counted; the oldest is dropped first."""


class AcceptRate:
    """Counts the connections that a broker, or one listener, accepts, and how long to wait for the next."""

    def __init__(self, rate: WindowedRate, *, window_ms: int) -> None:
        self._rate = rate
        self._window_ms = window_ms
        self.limit: int | None = None
        """The maximum of connections per second; None means no limit."""

    def accepted(self, now_ms: int) -> int:
        """Count one connection; returns the time until another one may be accepted."""
        if self.limit is None:
            return 0
        self._rate.record(1, now_ms)
        if not self.limit:
            return self._window_ms  # as in Kafka, where a rate of 0 is one connection in each window
        return self._rate.throttle_ms(self.limit, now_ms)


class ConnectionRates:
    def __init__(self, make_rate: Callable[[], WindowedRate], now_ms: Callable[[], int]) -> None:
        self._make_rate = make_rate
        self._now_ms = now_ms
        self._quotas: dict[str | None, float] = {}
        self._rates: dict[str, WindowedRate] = {}
        self.refused_count = 0

    @property
    def is_set(self) -> bool:
        return bool(self._quotas)

    def follow(self, by_entity: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Apply the quotas of a metadata image; counts are kept."""
        self._quotas = {
            entity[0][1]: quotas[CONNECTION_CREATION_RATE]
            for entity, quotas in by_entity.items()
            if entity[0][0] == IP and CONNECTION_CREATION_RATE in quotas
        }
        if not self._quotas:
            self._rates.clear()

    def admits(self, host: str) -> bool:
        """Whether an address may open one more connection now; an admitted connection is counted."""
        quota = self._quotas.get(host, self._quotas.get(None))
        if quota is None:
            return True
        rate = self._rates.get(host)
        if rate is None:
            if len(self._rates) >= ADDRESSES_MAX:
                del self._rates[next(iter(self._rates))]
            rate = self._rates[host] = self._make_rate()
        now_ms = self._now_ms()
        rate.record(1, now_ms)
        if rate.throttle_ms(quota, now_ms):
            rate.record(-1, now_ms)
            self.refused_count += 1
            return False
        return True
