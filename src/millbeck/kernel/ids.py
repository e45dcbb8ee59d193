"""Types of identifiers that are used everywhere: node ids, broker epochs, UUIDs, topic partitions."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
BrokerEpoch = NewType("BrokerEpoch", int)
Uuid = bytes
"""A UUID as 16 raw bytes; `ZERO_UUID` means absent. See `uuid_text` for the text form."""

_UUID_SIZE = 16
_BATCH_NOTES = re.compile("millbeck-[0-9a-f]{24}")
_UUID_TEXT = re.compile("[A-Za-z0-9_-]{22}", re.ASCII)

ZERO_UUID: Uuid = bytes(_UUID_SIZE)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(value: Uuid) -> str:
    """Kafka's text form: URL-safe base64 without padding, 22 characters."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> Uuid:
    """The inverse of `uuid_text`. Raises ValueError for anything else."""
    if _UUID_TEXT.fullmatch(text):
        value = urlsafe_b64decode(text + "==")
        # The last character has two significant bits and four that must be zero, which the decoder does not check.
        if uuid_text(value) == text:
            return value
    raise ValueError(f"{text[:40]!r} is not a uuid of 22 base64 characters")


def holds_batch_notes(group_id: str) -> bool:
    """Whether the group is named by an exactly-once sink on Spark, which notes its batches there.

    Nobody consumes as such a group, so its lag means nothing: listings and metrics of lag leave it out.
    """
    return _BATCH_NOTES.fullmatch(group_id) is not None
