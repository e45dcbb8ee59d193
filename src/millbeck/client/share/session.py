"""The consumer's side of a share session with one broker: partitions to fetch and acknowledgements to send. Pure.

The broker remembers the session's partitions; each request carries only changes, and the acknowledgements since the
last one. After an error the session starts over: the records acquired in it are released to others, so pending
acknowledgements are no longer valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from millbeck.kernel.units import INT_MAX
from millbeck.wire.messages import share_fetch as share_fetch_messages

FINAL_EPOCH: Final = -1
RECORD_LIMIT: Final = 1

Place = tuple[bytes, int]
"""A topic id and a partition."""


class AcknowledgeType(IntEnum):
    """What a member says of a record: done (ACCEPT), to be delivered again (RELEASE), or never again (REJECT)."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class ShareFetchLimits(NamedTuple):
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    is_record_limit: bool


Acknowledgements = dict[Place, dict[int, AcknowledgeType]]


class ShareSessionHandler:
    def __init__(self, group_id: str, member_id: str) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self.epoch = 0
        self._partitions: dict[Place, None] = {}
        self._acknowledgements: Acknowledgements = {}

    @property
    def is_open(self) -> bool:
        return self.epoch != 0

    @property
    def has_acknowledgements(self) -> bool:
        return bool(self._acknowledgements)

    def acknowledge(self, place: Place, offset: int, kind: AcknowledgeType) -> None:
        self._acknowledgements.setdefault(place, {})[offset] = kind

    def take_acknowledgements(self) -> Acknowledgements:
        acknowledgements, self._acknowledgements = self._acknowledgements, {}
        return acknowledgements

    def fetch_request(
        self, wanted: Iterable[Place], limits: ShareFetchLimits, acknowledgements: Acknowledgements
    ) -> share_fetch_messages.ShareFetchRequest:
        wanted = dict.fromkeys(wanted)
        added = [place for place in wanted if place not in self._partitions]
        forgotten = [place for place in self._partitions if place not in wanted]
        topics: dict[bytes, list[share_fetch_messages.ShareFetchPartition]] = {}
        for topic_id, index in dict.fromkeys([*added, *acknowledgements]):
            batches = [
                share_fetch_messages.AcknowledgementBatch(*each)
                for each in _batches(acknowledgements.get((topic_id, index), {}))
            ]
            topics.setdefault(topic_id, []).append(share_fetch_messages.ShareFetchPartition(index, batches))
        gone: dict[bytes, list[int]] = {}
        for topic_id, index in forgotten:
            gone.setdefault(topic_id, []).append(index)
        # A partition with acknowledgements stays in the session even if it is not fetched any more.
        self._partitions = dict.fromkeys(
            [*wanted, *[place for place in acknowledgements if place not in wanted and place not in forgotten]]
        )
        return share_fetch_messages.ShareFetchRequest(
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
            [share_fetch_messages.ShareFetchTopic(topic_id, partitions) for topic_id, partitions in topics.items()],
            [share_fetch_messages.ForgottenShareTopic(topic_id, indexes) for topic_id, indexes in gone.items()],
        )

    def acknowledge_request(
        self, acknowledgements: Acknowledgements, *, is_last: bool = False
    ) -> share_fetch_messages.ShareAcknowledgeRequest:
        topics: dict[bytes, list[share_fetch_messages.AcknowledgePartition]] = {}
        for (topic_id, index), offsets in acknowledgements.items():
            batches = [share_fetch_messages.AcknowledgementBatch(*each) for each in _batches(offsets)]
            topics.setdefault(topic_id, []).append(share_fetch_messages.AcknowledgePartition(index, batches))
        is_renewing = any(AcknowledgeType.RENEW in offsets.values() for offsets in acknowledgements.values())
        return share_fetch_messages.ShareAcknowledgeRequest(
            self._group_id,
            self._member_id,
            FINAL_EPOCH if is_last else self.epoch,
            is_renewing,
            [share_fetch_messages.AcknowledgeTopic(topic_id, partitions) for topic_id, partitions in topics.items()],
        )

    def answered(self) -> None:
        """Record that the broker has accepted the last request."""
        self.epoch = 1 if self.epoch == INT_MAX else self.epoch + 1

    def reset(self) -> Acknowledgements:
        """Start a new session; returns the unsent acknowledgements, which are no longer valid."""
        self.epoch = 0
        self._partitions = {}
        return self.take_acknowledgements()


def _batches(offsets: dict[int, AcknowledgeType]) -> list[tuple[int, int, list[int]]]:
    """Combine consecutive offsets with the same acknowledgement type into ranges."""
    found: list[tuple[int, int, list[int]]] = []
    for offset in sorted(offsets):
        kind = int(offsets[offset])
        if found and found[-1][1] + 1 == offset and found[-1][2] == [kind]:
            found[-1] = (found[-1][0], offset, [kind])
        else:
            found.append((offset, offset, [kind]))
    return found
