"""All errors of Kafka's protocol: one class each, with its code, its name and whether a client may retry.

Raise the specific class where the cause is known; the dispatcher turns it into the response. A class's docstring is
its default message; ``ApiError("...")`` replaces it. Code 0 means success and has no class. Other packages may derive
classes without ``code=``: such a class has its parent's code and is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

NONE = 0
"""The error code of success."""

by_code: dict[int, type[ApiError]] = {}
by_name: dict[str, type[ApiError]] = {}

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ApiError(Exception):
    """A failure with an error code of Kafka's protocol."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    kafka_name: ClassVar[str] = "UNKNOWN_SERVER_ERROR"

    def __init_subclass__(cls, *, code: int | None = None, retriable: bool = False, kafka_name: str = "") -> None:
        super().__init_subclass__()
        if code is None:
            return
        cls.code = code
        cls.retriable = retriable
        cls.kafka_name = kafka_name or _WORD_START.sub("_", cls.__name__).upper()
        assert code not in by_code, f"error code {code} is declared twice"
        by_code[code] = cls
        by_name[cls.kafka_name] = cls

    def __init__(self, message: str = "") -> None:
        super().__init__(message)
        self.message = message or (type(self).__doc__ or "")

    def __str__(self) -> str:
        return self.message


def from_code(code: int, message: str = "") -> ApiError:
    """The error for a received code; an unknown (newer) code becomes `UnknownServerError`."""
    known = by_code.get(code)
    if known is None:
        return UnknownServerError(message or f"error code {code}")
    return known(message)


class RecordError(NamedTuple):
    """The error of one record in a rejected batch."""

    batch_index: int
    message: str


class UnknownServerError(ApiError, code=-1):
    """An unexpected error occurred on the server while it handled the request."""


class OffsetOutOfRange(ApiError, code=1):
    """The requested offset is outside the range of offsets in the partition's log."""


class CorruptMessage(ApiError, code=2, retriable=True):
    """The batch has a wrong checksum, an invalid size or is otherwise malformed."""


class UnknownTopicOrPartition(ApiError, code=3, retriable=True):
    """This server does not host this topic-partition."""


class InvalidFetchSize(ApiError, code=4):
    """The requested fetch size is not valid."""


class LeaderNotAvailable(ApiError, code=5, retriable=True):
    """The partition has no leader at the moment; an election is in progress."""


class NotLeaderOrFollower(ApiError, code=6, retriable=True):
    """This broker is not the partition's leader, or, for requests that any replica can serve, not a replica of it."""


class RequestTimedOut(ApiError, code=7, retriable=True):
    """The request timed out."""


class BrokerNotAvailable(ApiError, code=8):
    """The broker is not available."""


class ReplicaNotAvailable(ApiError, code=9, retriable=True):
    """The partition's replica is not available on this broker."""


class MessageTooLarge(ApiError, code=10):
    """A batch is larger than the topic accepts."""


class StaleControllerEpoch(ApiError, code=11):
    """The controller has changed; the controller epoch in the request is outdated."""


class OffsetMetadataTooLarge(ApiError, code=12):
    """The metadata string of an offset commit is too long."""


class NetworkException(ApiError, code=13, retriable=True):
    """The connection was lost before the response was received."""


class CoordinatorLoadInProgress(ApiError, code=14, retriable=True):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailable(ApiError, code=15, retriable=True):
    """The coordinator is not available."""


class NotCoordinator(ApiError, code=16, retriable=True):
    """This broker is not the coordinator for the key."""


