"""The errors of ``aiokafka.errors``, and the translation of millbeck's into them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from millbeck.client.errors import (
    BufferExhausted,
    ClientClosed,
    Disconnected,
    NoBrokerReachable,
    NoOffsetForPartition,
    RequestTimeout,
)
from millbeck.kernel import errors as kernel
from millbeck.kernel.errors import ApiError


class KafkaError(RuntimeError):
    """The base class of the errors."""

    retriable = False
    invalid_metadata = False

    def __str__(self) -> str:
        return f"{type(self).__name__}: {super().__str__()}" if self.args else type(self).__name__


class BrokerResponseError(KafkaError):
    """An error that a broker has returned."""

    errno: int = -1
    message: str = ""
    description: str = ""

    def __str__(self) -> str:
        return f"[Error {self.errno}] {super().__str__()}"


class IllegalStateError(KafkaError):
    """The call does not fit the state of the client."""


class IllegalArgumentError(KafkaError):
    """An argument is not valid."""


class KafkaConnectionError(KafkaError):
    """No broker can be reached."""

    retriable = True
    invalid_metadata = True


class NoBrokersAvailable(KafkaConnectionError):
    """No broker answered."""


class KafkaTimeoutError(KafkaError):
    """Something did not happen in time."""


class KafkaConfigurationError(KafkaError):
    """A setting is not valid."""


class UnsupportedCodecError(KafkaError):
    """The compression is not supported."""


class CommitFailedError(KafkaError):
    """The group has rebalanced and given the partitions to another member."""


class AuthenticationFailedError(KafkaError):
    """The login was refused."""


class NoOffsetForPartitionError(KafkaError):
    """There is no committed offset and auto_offset_reset is none."""


class RecordTooLargeError(KafkaError):
    """A record is larger than can be fetched."""


class ProducerClosed(KafkaError):
    """The producer is closed."""


class ProducerFenced(KafkaError):
    """Another producer with the same transactional_id has started."""


class ConsumerStoppedError(Exception):
    """The consumer is stopped."""


class IllegalOperation(Exception):
    """The call needs a group, or a producer with transactions."""


_NAMES: Final = {
    0: "NoError",
    -1: "UnknownError",
    1: "OffsetOutOfRangeError",
    2: "CorruptRecordException",
    3: "UnknownTopicOrPartitionError",
    4: "InvalidFetchRequestError",
    5: "LeaderNotAvailableError",
    6: "NotLeaderForPartitionError",
    7: "RequestTimedOutError",
    8: "BrokerNotAvailableError",
    9: "ReplicaNotAvailableError",
    10: "MessageSizeTooLargeError",
    11: "StaleControllerEpochError",
    12: "OffsetMetadataTooLargeError",
    13: "StaleLeaderEpochCodeError",
    14: "GroupLoadInProgressError",
    15: "GroupCoordinatorNotAvailableError",
    16: "NotCoordinatorForGroupError",
    17: "InvalidTopicError",
    18: "RecordListTooLargeError",
    19: "NotEnoughReplicasError",
    20: "NotEnoughReplicasAfterAppendError",
    21: "InvalidRequiredAcksError",
    22: "IllegalGenerationError",
    23: "InconsistentGroupProtocolError",
    24: "InvalidGroupIdError",
    25: "UnknownMemberIdError",
    26: "InvalidSessionTimeoutError",
    27: "RebalanceInProgressError",
    28: "InvalidCommitOffsetSizeError",
    29: "TopicAuthorizationFailedError",
    30: "GroupAuthorizationFailedError",
    31: "ClusterAuthorizationFailedError",
    32: "InvalidTimestampError",
    33: "UnsupportedSaslMechanismError",
    34: "IllegalSaslStateError",
    35: "UnsupportedVersionError",
    36: "TopicAlreadyExistsError",
    37: "InvalidPartitionsError",
    38: "InvalidReplicationFactorError",
    39: "InvalidReplicationAssignmentError",
    40: "InvalidConfigurationError",
    41: "NotControllerError",
    42: "InvalidRequestError",
    43: "UnsupportedForMessageFormatError",
    44: "PolicyViolationError",
    45: "OutOfOrderSequenceNumber",
    46: "DuplicateSequenceNumber",
    47: "InvalidProducerEpoch",
    48: "InvalidTxnState",
    49: "InvalidProducerIdMapping",
    50: "InvalidTransactionTimeout",
    51: "ConcurrentTransactions",
    52: "TransactionCoordinatorFenced",
    53: "TransactionalIdAuthorizationFailed",
    54: "SecurityDisabled",
    55: "OperationNotAttempted",
    56: "KafkaStorageError",
    57: "LogDirNotFound",
    58: "SaslAuthenticationFailed",
    59: "UnknownProducerId",
    60: "ReassignmentInProgress",
    68: "NonEmptyGroup",
    69: "GroupIdNotFound",
    70: "FetchSessionIdNotFound",
    71: "InvalidFetchSessionEpoch",
    72: "ListenerNotFound",
    79: "MemberIdRequired",
}
"""aiokafka's names of the errors of brokers, by code."""


def _class_of(code: int, name: str) -> type[BrokerResponseError]:
    known = kernel.by_code.get(code)
    return type(
        name,
        (BrokerResponseError,),
        {
            "__module__": __name__,
            "errno": code,
            "message": name if known is None else known.kafka_name,
            "description": "" if known is None else known.__doc__ or "",
            "retriable": known is not None and known.retriable,
        },
    )


kafka_errors: Final = {code: _class_of(code, name) for code, name in _NAMES.items()}
globals().update({found.__name__: found for found in kafka_errors.values()})

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...


def for_code(error_code: int) -> type[BrokerResponseError]:
    """The class of a broker's error."""
    return kafka_errors.get(error_code, kafka_errors[-1])


_COMMIT_FAILED: Final = (
    kernel.FencedInstanceId,
    kernel.FencedMemberEpoch,
    kernel.IllegalGeneration,
    kernel.RebalanceInProgress,
    kernel.StaleMemberEpoch,
    kernel.UnknownMemberId,
)

_CLASSES: Final[tuple[tuple[type[ApiError] | tuple[type[ApiError], ...], type[Exception]], ...]] = (
    (NoOffsetForPartition, NoOffsetForPartitionError),
    ((NoBrokerReachable, Disconnected), KafkaConnectionError),
    ((BufferExhausted, RequestTimeout, kernel.RequestTimedOut), KafkaTimeoutError),
    ((kernel.ProducerFenced, kernel.InvalidProducerEpoch), ProducerFenced),
    (kernel.SaslAuthenticationFailed, AuthenticationFailedError),
    (kernel.InvalidConfig, KafkaConfigurationError),
)


def translated(error: ApiError, closed: type[Exception] = ConsumerStoppedError) -> Exception:
    """The error that aiokafka raises instead; ``closed`` is the one for a client that is closed."""
    if isinstance(error, ClientClosed):
        return closed(str(error))
    for known, other in _CLASSES:
        if isinstance(error, known):
            return other(str(error))
    return for_code(error.code)(str(error))


@contextmanager
def translating(closed: type[Exception] = ConsumerStoppedError, *, commits: bool = False) -> Iterator[None]:
    """Raise aiokafka's errors instead of millbeck's."""
    try:
        yield
    except ApiError as error:
        if commits and isinstance(error, _COMMIT_FAILED):
            raise CommitFailedError(str(error)) from error
        raise translated(error, closed) from error
