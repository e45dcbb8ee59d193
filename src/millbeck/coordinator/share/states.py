"""The states of a record in a share group, and what a consumer may say of one it was given.

    AVAILABLE --acquire--> ACQUIRED --accept----------> ACKNOWLEDGED   (final)
                                    --reject, gap-----> ARCHIVED       (final)
                                    --release, expiry-> AVAILABLE, or ARCHIVED after the last delivery
                                    --renew-----------> ACQUIRED, with a new lock

The numbers are Kafka's, on the wire and in the log.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class RecordState(IntEnum):
    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self >= RecordState.ACKNOWLEDGED


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
