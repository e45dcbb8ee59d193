"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only the changes.

A session is registered with its partitions: an append only marks the partition that grew as ready, so a fetch over
thousands of idle partitions costs nothing per partition, delayed or not. ``ready`` holds what the next fetch must read:
partitions that the client just named, that grew, or that did not fit into the last reply.

Protocol. A request carries (session id, epoch): (0, -1) no session; (0, 0) a full fetch that asks for one; (id, n) the
n-th incremental fetch, n from 1, wrapping to 1; (id, 0) close that one and ask for a new one; (id, -1) close it. A
wrong id is FETCH_SESSION_ID_NOT_FOUND, a wrong epoch INVALID_FETCH_SESSION_EPOCH.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from millbeck.kernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from millbeck.kernel.ids import Uuid
from millbeck.replication.log_read import FetchPosition
from millbeck.replication.partition import Partition

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
EVICTION_IDLE_MS: Final = 120_000
_EPOCH_MAX: Final = 2**31 - 1

EvictionKey = tuple[bool, int, int, bool]
"""Eviction priority of a session: whether it is a follower's, its partition count, its id, and whether it is older than
two minutes."""

PartitionKey = tuple[str | Uuid, int]
"""Topic name, or topic id from version 13 on, and partition."""


class CachedPartition(FetchPosition):
    """One partition of a fetch and, within a session, the values last sent to its client."""

    __slots__ = (
        "last_sent_high_watermark",
        "last_sent_log_start_offset",
        "log_start_offset",
        "partition",
        "partition_index",
        "size_bytes_max",
        "topic",
    )

    def __init__(
        self,
        topic: str | Uuid,
        partition_index: int,
        fetch_offset: int,
        size_bytes_max: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.partition_index = partition_index
        self.fetch_offset = fetch_offset
        self.size_bytes_max = size_bytes_max
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        """The log start offset of the follower."""
        self.partition: Partition | None = None
        self.last_sent_high_watermark = -1
        self.last_sent_log_start_offset = -1

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition_index

    def update_request(self, request: CachedPartition) -> None:
        """Update the fetch position and limits from the client's request."""
        self.fetch_offset = request.fetch_offset
        self.size_bytes_max = request.size_bytes_max
        self.current_leader_epoch = request.current_leader_epoch
        self.last_fetched_epoch = request.last_fetched_epoch
        self.log_start_offset = request.log_start_offset


class FetchSession:
    """Partitions in the order the client named them; a partition that was served moves to the end, so size limits
    rotate."""

    __slots__ = (
        "_by_partition",
        "created_ms",
        "epoch",
        "evictable",
        "is_closed",
        "is_privileged",
        "on_ready",
        "ready",
        "session_id",
        "used_ms",
        "uses_topic_ids",
        "wanted",
    )

    def __init__(self, session_id: int, uses_topic_ids: bool, now_ms: int, is_privileged: bool = False) -> None:
        self.session_id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.is_privileged = is_privileged
        """Whether it is a follower's session, which reads up to the end of the log."""
        self.epoch = 1
        self.is_closed = False
        """Whether it was closed or evicted; a fetch that is delayed is then answered at once, with an error."""
        self.created_ms = now_ms
        self.used_ms = now_ms
        self.evictable: EvictionKey | None = None
        """The session's key in the eviction rankings, as of its last use."""
        self.wanted: dict[PartitionKey, CachedPartition] = {}
        self.ready: dict[PartitionKey, CachedPartition] = {}
        self.on_ready: Callable[[], None] | None = None
        """Wakes the delayed fetch of this session; None when there is none."""
        self._by_partition: dict[Partition, CachedPartition] = {}

    def update(self, named: Iterable[CachedPartition], forgotten: Iterable[PartitionKey]) -> None:
        for key in forgotten:
            self._forget(key)
        for request in named:
            key = request.key
            known = self.wanted.get(key)
            if known is None:
                known = self.wanted[key] = request
            else:
                known.update_request(request)
            self.ready[key] = known

    def watch(self, wanted: CachedPartition, partition: Partition | None) -> None:
        """Bind a cached partition to the current `Partition` of its name (a topic may be deleted and created again)."""
        if wanted.partition is partition:
            return
        if wanted.partition is not None:
            if self.is_privileged:
                wanted.partition.end_watchers.pop(self, None)
            else:
                wanted.partition.watchers.pop(self, None)
            self._by_partition.pop(wanted.partition, None)
        wanted.partition = partition
        if partition is not None:
            if self.is_privileged:
                partition.end_watchers[self] = None
            else:
                partition.watchers[self] = None
            self._by_partition[partition] = wanted

    def readable_end_advanced(self, partition: Partition) -> None:
        wanted = self._by_partition.get(partition)
        if wanted is None:
            return
        self.ready[wanted.key] = wanted
        if self.on_ready is not None:
            self.on_ready()

    def high_watermark_advanced(self, partition: Partition) -> None:
        """Mark as ready without waking the fetch: a follower gets the high watermark with the next reply."""
        wanted = self._by_partition.get(partition)
        if wanted is not None:
            self.ready[wanted.key] = wanted

    def served(self, wanted: CachedPartition) -> None:
        """Move a partition whose records were sent to the end. It stays ready: if the client does not advance, it gets
        them again."""
        key = wanted.key
        for order in (self.ready, self.wanted):
            if order.pop(key, None) is not None:
                order[key] = wanted

    def mark_without_data(self, wanted: CachedPartition) -> None:
        """Remove a partition without new data from ``ready`` until it grows or the client names it again."""
        self.ready.pop(wanted.key, None)

    def _forget(self, key: PartitionKey) -> None:
        wanted = self.wanted.pop(key, None)
        self.ready.pop(key, None)
        if wanted is not None:
            self.watch(wanted, None)

    def close(self) -> None:
        self.is_closed = True
        for key in list(self.wanted):
            self._forget(key)
        if self.on_ready is not None:
            self.on_ready()


class FetchSessions:
    """All sessions of the node, at most ``slots_max`` of them.

    When all slots are taken, a new session may evict one not used for two minutes. Otherwise it may evict the session
    of lowest priority, unless that one has a higher priority than itself: followers before consumers, then more
    partitions before fewer. A session is not evicted in its first two minutes, except a consumer's by a follower.
    """

    def __init__(self, slots_max: int, random_below: Callable[[int], int]) -> None:
        self.slots_max = slots_max
        self.evictions = 0
        self._random_below = random_below
        self._sessions: dict[int, FetchSession] = {}  # least recently used first
        self._evictable_by_all: list[EvictionKey] = []  # lowest priority first
        self._evictable_by_followers: list[EvictionKey] = []

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions_cached(self) -> int:
        return sum(len(session.wanted) for session in self._sessions.values())

    def open(self, size: int, uses_topic_ids: bool, now_ms: int, *, is_privileged: bool = False) -> FetchSession | None:
        """Open a session for ``size`` partitions, a follower's if privileged.

        None when no slot is free: the client then continues with full fetches.
        """
        if size == 0 or (len(self._sessions) >= self.slots_max and not self._evict(size, is_privileged, now_ms)):
            return None
        session_id = 1 + self._random_below(2**31 - 1)
        while session_id in self._sessions:
            session_id = 1 + self._random_below(2**31 - 1)
        session = self._sessions[session_id] = FetchSession(session_id, uses_topic_ids, now_ms, is_privileged)
        self._rank(session, size, now_ms)
        return session

    def next(self, session_id: int, epoch: int, uses_topic_ids: bool, now_ms: int) -> FetchSession:
        """The session of an incremental fetch, with its epoch advanced."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            raise FetchSessionIdNotFound
        self._sessions[session_id] = session
        if epoch != session.epoch:
            raise InvalidFetchSessionEpoch
        if uses_topic_ids != session.uses_topic_ids:
            raise FetchSessionTopicIdError
        session.epoch = session.epoch % _EPOCH_MAX + 1
        session.used_ms = now_ms
        self._rank(session, len(session.wanted), now_ms)
        return session

    def permissions_changed(self) -> Iterator[None]:
        """Check the authorization of every partition in consumers' sessions again with their next fetch, a few sessions
        at a time: partitions the client may no longer read are answered with an error, though they have no new data."""
        for session in list(self._sessions.values()):
            if not session.is_privileged:
                session.ready.update(session.wanted)
                yield

    def close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._withdraw(session)
            session.close()

    def _rank(self, session: FetchSession, size: int, now_ms: int) -> None:
        is_settled = now_ms - session.created_ms > EVICTION_IDLE_MS
        key = (session.is_privileged, size, session.session_id, is_settled)
        if key == session.evictable:
            return
        self._withdraw(session)
        session.evictable = key
        if is_settled:
            insort(self._evictable_by_all, key)
        if is_settled or not session.is_privileged:
            insort(self._evictable_by_followers, key)

    def _withdraw(self, session: FetchSession) -> None:
        key = session.evictable
        if key is not None:
            for ranking in (self._evictable_by_all, self._evictable_by_followers):
                at = bisect_left(ranking, key)
                if at < len(ranking) and ranking[at] == key:
                    del ranking[at]

    def _evict(self, size: int, is_privileged: bool, now_ms: int) -> bool:
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if now_ms - oldest.used_ms > EVICTION_IDLE_MS:
            evicted = oldest.session_id
        else:
            ranking = self._evictable_by_followers if is_privileged else self._evictable_by_all
            if not ranking or (is_privileged, size) < ranking[0][:2]:
                return False
            evicted = ranking[0][2]
        self.close(evicted)
        self.evictions += 1
        return True
