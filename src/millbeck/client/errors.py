"""Errors raised by the client itself.

Each is a `kernel.errors.ApiError`, so that one ``except`` catches errors of the broker and of the connection to it; a
class here keeps the error code and the retriable flag of its parent.
"""

from __future__ import annotations

from millbeck.kernel.errors import (
    ApiError,
    BrokerNotAvailable,
    GroupIdNotFound,
    InvalidRequest,
    LeaderNotAvailable,
    NetworkException,
    OffsetOutOfRange,
    RequestTimedOut,
    TransactionAbortable,
    UnknownMemberId,
    UnsupportedVersion,
    from_code,
)
from millbeck.kernel.ids import TopicPartition


class Disconnected(NetworkException):
    """The connection was closed before the response arrived."""


class ConnectFailed(Disconnected):
    """The broker is unreachable."""


class ConnectionClosed(Disconnected):
    """The connection was closed by the client."""


class RequestTimeout(RequestTimedOut):
    """No response arrived within the timeout."""


class ProtocolViolation(NetworkException):
    """The peer sent something other than the expected response."""


class UnsupportedByBroker(UnsupportedVersion):
    """The broker does not support this API, or no version of it that this client supports."""


class NoBrokerReachable(BrokerNotAvailable):
    """No broker answered."""

    retriable = True


class ClientClosed(NetworkException):
    """The client has been closed."""

    retriable = False


class BufferExhausted(RequestTimedOut):
    """``buffer.memory`` was full for longer than ``max.block.ms``."""


class DeliveryTimeout(RequestTimedOut):
    """A record was not acknowledged within ``delivery.timeout.ms``."""


class TransactionAborted(TransactionAbortable):
    """The record belongs to a transaction that its producer has aborted."""


class NoOffsetForPartition(OffsetOutOfRange):
    """There is no committed offset and ``auto.offset.reset`` is none."""


class PartitionUnavailable(LeaderNotAvailable):
    """A partition has had no readable leader for ``request.timeout.ms``."""

    retriable = False


class LogTruncated(OffsetOutOfRange):
    """The log was truncated below this consumer's position, and ``auto.offset.reset`` is none."""


class BufferFull(BufferExhausted):
    """``buffer.memory`` is full, and `send_nowait` does not wait."""


class WrongEventLoop(InvalidRequest):
    """The client is used outside of the event loop or the process in which it was started."""


class SerializationFailed(InvalidRequest):
    """A key or value cannot be serialized or deserialized."""


class DeserializationFailed(SerializationFailed):
    """A key or value of a record cannot be deserialized; the consumer's position is at this record."""

    def __init__(self, message: str = "", *, partition: TopicPartition | None = None, offset: int = -1) -> None:
        super().__init__(message)
        self.partition = partition
        self.offset = offset


def heartbeat_error(code: int, message: str | None, member_epoch: int) -> ApiError:
    """The error of a heartbeat in which the broker assigns.

    A member that had joined gets `UnknownMemberId` instead of `GroupIdNotFound`, so that it joins again.
    """
    error = from_code(code, message or "")
    if isinstance(error, GroupIdNotFound) and member_epoch > 0:
        return UnknownMemberId(error.message)
    return error
