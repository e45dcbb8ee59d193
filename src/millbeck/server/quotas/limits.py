"""Finds the limit that applies to a client among the quotas of one kind, and the bucket that counts its use.

Of the entities with a quota the most specific one applies: user and client id, user and default client id, user,
default user and client id, default user and default client id, default user, client id, default client id. Clients to
which the same entity applies share a bucket, such as all clients of a user with a quota. A default quota applies to
each of its users or client ids separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from millbeck.controller.client_quotas import CLIENT_ID, USER
from millbeck.metadata.image.client_quotas import QuotaEntity

IDLE_MS_MAX: Final = 3_600_000
"""The idle time after which a bucket is dropped, as in Kafka: one hour."""
BUCKETS_MAX: Final = 10_000
"""The maximum number of buckets, because clients choose their ids; the oldest are dropped first."""
CLIENT_ID_LENGTH_MAX: Final = 256
"""The maximum length of client ids that are kept; of longer ones a digest is, so that buckets are bounded in bytes."""
DEFAULT: Final = None
ASKED_EVERY_MS: Final = 1000
CALLBACK: Final = "\0callback"
"""In the place of a user in the owners of buckets that a callback names: no user has this name."""


class Bucket(Protocol):
    used_ms: int


B = TypeVar("B", bound=Bucket)


class Limit(Generic[B]):
    """A quota and the bucket in which its use is counted."""

    __slots__ = ("bucket", "quota")

    def __init__(self, quota: float, bucket: B) -> None:
        self.quota = quota
        self.bucket = bucket


class QuotaCallback(Protocol):
    """Code of a deployment that decides which limit applies to a client (``client.quota.callback.class``)."""

    def quota(self, key: str, user: str, client_id: str, configured: float | None) -> tuple[str, float] | None:
        """The quota ``key`` of a client: a name, which clients that share it have in common, and the limit. None means
        no limit. ``configured`` is the limit that the cluster's quotas give. Must not wait; where it fails,
        ``configured`` holds."""


class QuotaLimits(Generic[B]):
    def __init__(self, key: str, make_bucket: Callable[[], B]) -> None:
        """``key`` is the quota's name, such as ``producer_byte_rate``."""
        self.key = key
        self._make_bucket = make_bucket
        self._quotas: dict[tuple[tuple[str, str | None], ...], float] = {}
        self._found: dict[tuple[str, str], Limit[B] | None] = {}
        self._buckets: dict[tuple[str | None, str | None], B] = {}

    @property
    def is_set(self) -> bool:
        return bool(self._quotas)

    @property
    def bucket_count(self) -> int:
        return len(self._buckets)

    def follow(self, by_entity: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Apply the quotas of a metadata image; counts are kept."""
        self._quotas = {entity: quotas[self.key] for entity, quotas in by_entity.items() if self.key in quotas}
        self._found.clear()
        if not self._quotas:
            self._buckets.clear()

    def of(self, user: str, client_id: str, now_ms: int) -> Limit[B] | None:
        """The limit of a client; None if it has none."""
        if len(client_id) > CLIENT_ID_LENGTH_MAX:
            return self._find(user, client_id, now_ms)
        client = (user, client_id)
        if client in self._found:
            limit = self._found[client]
            if limit is not None:
                limit.bucket.used_ms = now_ms
            return limit
        if len(self._found) >= BUCKETS_MAX:
            self._found.clear()
        limit = self._found[client] = self._find(user, client_id, now_ms)
        return limit

    def _find(self, user: str, client_id: str, now_ms: int) -> Limit[B] | None:
        kept_id = client_id
        if len(client_id) > CLIENT_ID_LENGTH_MAX:
            kept_id = f"{len(client_id)} {sha256(client_id.encode(errors='surrogatepass')).hexdigest()}"
        for entity, owner in (
            (((CLIENT_ID, client_id), (USER, user)), (user, kept_id)),
            (((CLIENT_ID, DEFAULT), (USER, user)), (user, kept_id)),
            (((USER, user),), (user, None)),
            (((CLIENT_ID, client_id), (USER, DEFAULT)), (user, kept_id)),
            (((CLIENT_ID, DEFAULT), (USER, DEFAULT)), (user, kept_id)),
            (((USER, DEFAULT),), (user, None)),
            (((CLIENT_ID, client_id),), (None, kept_id)),
            (((CLIENT_ID, DEFAULT),), (None, kept_id)),
        ):
            quota = self._quotas.get(entity)
            if quota is not None:
                return Limit(quota, self._bucket(owner, now_ms))
        return None

    def _bucket(self, owner: tuple[str | None, str | None], now_ms: int) -> B:
        bucket = self._buckets.get(owner)
        if bucket is None:
            if len(self._buckets) >= BUCKETS_MAX:
                self._make_room(now_ms)
            bucket = self._buckets[owner] = self._make_bucket()
        bucket.used_ms = now_ms
        return bucket

    def _make_room(self, now_ms: int) -> None:
        self._found.clear()
        kept = {owner: each for owner, each in self._buckets.items() if now_ms - each.used_ms < IDLE_MS_MAX}
        while len(kept) >= BUCKETS_MAX:
            del kept[next(iter(kept))]
        self._buckets = kept


class CallbackLimits(QuotaLimits[B]):
    """The limits that a `QuotaCallback` gives; it is asked once a second for each client at most."""

    def __init__(
        self, key: str, make_bucket: Callable[[], B], callback: QuotaCallback, on_failure: Callable[[Exception], None]
    ) -> None:
        super().__init__(key, make_bucket)
        self._callback = callback
        self._on_failure = on_failure
        self._asked_ms = 0

    @property
    def is_set(self) -> bool:
        return True

    def of(self, user: str, client_id: str, now_ms: int) -> Limit[B] | None:
        if now_ms - self._asked_ms >= ASKED_EVERY_MS:
            self._found.clear()
            self._asked_ms = now_ms
        return super().of(user, client_id, now_ms)

    def _find(self, user: str, client_id: str, now_ms: int) -> Limit[B] | None:
        configured = super()._find(user, client_id, now_ms)
        try:
            answer = self._callback.quota(self.key, user, client_id, None if configured is None else configured.quota)
            if answer is None:
                return None
            name, quota = answer
            if not isinstance(name, str) or not 0 < quota < inf:
                raise ValueError(f"{answer!r} is not a name and a limit above 0")
        except Exception as error:
            self._on_failure(error)
            return configured
        return Limit(float(quota), self._bucket((CALLBACK, name), now_ms))
