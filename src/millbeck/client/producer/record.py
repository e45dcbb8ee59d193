"""Records before they are sent, and producer interceptors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol

from millbeck.records.record import Header
from millbeck.records.typevars import K, V

if TYPE_CHECKING:
    from millbeck.client.producer.batch import RecordMetadata


class ProducerRecord(NamedTuple, Generic[K, V]):
    """The arguments of `Producer.send`. With ``partition`` None the partitioner chooses."""

    topic: str
    value: V | None = None
    key: K | None = None
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[Header, ...] = ()


class EncodedRecord(NamedTuple):
    """A record with key and value as bytes."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int | None
    headers: tuple[Header, ...]


Headers = Iterable[Header] | Mapping[str, bytes | None]
"""The headers of a record: pairs of name and value, or a dictionary where each name is there once."""


def checked(partition: int | None, timestamp: int | None, headers: Headers) -> tuple[Header, ...]:
    """The headers as pairs; raises TypeError and ValueError for what cannot be sent."""
    if partition is not None and (not isinstance(partition, int) or isinstance(partition, bool)):
        raise TypeError(f"a partition is a number, not {type(partition).__name__}")
    if timestamp is not None:
        if not isinstance(timestamp, int):
            raise TypeError(f"a timestamp is a whole number of milliseconds, not {type(timestamp).__name__}")
        if not 0 <= timestamp < 1 << 63:
            raise ValueError(f"{timestamp} is not a valid timestamp: it is in milliseconds since 1970")
    pairs = tuple(headers.items() if isinstance(headers, Mapping) else headers)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise TypeError("a header is a name (str) and a value (bytes or None)")
    return pairs


class ProducerInterceptor(Protocol):
    """A producer interceptor: gets every record before it is serialized, and its result. An exception is logged and
    ignored."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record to send, usually the same one."""

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """Called in the event loop when the record was acknowledged or has failed."""


Interceptors = Sequence[ProducerInterceptor]
