"""The states of a record in a share group, and what a consumer may say of one it was given.

    AVAILABLE --acquire--> ACQUIRED --accept----------> ACKNOWLEDGED   (final)
                                    --reject, gap-----> ARCHIVED       (final)
                                    --release, expiry-> AVAILABLE, or ARCHIVED after the last delivery
                                    --renew-----------> ACQUIRED, with a new lock

In a group with a dead-letter topic (KIP-1191, share.version 2) what is rejected or was delivered for the last time is
ARCHIVING first, and ARCHIVED once it stands in that topic.

The numbers are Kafka's, on the wire and in the log.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class RecordState(IntEnum):
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    """On its way to the dead-letter topic: nobody's any more, and not over."""
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class AcknowledgeType(IntEnum):
    GAP = 0
    """There is no record at this offset: a consumer found out while it read."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


STATE_AFTER: Final = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class StateBatch(NamedTuple):
    """Consecutive offsets, both ends included, that share a state: what is kept durable of them."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
