"""Names for the numbers that travel through the whole system."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
BrokerEpoch = NewType("BrokerEpoch", int)
Uuid = bytes
"""16 raw bytes; `ZERO_UUID` means absent. Text form: `uuid_text`."""

_UUID_SIZE = 16
_UUID_TEXT_LENGTH = 22

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
    """The inverse of `uuid_text`; raises ValueError for anything else."""
    if len(text) == _UUID_TEXT_LENGTH:
        # The decoder skips what is not base64 and ignores surplus bits, so the way back is the check.
        value = urlsafe_b64decode(text.encode("ascii", "replace") + b"==")
        if len(value) == _UUID_SIZE and uuid_text(value) == text:
            return value
    raise ValueError(f"{text[:40]!r} is not a uuid of {_UUID_TEXT_LENGTH} base64 characters")
