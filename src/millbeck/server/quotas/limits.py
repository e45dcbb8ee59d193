"""Finds the limit that applies to a client among the quotas of one kind, and the bucket that counts its use.

Of the entities with a quota the most specific one applies: user and client id, user and default client id, user,
default user and client id, default user and default client id, default user, client id, default client id. Clients to
which the same entity applies share a bucket, such as all clients of a user with a quota. A default quota applies to
each of its users or client ids separately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
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


class Bucket(Protocol):
    used_ms: int


B = TypeVar("B", bound=Bucket)


class Limit(Generic[B]):
    """A quota and the bucket in which its use is counted."""

    __slots__ = ("bucket", "quota")

    def __init__(self, quota: float, bucket: B) -> None:
        self.quota = quota
        self.bucket = bucket


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