class InvalidTopic(ApiError, code=17, kafka_name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not allowed, or the operation is not allowed on this topic."""


class RecordListTooLarge(ApiError, code=18):
    """The batch is larger than the topic's segment.bytes."""


class NotEnoughReplicas(ApiError, code=19, retriable=True):
    """Fewer replicas are in sync than min.insync.replicas; nothing was written."""


class NotEnoughReplicasAfterAppend(ApiError, code=20, retriable=True):
    """The records were written, but to fewer in-sync replicas than min.insync.replicas."""


class InvalidRequiredAcks(ApiError, code=21):
    """acks must be 0, 1 or -1."""


class IllegalGeneration(ApiError, code=22):
    """The member's generation id is not the group's current one."""


class InconsistentGroupProtocol(ApiError, code=23):
    """The member's protocol type or assignors are not compatible with those of the group."""


class InvalidGroupId(ApiError, code=24):
    """The group id is not valid."""


class UnknownMemberId(ApiError, code=25):
    """The coordinator does not know this member."""


class InvalidSessionTimeout(ApiError, code=26):
    """The session timeout is not between group.min.session.timeout.ms and group.max.session.timeout.ms."""


class RebalanceInProgress(ApiError, code=27):
    """The group is rebalancing; the member must rejoin."""


class InvalidCommitOffsetSize(ApiError, code=28):
    """The offsets to commit are too large."""


class TopicAuthorizationFailed(ApiError, code=29):
    """Topic authorization failed."""


class GroupAuthorizationFailed(ApiError, code=30):
    """Group authorization failed."""


class ClusterAuthorizationFailed(ApiError, code=31):
    """Cluster authorization failed."""


class InvalidTimestamp(ApiError, code=32):
    """A record's timestamp is outside the range that the topic accepts."""


class UnsupportedSaslMechanism(ApiError, code=33):
    """The SASL mechanism is not enabled on this listener."""


class IllegalSaslState(ApiError, code=34):
    """The request is not valid in the current state of the SASL exchange."""


class UnsupportedVersion(ApiError, code=35):
    """This version of the API, or a feature the request needs, is not supported."""


class TopicAlreadyExists(ApiError, code=36):
    """A topic with this name exists already."""


class InvalidPartitions(ApiError, code=37):
    """The number of partitions is not valid."""


class InvalidReplicationFactor(ApiError, code=38):
    """The replication factor is below 1 or above the number of usable brokers."""


class InvalidReplicaAssignment(ApiError, code=39):
    """The replica assignment is not valid."""


class InvalidConfig(ApiError, code=40):
    """A configuration value is not valid."""


class NotController(ApiError, code=41, retriable=True):
    """This node is not the active controller."""


class InvalidRequest(ApiError, code=42):
    """The request is inconsistent or violates the protocol."""


class UnsupportedForMessageFormat(ApiError, code=43):
    """The stored message format does not support the request."""


class PolicyViolation(ApiError, code=44):
    """The request violates a configured policy."""


class OutOfOrderSequenceNumber(ApiError, code=45):
    """The batch's sequence number does not follow the producer's last one."""


class DuplicateSequenceNumber(ApiError, code=46):
    """The batch's sequence number was used already."""


class InvalidProducerEpoch(ApiError, code=47):
    """The producer's epoch is older than its current one."""


class InvalidTxnState(ApiError, code=48):
    """The transaction's state does not allow this operation."""


class InvalidProducerIdMapping(ApiError, code=49):
    """The producer id is not the one assigned to the transactional id."""


class InvalidTransactionTimeout(ApiError, code=50):
    """The transaction timeout is not positive or exceeds transaction.max.timeout.ms."""


class ConcurrentTransactions(ApiError, code=51, retriable=True):
    """Another operation on the same transaction is still in progress."""


class TransactionCoordinatorFenced(ApiError, code=52):
    """The transaction marker is from a coordinator that has been replaced."""


class TransactionalIdAuthorizationFailed(ApiError, code=53):
    """Transactional Id authorization failed."""


class SecurityDisabled(ApiError, code=54):
    """No authorizer is configured."""


class OperationNotAttempted(ApiError, code=55):
    """Not attempted, because another operation of the same request failed."""


class KafkaStorageError(ApiError, code=56, retriable=True):
    """The disk or log directory failed or rejected the operation."""


class LogDirNotFound(ApiError, code=57):
    """The broker has no such log directory."""


class SaslAuthenticationFailed(ApiError, code=58):
    """SASL authentication failed."""


class UnknownProducerId(ApiError, code=59):
    """The producer id is unknown to the partition; its records may have been deleted."""


class ReassignmentInProgress(ApiError, code=60):
    """The partition is being reassigned."""


class DelegationTokenAuthDisabled(ApiError, code=61):
    """Delegation tokens are not enabled."""


class DelegationTokenNotFound(ApiError, code=62):
    """There is no such delegation token."""


class DelegationTokenOwnerMismatch(ApiError, code=63):
    """The principal is neither the token's owner nor a renewer of it."""


class DelegationTokenRequestNotAllowed(ApiError, code=64):
    """Delegation token requests are not allowed on this kind of connection."""


class DelegationTokenAuthorizationFailed(ApiError, code=65):
    """Delegation Token authorization failed."""


class DelegationTokenExpired(ApiError, code=66):
    """The delegation token has expired."""


class InvalidPrincipalType(ApiError, code=67):
    """This type of principal is not supported."""


class NonEmptyGroup(ApiError, code=68):
    """The group still has members."""


class GroupIdNotFound(ApiError, code=69):
    """There is no group with this id."""


class FetchSessionIdNotFound(ApiError, code=70, retriable=True):
    """There is no fetch session with this id."""


class InvalidFetchSessionEpoch(ApiError, code=71, retriable=True):
    """The epoch is not the next one of the fetch session."""


class ListenerNotFound(ApiError, code=72, retriable=True):
    """The leader has no listener with the name of the one that received the request."""


class TopicDeletionDisabled(ApiError, code=73):
    """delete.topic.enable is false."""


class FencedLeaderEpoch(ApiError, code=74, retriable=True):
    """The leader epoch of the request is older than the broker's."""


class UnknownLeaderEpoch(ApiError, code=75, retriable=True):
    """The leader epoch of the request is newer than the broker's."""


class UnsupportedCompressionType(ApiError, code=76):
    """The batch's compression codec is not supported by this version of the request."""


class StaleBrokerEpoch(ApiError, code=77):
    """The broker has registered again since; its epoch in the request is outdated."""


class OffsetNotAvailable(ApiError, code=78, retriable=True):
    """The new leader's high watermark has not caught up yet, so its offsets could still go back."""


class MemberIdRequired(ApiError, code=79):
    """The member must join again with the member id in the response."""


class PreferredLeaderNotAvailable(ApiError, code=80, retriable=True):
    """The preferred leader is not available."""


class GroupMaxSizeReached(ApiError, code=81):
    """The group has reached its maximum size."""


class FencedInstanceId(ApiError, code=82):
    """Another member now uses this group.instance.id."""


class EligibleLeadersNotAvailable(ApiError, code=83, retriable=True):
    """No replica that is eligible as the partition's leader is available."""


class ElectionNotNeeded(ApiError, code=84, retriable=True):
    """Leader election not needed for topic partition."""


class NoReassignmentInProgress(ApiError, code=85):
    """The partition is not being reassigned."""


class GroupSubscribedToTopic(ApiError, code=86):
    """The group still subscribes to the topic, so its offsets cannot be deleted."""


class InvalidRecord(ApiError, code=87):
    """A record violates a rule of the topic; the whole batch is rejected."""

    def __init__(self, message: str = "", record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class UnstableOffsetCommit(ApiError, code=88, retriable=True):
    """There are pending transactional offsets; retry when the transaction has ended."""


class ThrottlingQuotaExceeded(ApiError, code=89, retriable=True):
    """The quota is exceeded."""

    def __init__(self, message: str = "", throttle_time_ms: int = 0) -> None:
        super().__init__(message)
        self.throttle_time_ms = throttle_time_ms


class ProducerFenced(ApiError, code=90):
    """A newer producer uses the same transactional id."""


class ResourceNotFound(ApiError, code=91):
    """The requested resource does not exist."""


class DuplicateResource(ApiError, code=92):
    """The request has the same resource twice."""


class UnacceptableCredential(ApiError, code=93):
    """The credential does not meet the requirements."""


class InconsistentVoterSet(ApiError, code=94):
    """The sender or receiver is not in the other one's set of voters."""


class InvalidUpdateVersion(ApiError, code=95):
    """The feature level cannot be updated to this version."""


class FeatureUpdateFailed(ApiError, code=96):
    """The feature levels could not be updated."""


class PrincipalDeserializationFailure(ApiError, code=97):
    """The forwarded principal could not be read."""


class SnapshotNotFound(ApiError, code=98):
    """There is no such snapshot."""


class PositionOutOfRange(ApiError, code=99):
    """The position is outside the snapshot."""


class UnknownTopicId(ApiError, code=100, retriable=True):
    """This server does not host this topic ID."""


class DuplicateBrokerRegistration(ApiError, code=101):
    """Another live broker is registered with this id."""


class BrokerIdNotRegistered(ApiError, code=102):
    """No broker is registered with this id."""


class InconsistentTopicId(ApiError, code=103, retriable=True):
    """The topic id in the request does not match that of the log."""


class InconsistentClusterId(ApiError, code=104):
    """The cluster id in the request does not match this cluster's."""


class TransactionalIdNotFound(ApiError, code=105):
    """There is no such transactional id."""


class FetchSessionTopicIdError(ApiError, code=106, retriable=True):
    """The fetch session mixes topic names and topic ids."""


class IneligibleReplica(ApiError, code=107):
    """The proposed ISR has a replica that is not eligible to join it."""


class NewLeaderElected(ApiError, code=108):
    """The partition was changed as requested, and a new leader was elected by that."""


class OffsetMovedToTieredStorage(ApiError, code=109):
    """The offset is only in the remote tier."""


class FencedMemberEpoch(ApiError, code=110):
    """The member's epoch is outdated; it must release its partitions and rejoin."""


class UnreleasedInstanceId(ApiError, code=111):
    """Another member still uses this instance id and must leave first."""


class UnsupportedAssignor(ApiError, code=112):
    """The coordinator has no such assignor."""


class StaleMemberEpoch(ApiError, code=113):
    """The member's epoch is outdated; its next heartbeat response has the new one."""


class MismatchedEndpointType(ApiError, code=114):
    """The request is for the other kind of node (broker or controller)."""


class UnsupportedEndpointType(ApiError, code=115):
    """This type of endpoint is not supported."""


class UnknownControllerId(ApiError, code=116):
    """There is no controller with this id."""


class UnknownSubscriptionId(ApiError, code=117):
    """The telemetry subscription is not the current one."""


class TelemetryTooLarge(ApiError, code=118):
    """The telemetry payload is larger than the broker accepts."""


class InvalidRegistration(ApiError, code=119):
    """The controller rejected the broker's registration."""


class TransactionAbortable(ApiError, code=120):
    """The transaction failed, but the producer can abort it and continue."""


class InvalidRecordState(ApiError, code=121):
    """The record's state does not allow this acknowledgement."""


class ShareSessionNotFound(ApiError, code=122, retriable=True):
    """There is no such share session."""


class InvalidShareSessionEpoch(ApiError, code=123, retriable=True):
    """The epoch is not the next one of the share session."""


class FencedStateEpoch(ApiError, code=124):
    """The share group's state epoch in the request is outdated."""


class InvalidVoterKey(ApiError, code=125):
    """The voter has another directory id."""


class DuplicateVoter(ApiError, code=126):
    """The node is a voter already."""


class VoterNotFound(ApiError, code=127):
    """The node is not a voter."""


class InvalidRegularExpression(ApiError, code=128):
    """The regular expression is not valid."""


class RebootstrapRequired(ApiError, code=129):
    """The client's metadata is too old; it must bootstrap again."""


class StreamsInvalidTopology(ApiError, code=130):
    """The streams topology is not valid."""


class StreamsInvalidTopologyEpoch(ApiError, code=131):
    """The epoch of the streams topology is not valid."""


class StreamsTopologyFenced(ApiError, code=132):
    """The epoch of the streams topology is outdated."""


class ShareSessionLimitReached(ApiError, code=133, retriable=True):
    """The broker has reached its maximum number of share sessions."""
