"""The committed offsets of all groups of a shard, and the pending ones of open transactions.

All state is in timelines, so that reads see only committed state and a failed write is reverted. An offset committed in
a transaction is pending under its producer id; the transaction's commit marker moves it into the store, an abort marker
discards it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from millbeck.coordinator.group.records import NO_TIMESTAMP, OffsetCommitKey, OffsetCommitValue
from millbeck.coordinator.runtime.shard import NO_PRODUCER_ID
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict

LATEST = (1 << 63) - 1
"""Value of ``at`` that reads the current state, including uncommitted records."""


class OffsetAndMetadata(NamedTuple):
    """A group's committed offset of one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int
    """Expiration time; -1 unless set by a client older than 2.1."""
    topic_id: bytes
    record_offset: int
    """Offset of the commit record: when a transaction ends, the later commit wins."""

    @classmethod
    def from_record(cls, value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
        return cls(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            record_offset,
        )

    @property
    def has_own_expiry(self) -> bool:
        return self.expire_timestamp_ms != NO_TIMESTAMP


Place = tuple[str, int]
"""A topic name and a partition."""
GroupPlace = tuple[str, str, int]


class OffsetStore:
    def __init__(self, registry: SnapshotRegistry) -> None:
        self._registry = registry
        self._by_group: TimelineDict[str, TimelineDict[Place, OffsetAndMetadata]] = TimelineDict(registry)
        self._pending: TimelineDict[int, TimelineDict[GroupPlace, OffsetAndMetadata]] = TimelineDict(registry)
        self._open: TimelineDict[GroupPlace, tuple[int, ...]] = TimelineDict(registry)
        """Producer ids with an open transaction that has committed this offset."""

    # Reading

    def get(self, group_id: str, topic: str, partition: int, at: int = LATEST) -> OffsetAndMetadata | None:
        places = self._places(group_id, at)
        if places is None:
            return None
        return places.get((topic, partition)) if at == LATEST else places.get_at((topic, partition), at)

    def of_group(self, group_id: str, at: int = LATEST) -> dict[Place, OffsetAndMetadata]:
        """All committed offsets of a group, in the order of their first commit."""
        places = self._places(group_id, at)
        if places is None:
            return {}
        return dict(places) if at == LATEST else places.copy_at(at)

    def _places(self, group_id: str, at: int) -> TimelineDict[Place, OffsetAndMetadata] | None:
        return self._by_group.get(group_id) if at == LATEST else self._by_group.get_at(group_id, at)

    def group_ids(self) -> list[str]:
        return list(self._by_group)

    def count(self, group_id: str) -> int:
        return len(self._by_group.get(group_id, ()))

    def __len__(self) -> int:
        return sum(len(places) for places in self._by_group.values())

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has a pending commit for this partition."""
        return (group_id, topic, partition) in self._open

    def has_pending(self, group_id: str) -> bool:
        return any(place[0] == group_id for place in self._open)

    def pending_places(self, group_id: str) -> list[Place]:
        return [(topic, partition) for owner, topic, partition in self._open if owner == group_id]

    def all_pending(self) -> Iterator[tuple[GroupPlace, OffsetAndMetadata]]:
        for places in self._pending.values():
            yield from places.items()

    # Replaying

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, *, offset: int, producer_id: int) -> None:
        if value is None:
            self._remove(key.group, key.topic, key.partition)
        elif producer_id == NO_PRODUCER_ID:
            self._put(key.group, key.topic, key.partition, OffsetAndMetadata.from_record(value, offset))
        else:
            self._put_pending(
                producer_id, (key.group, key.topic, key.partition), OffsetAndMetadata.from_record(value, offset)
            )

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        places = self._pending.pop(producer_id, None)
        if places is None:
            return
        for place, committed in places.items():
            self._close(place, producer_id)
            group_id, topic, partition = place
            known = self.get(group_id, topic, partition)
            # Compaction may have reordered the records: the one with the higher offset is newer.
            if is_committed and (known is None or committed.record_offset > known.record_offset):
                self._put(group_id, topic, partition, committed)

    def _put(self, group_id: str, topic: str, partition: int, committed: OffsetAndMetadata) -> None:
        places = self._by_group.get(group_id)
        if places is None:
            places = self._by_group[group_id] = TimelineDict(self._registry)
        places[topic, partition] = committed

    def _remove(self, group_id: str, topic: str, partition: int) -> None:
        places = self._by_group.get(group_id)
        if places is not None:
            places.pop((topic, partition), None)
            if not places:
                del self._by_group[group_id]
        place = (group_id, topic, partition)
        for producer_id in self._open.pop(place, ()):
            self._pending[producer_id].pop(place, None)

    def _put_pending(self, producer_id: int, place: GroupPlace, committed: OffsetAndMetadata) -> None:
        places = self._pending.get(producer_id)
        if places is None:
            places = self._pending[producer_id] = TimelineDict(self._registry)
        places[place] = committed
        producers = self._open.get(place, ())
        if producer_id not in producers:
            self._open[place] = (*producers, producer_id)

    def _close(self, place: GroupPlace, producer_id: int) -> None:
        others = tuple(other for other in self._open.get(place, ()) if other != producer_id)
        if others:
            self._open[place] = others
        else:
            self._open.pop(place, None)
