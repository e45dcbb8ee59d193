"""A share session as its consumer sees it: what one broker is asked for, and what it has yet to be told. Pure.

The broker knows the partitions it was told of; each request carries only what changed, and what was settled since the
last one. When something goes wrong the session begins anew: whatever was held is then given to others, so what was said
of it meanwhile is void.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from millbeck.kernel.units import INT_MAX
from millbeck.wire.messages import share_acknowledge, share_fetch

FINAL_EPOCH: Final = -1
RECORD_LIMIT: Final = 1

Place = tuple[bytes, int]
"""A topic's id and a partition."""


class AcknowledgeType(IntEnum):
    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class Limits(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    is_record_limit: bool


Said = dict[Place, dict[int, AcknowledgeType]]


class NodeSession:
    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self.epoch = 0
        self._told: dict[Place, None] = {}
        self._said: Said = {}

    @property
    def is_open(self) -> bool:
        return self.epoch != 0

    @property
    def has_something_to_say(self) -> bool:
        return bool(self._said)

    def say(self, place: Place, offset: int, kind: AcknowledgeType) -> None:
        self._said.setdefault(place, {})[offset] = kind

    def take_said(self) -> Said:
        said, self._said = self._said, {}
        return said

    def fetch_request(self, wanted: Iterable[Place], limits: Limits, said: Said) -> share_fetch.ShareFetchRequest:
        wanted = dict.fromkeys(wanted)
        added = [place for place in wanted if place not in self._told]
        forgotten = [place for place in self._told if place not in wanted]
        topics: dict[bytes, list[share_fetch.FetchPartition]] = {}
        for topic_id, index in dict.fromkeys([*added, *said]):
            batches = [share_fetch.AcknowledgementBatch(*each) for each in _batches(said.get((topic_id, index), {}))]
            topics.setdefault(topic_id, []).append(share_fetch.FetchPartition(index, batches))
        gone: dict[bytes, list[int]] = {}
        for topic_id, index in forgotten:
            gone.setdefault(topic_id, []).append(index)
        # A partition that something is said of is in the session even if it is not wanted any more.
        self._told = dict.fromkeys(
            [*wanted, *[place for place in said if place not in wanted and place not in forgotten]]
        )
        return share_fetch.ShareFetchRequest(
            self._group_id,
            self._member_id,
            self.epoch,
            limits.max_wait_ms,
            limits.min_bytes,
            limits.max_bytes,
            limits.max_records,
            limits.max_records,
            RECORD_LIMIT if limits.is_record_limit else 0,
            False,
            [share_fetch.FetchTopic(topic_id, partitions) for topic_id, partitions in topics.items()],
            [share_fetch.ForgottenTopic(topic_id, indexes) for topic_id, indexes in gone.items()],
        )

    def acknowledge_request(self, said: Said, *, is_last: bool = False) -> share_acknowledge.ShareAcknowledgeRequest:
        topics: dict[bytes, list[share_acknowledge.AcknowledgePartition]] = {}
        for (topic_id, index), offsets in said.items():
            batches = [share_acknowledge.AcknowledgementBatch(*each) for each in _batches(offsets)]
            topics.setdefault(topic_id, []).append(share_acknowledge.AcknowledgePartition(index, batches))
        is_renewing = any(AcknowledgeType.RENEW in offsets.values() for offsets in said.values())
        return share_acknowledge.ShareAcknowledgeRequest(
            self._group_id,
            self._member_id,
            FINAL_EPOCH if is_last else self.epoch,
            is_renewing,
            [share_acknowledge.AcknowledgeTopic(topic_id, partitions) for topic_id, partitions in topics.items()],
        )

    def answered(self) -> None:
        """The broker has taken the last request."""
        self.epoch = 1 if self.epoch == INT_MAX else self.epoch + 1

    def reset(self) -> Said:
        """Begin anew; what was said and not sent is void, and returned."""
        self.epoch = 0
        self._told = {}
        return self.take_said()


def _batches(offsets: dict[int, AcknowledgeType]) -> list[tuple[int, int, list[int]]]:
    """Consecutive offsets of which the same is said."""
    found: list[tuple[int, int, list[int]]] = []
    for offset in sorted(offsets):
        kind = int(offsets[offset])
        if found and found[-1][1] + 1 == offset and found[-1][2] == [kind]:
            found[-1] = (found[-1][0], offset, [kind])
        else:
            found.append((offset, offset, [kind]))
    return found
