"""What can go wrong on the client's side of the wire.

Each is a `kernel.errors.ApiError`, so one ``except`` catches what a broker said and what became of the way there; a
class derived here keeps the code and the retriable flag of its parent.
"""

from __future__ import annotations

from millbeck.kernel.errors import (
    BrokerNotAvailable,
    NetworkException,
    OffsetOutOfRange,
    RequestTimedOut,
    TransactionAbortable,
    UnsupportedVersion,
)


class Disconnected(NetworkException):
    """The connection ended before the answer came."""


class ConnectFailed(Disconnected):
    """The broker could not be reached."""


class ConnectionClosed(Disconnected):
    """The connection was closed on this side."""


class RequestTimeout(RequestTimedOut):
    """No answer came in time."""


class ProtocolViolation(NetworkException):
    """The peer sent something that is not the answer to what was asked."""


class UnsupportedByBroker(UnsupportedVersion):
    """The broker does not have this API, or no version of it that is known here too."""


class NoBrokerReachable(BrokerNotAvailable):
    """None of the brokers answered."""

    retriable = True


class ClientClosed(NetworkException):
    """The client has been closed."""

    retriable = False


class BufferExhausted(RequestTimedOut):
    """The producer's memory was full for longer than ``max.block.ms``."""


class DeliveryTimeout(RequestTimedOut):
    """A record was not acknowledged within ``delivery.timeout.ms``."""


class TransactionAborted(TransactionAbortable):
    """The record was part of a transaction that its own producer has aborted."""


class NoOffsetForPartition(OffsetOutOfRange):
    """There is no position to start from and ``auto.offset.reset`` is none."""


class LogTruncated(OffsetOutOfRange):
    """The log lost records that this consumer had read already, and ``auto.offset.reset`` is none."""
