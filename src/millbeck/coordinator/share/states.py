"""The states of a record in a share group, and the acknowledge types.

    AVAILABLE --acquire--> ACQUIRED --accept----------> ACKNOWLEDGED   (final)
                                    --reject, gap-----> ARCHIVED       (final)
                                    --release, expiry-> AVAILABLE, or ARCHIVED after the last delivery
                                    --renew-----------> ACQUIRED, with a new lock

In a group with a dead-letter topic (KIP-1191, share.version 2) a record that is rejected or reaches the delivery limit
is ARCHIVING first, and ARCHIVED once it is in that topic.

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
    """Being written to the dead-letter topic: owned by no member, and not final."""
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class AcknowledgeType(IntEnum):
    GAP = 0
    """A consumer found no record at this offset."""
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
    """Consecutive offsets (inclusive) in the same state, as stored."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
