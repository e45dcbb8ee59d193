"""The quotas of a broker's clients: bytes produced and fetched, time of the event loop, and changes of partitions.

A request over its quota is answered at once, with the time to wait in the response, and its connection is muted for
that time (KIP-219): nothing is read from it, dropped or reordered. A fetch over its quota is answered without records,
and its bytes do not count, since the client gets them later.

`Broker.quotas` is None while no quota is set: then nothing here is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from millbeck.controller.client_quotas import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)
from millbeck.kernel.errors import ThrottlingQuotaExceeded
from millbeck.metadata.image.client_quotas import ClientQuotasImage
from millbeck.server.config.sections.quotas import QuotaOptions
from millbeck.server.quotas.connections import ConnectionRates
from millbeck.server.quotas.limits import Bucket, CallbackLimits, Limit, QuotaCallback, QuotaLimits
from millbeck.server.quotas.rates import TokenBucket, WindowedRate

if TYPE_CHECKING:
    from millbeck.security.principal import Principal
    from millbeck.server.loop.deadlines import Deadlines

B = TypeVar("B", bound=Bucket)

EXEMPT_APIS: Final = frozenset(
    {17, 18, 36, *(27, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82), *(83, 84, 85, 86, 87)}
)
"""APIs without quotas: authentication, ApiVersions, and requests that only nodes send. Nodes also fetch, on connections
that are marked then."""


class QuotaClient(Protocol):
    """The part of a call that identifies the client for quotas."""

    @property
    def principal(self) -> Principal: ...

    @property
    def client_id(self) -> str | None: ...


class QuotaApi(Protocol):
    """The part of a handler that quotas need."""

    @property
    def api_key(self) -> int: ...


class QuotaCall(QuotaClient, Protocol):
    """The part of a request in flight that quotas need."""

    @property
    def handler(self) -> QuotaApi: ...

    @property
    def connection(self) -> QuotaConnection: ...


class QuotaConnection(Protocol):
    """The part of a connection that quotas need."""

    muted_until_ms: int
    is_lost: bool
    principal: Principal
    peer_host: str
    is_node: bool
    """Whether another node has fetched on it as a replica."""

    def mute(self, until_ms: int) -> None: ...

    def unmute(self) -> None: ...


class ClientQuotas:
    def __init__(
        self,
        options: QuotaOptions,
        deadlines: Deadlines,
        callback: QuotaCallback | None = None,
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """``callback`` decides about the limits of clients, and ``on_failure`` is called with what it raises."""
        self._deadlines = deadlines

        def limits(key: str, make_bucket: Callable[[], B]) -> QuotaLimits[B]:
            if callback is None:
                return QuotaLimits(key, make_bucket)
            return CallbackLimits(key, make_bucket, callback, on_failure)

        make_rate = partial(
            WindowedRate, samples=options.quota_window_num, window_ms=options.quota_window_size_seconds * 1000
        )
        self.produce: QuotaLimits[WindowedRate] = limits(PRODUCER_BYTE_RATE, make_rate)
        self.fetch: QuotaLimits[WindowedRate] = limits(CONSUMER_BYTE_RATE, make_rate)
        self.request: QuotaLimits[WindowedRate] = limits(REQUEST_PERCENTAGE, make_rate)
        self.mutation: QuotaLimits[TokenBucket] = limits(
            CONTROLLER_MUTATION_RATE,
            partial(
                TokenBucket,
                samples=options.controller_quota_window_num,
                window_ms=options.controller_quota_window_size_seconds * 1000,
            ),
        )
        self.connections = ConnectionRates(make_rate, deadlines.now_ms)
        self._fetch_window_s = (options.quota_window_num - 1) * options.quota_window_size_seconds
        self._request_throttle_ms_max = options.quota_window_size_seconds * 1000
        self._image: ClientQuotasImage | None = None
        self.throttled_count = 0
        self.throttled_ms = 0
        self.muted_count = 0
        self.on_long_throttle: Callable[[QuotaConnection, int], None] | None = None
        """Called when a client has to wait for at least `long_throttle_ms`."""
        self.long_throttle_ms = 0

    def follow(self, image: ClientQuotasImage) -> None:
        if image is not self._image:
            self._image = image
            for limits in (self.produce, self.fetch, self.request, self.mutation):
                limits.follow(image.by_entity)
            self.connections.follow(image.by_entity)

    @property
    def is_set(self) -> bool:
        return self.produce.is_set or self.fetch.is_set or self.request.is_set or self.mutation.is_set

    # produce and fetch

    def produced(self, call: QuotaCall, size_bytes: int, *, is_answered: bool) -> int:
        """Count the bytes of a produce request; returns the throttle time of its client."""
        now_ms = self._deadlines.now_ms()
        limit = _limit_of(self.produce, call, now_ms)
        wait_ms = 0
        if limit is not None:
            limit.bucket.record(size_bytes, now_ms)
            wait_ms = limit.bucket.throttle_ms(limit.quota, now_ms)
        return max(wait_ms, self.request_wait_ms(call)) if is_answered else wait_ms

    def fetch_bytes_max(self, call: QuotaCall) -> int | None:
        """The maximum bytes of one fetch response: what the quota allows in all full windows. None means no limit."""
        limit = _limit_of(self.fetch, call, self._deadlines.now_ms())
        return None if limit is None else max(1, int(limit.quota * self._fetch_window_s))

    def fetched(self, call: QuotaCall, size_bytes: int) -> int:
        """Count the bytes of a fetch response, unless the client is throttled; returns the throttle time.

        A batch larger than what the quota allows in all its windows is sent when nothing else was fetched in them.
        """
        now_ms = self._deadlines.now_ms()
        limit = _limit_of(self.fetch, call, now_ms)
        wait_ms = self.request_wait_ms(call)
        if limit is not None:
            is_first = not limit.bucket.rate(now_ms)
            limit.bucket.record(size_bytes, now_ms)
            if not is_first:
                wait_ms = max(wait_ms, limit.bucket.throttle_ms(limit.quota, now_ms))
            if wait_ms:
                limit.bucket.record(-size_bytes, now_ms)
        return wait_ms

    def share_fetched(self, call: QuotaCall, size_bytes: int) -> int:
        """Count the bytes of a share fetch response. It is sent in any case, because its records are already acquired
        by the client."""
        now_ms = self._deadlines.now_ms()
        limit = _limit_of(self.fetch, call, now_ms)
        if limit is None:
            return 0
        limit.bucket.record(size_bytes, now_ms)
        return limit.bucket.throttle_ms(limit.quota, now_ms)

    # time of the event loop

    def handled(self, call: QuotaCall, seconds: float) -> None:
        """Count the event loop time of a request; in ``request_percentage`` 100 is the whole event loop."""
        if _is_exempt(call):
            return
        now_ms = self._deadlines.now_ms()
        limit = _limit_of(self.request, call, now_ms)
        if limit is not None:
            limit.bucket.record(seconds * 100, now_ms)

    def request_wait_ms(self, call: QuotaCall) -> int:
        """The throttle time of a client for the event loop time of its earlier requests."""
        if _is_exempt(call):
            return 0
        now_ms = self._deadlines.now_ms()
        limit = _limit_of(self.request, call, now_ms)
        if limit is None:
            return 0
        return min(limit.bucket.throttle_ms(limit.quota, now_ms), self._request_throttle_ms_max)

    # partitions created and deleted

    def mutations(self, client: QuotaClient, *, is_strict: bool) -> Mutations:
        limit = _limit_of(self.mutation, client, self._deadlines.now_ms())
        return Mutations(limit, self._deadlines.now_ms, is_strict=is_strict)

    # waiting

    def mute(self, connection: QuotaConnection, wait_ms: int) -> None:
        """Mute a connection for this long; a longer mute that is in progress is kept."""
        until_ms = self._deadlines.now_ms() + wait_ms
        self.throttled_count += 1
        self.throttled_ms += wait_ms
        if self.on_long_throttle is not None and wait_ms >= self.long_throttle_ms:
            self.on_long_throttle(connection, wait_ms)
        if connection.is_lost or until_ms <= connection.muted_until_ms:
            return
        if not connection.muted_until_ms:
            self.muted_count += 1
        connection.mute(until_ms)
        self._deadlines.after(wait_ms, partial(self._unmute, connection, until_ms))

    def _unmute(self, connection: QuotaConnection, until_ms: int) -> None:
        if connection.muted_until_ms == until_ms:
            self.muted_count -= 1
            connection.unmute()


class Mutations:
    """The partition changes of one request under the controller mutation quota: one token for each partition created or
    deleted (KIP-599).

    If strict, topics are refused with THROTTLING_QUOTA_EXCEEDED while the bucket is below zero. For older clients all
    changes are accepted, and the client is throttled afterwards.
    """

    def __init__(self, limit: Limit[TokenBucket] | None, now_ms: Callable[[], int], *, is_strict: bool) -> None:
        self._limit = limit
        self._now_ms = now_ms
        self._is_strict = is_strict

    def take(self, partition_count: int) -> None:
        """Take tokens for partition changes. Raises `ThrottlingQuotaExceeded`."""
        limit = self._limit
        if limit is None:
            return
        now_ms = self._now_ms()
        if self._is_strict and limit.bucket.tokens(limit.quota, now_ms) < 0:
            raise ThrottlingQuotaExceeded("The throttling quota has been exceeded.")
        limit.bucket.take(partition_count, limit.quota, now_ms)

    def wait_ms(self) -> int:
        """The throttle time of the client after this request."""
        return 0 if self._limit is None else self._limit.bucket.throttle_ms(self._limit.quota, self._now_ms())


UNLIMITED: Final = Mutations(None, lambda: 0, is_strict=False)


def _is_exempt(call: QuotaCall) -> bool:
    return call.handler.api_key in EXEMPT_APIS or call.connection.is_node


def _limit_of(limits: QuotaLimits[B], client: QuotaClient, now_ms: int) -> Limit[B] | None:
    return limits.of(client.principal.name, client.client_id or "", now_ms) if limits.is_set else None
