"""Names for the numbers that travel through the whole system."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple, NewType

NodeId = NewType("NodeId", int)
BrokerEpoch = NewType("BrokerEpoch", int)
Uuid = bytes
"""16 raw bytes; `ZERO_UUID` means absent. Text form: `uuid_text`."""

ZERO_UUID: Uuid = bytes(16)


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def uuid_text(value: Uuid) -> str:
    """Kafka's text form: URL-safe base64 without padding, 22 characters."""
    return urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> Uuid:
    """The inverse of `uuid_text`; raises ValueError for anything that is not 16 bytes."""
    value = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if len(value) != 16:
        raise ValueError(f"{text!r} is not a 22-character base64 uuid")
    return value
