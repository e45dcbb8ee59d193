"""Records before they are sent, and producer interceptors."""

from __future__ import annotations

from collections.abc import Sequence
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


class ProducerInterceptor(Protocol):
    """A producer interceptor: gets every record before it is serialized, and its result. An exception is logged and
    ignored."""

    def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
        """Return the record to send, usually the same one."""

    def on_acknowledgement(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        """Called in the event loop when the record was acknowledged or has failed."""


Interceptors = Sequence[ProducerInterceptor]
