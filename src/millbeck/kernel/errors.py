"""Every error of Kafka's protocol: one class each, with its code, its name and whether a client may retry.

Raise the narrow class where the fact is known; one place above (dispatch) turns it into the reply. A class's docstring
is its default text; ``ApiError("...")`` says it more exactly. Code 0 means success and has no class. Other packages may
derive from these classes without ``code=``: such a class keeps its parent's code and is not in the table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

NONE = 0
"""The code of success."""

by_code: dict[int, type[ApiError]] = {}
by_name: dict[str, type[ApiError]] = {}

_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


class ApiError(Exception):
    """A failure that has a code in Kafka's protocol."""

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


def code_of(exception: BaseException | None) -> int:
    """The code a reply carries: 0 for None, -1 for an exception that is not an `ApiError`."""
    if exception is None:
        return NONE
    return exception.code if isinstance(exception, ApiError) else UnknownServerError.code


def from_code(code: int, message: str = "") -> ApiError:
    """The error for a code read off the wire; a code newer than this table becomes `UnknownServerError`."""
    known = by_code.get(code)
    if known is None:
        return UnknownServerError(message or f"error code {code}")
    return known(message)


class RecordError(NamedTuple):
    """What is wrong with one record of a refused batch."""

    batch_index: int
    message: str


class UnknownServerError(ApiError, code=-1):
    """The server met something it did not expect while handling the request."""


class OffsetOutOfRange(ApiError, code=1):
    """The offset asked for lies outside what this partition's log holds."""


class CorruptMessage(ApiError, code=2, retriable=True):
    """A batch fails its checksum, has an impossible size or is malformed in another way."""


class UnknownTopicOrPartition(ApiError, code=3, retriable=True):
    """This broker does not host the topic or partition."""


class InvalidFetchSize(ApiError, code=4):
    """The fetch size asked for is not valid."""


class LeaderNotAvailable(ApiError, code=5, retriable=True):
    """The partition has no leader at the moment; an election is under way."""


class NotLeaderOrFollower(ApiError, code=6, retriable=True):
    """This broker is not the partition's leader, or not a replica where any replica would do."""


class RequestTimedOut(ApiError, code=7, retriable=True):
    """The request ran into its deadline."""


class BrokerNotAvailable(ApiError, code=8):
    """The broker is not available."""


class ReplicaNotAvailable(ApiError, code=9, retriable=True):
    """The partition's replica is not available on this broker."""


class MessageTooLarge(ApiError, code=10):
    """A batch is larger than the topic accepts."""


class StaleControllerEpoch(ApiError, code=11):
    """The controller has moved; the epoch in the request is an old one."""


class OffsetMetadataTooLarge(ApiError, code=12):
    """The metadata string of an offset commit is too long."""


class NetworkException(ApiError, code=13, retriable=True):
    """The connection was lost before the reply arrived."""


class CoordinatorLoadInProgress(ApiError, code=14, retriable=True):
    """The coordinator is still loading its state."""


class CoordinatorNotAvailable(ApiError, code=15, retriable=True):
    """The coordinator is not available."""


class NotCoordinator(ApiError, code=16, retriable=True):
    """This broker is not the coordinator for the key."""


class InvalidTopic(ApiError, code=17, kafka_name="INVALID_TOPIC_EXCEPTION"):
    """The topic's name is not allowed, or the operation is not allowed on this topic."""


class RecordListTooLarge(ApiError, code=18):
    """A batch is larger than a segment of the log may be."""


class NotEnoughReplicas(ApiError, code=19, retriable=True):
    """Fewer replicas are in sync than min.insync.replicas; nothing was written."""


class NotEnoughReplicasAfterAppend(ApiError, code=20, retriable=True):
    """The records were written, but to fewer in-sync replicas than min.insync.replicas."""


class InvalidRequiredAcks(ApiError, code=21):
    """acks must be 0, 1 or -1."""


class IllegalGeneration(ApiError, code=22):
    """The group's generation is another one than the member names."""


class InconsistentGroupProtocol(ApiError, code=23):
    """The member's protocol type or its assignors do not fit those of the group."""


class InvalidGroupId(ApiError, code=24):
    """The group id is not valid."""


class UnknownMemberId(ApiError, code=25):
    """The coordinator does not know this member."""


class InvalidSessionTimeout(ApiError, code=26):
    """The session timeout lies outside group.min.session.timeout.ms and group.max.session.timeout.ms."""


class RebalanceInProgress(ApiError, code=27):
    """The group is rebalancing; the member has to rejoin."""


class InvalidCommitOffsetSize(ApiError, code=28):
    """The offsets to commit are too large."""


class TopicAuthorizationFailed(ApiError, code=29):
    """Not authorized to access the topic."""


class GroupAuthorizationFailed(ApiError, code=30):
    """Not authorized to access the group."""


class ClusterAuthorizationFailed(ApiError, code=31):
    """Not authorized for this operation on the cluster."""


class InvalidTimestamp(ApiError, code=32):
    """A record's timestamp lies outside the range the topic accepts."""


class UnsupportedSaslMechanism(ApiError, code=33):
    """The SASL mechanism is not enabled on this listener."""


class IllegalSaslState(ApiError, code=34):
    """The request does not fit the state of the SASL exchange."""


class UnsupportedVersion(ApiError, code=35):
    """This version of the API, or what the request asks of it, is not supported."""


class TopicAlreadyExists(ApiError, code=36):
    """A topic with this name exists already."""


class InvalidPartitions(ApiError, code=37):
    """The number of partitions is not valid."""


class InvalidReplicationFactor(ApiError, code=38):
    """The replication factor is below 1 or above the number of usable brokers."""


class InvalidReplicaAssignment(ApiError, code=39):
    """The replica assignment is not valid."""


class InvalidConfig(ApiError, code=40):
    """A setting is not valid."""


class NotController(ApiError, code=41, retriable=True):
    """This node is not the active controller."""


class InvalidRequest(ApiError, code=42):
    """The request contradicts itself or breaks the protocol's rules."""


class UnsupportedForMessageFormat(ApiError, code=43):
    """The stored message format does not support the request."""


class PolicyViolation(ApiError, code=44):
    """The request breaks a configured policy."""


class OutOfOrderSequenceNumber(ApiError, code=45):
    """The batch's sequence number does not follow the producer's last one."""


class DuplicateSequenceNumber(ApiError, code=46):
    """The batch's sequence number was used before."""


class InvalidProducerEpoch(ApiError, code=47):
    """The producer's epoch is older than the one on record."""


class InvalidTxnState(ApiError, code=48):
    """The transaction is not in a state that allows this."""


class InvalidProducerIdMapping(ApiError, code=49):
    """The producer id is not the one assigned to the transactional id."""


class InvalidTransactionTimeout(ApiError, code=50):
    """The transaction timeout is not positive or exceeds transaction.max.timeout.ms."""


class ConcurrentTransactions(ApiError, code=51, retriable=True):
    """Another operation on the same transaction is still under way."""


class TransactionCoordinatorFenced(ApiError, code=52):
    """The transaction marker comes from a coordinator that has been replaced."""


class TransactionalIdAuthorizationFailed(ApiError, code=53):
    """Not authorized to use the transactional id."""


class SecurityDisabled(ApiError, code=54):
    """No authorizer is configured."""


class OperationNotAttempted(ApiError, code=55):
    """Not tried, because another operation of the same request failed."""


class KafkaStorageError(ApiError, code=56, retriable=True):
    """The disk or its directory refused the operation."""


class LogDirNotFound(ApiError, code=57):
    """The broker has no such log directory."""


class SaslAuthenticationFailed(ApiError, code=58):
    """SASL authentication failed."""


class UnknownProducerId(ApiError, code=59):
    """Nothing is on record for the producer id; its records may have been deleted."""


class ReassignmentInProgress(ApiError, code=60):
    """The partition is being reassigned."""


class DelegationTokenAuthDisabled(ApiError, code=61):
    """Delegation tokens are not enabled."""


class DelegationTokenNotFound(ApiError, code=62):
    """There is no such delegation token."""


class DelegationTokenOwnerMismatch(ApiError, code=63):
    """The principal is neither the token's owner nor a renewer of it."""


class DelegationTokenRequestNotAllowed(ApiError, code=64):
    """Delegation tokens cannot be handled over this kind of connection."""


class DelegationTokenAuthorizationFailed(ApiError, code=65):
    """Not authorized to handle the delegation token."""


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
    """The epoch is not the one the fetch session expects."""


class ListenerNotFound(ApiError, code=72, retriable=True):
    """The leader has no listener of the name the request came in on."""


class TopicDeletionDisabled(ApiError, code=73):
    """delete.topic.enable is false."""


class FencedLeaderEpoch(ApiError, code=74, retriable=True):
    """The leader epoch of the request is older than the broker's."""


class UnknownLeaderEpoch(ApiError, code=75, retriable=True):
    """The leader epoch of the request is newer than the broker's."""


class UnsupportedCompressionType(ApiError, code=76):
    """The client's version of the request cannot carry the codec that is used."""


class StaleBrokerEpoch(ApiError, code=77):
    """The broker has registered again since; this epoch is an old one."""


class OffsetNotAvailable(ApiError, code=78, retriable=True):
    """A new leader has not caught up enough to answer with an offset that never goes back."""


class MemberIdRequired(ApiError, code=79):
    """Join again with the member id in the reply."""


class PreferredLeaderNotAvailable(ApiError, code=80, retriable=True):
    """The preferred leader is not available."""


class GroupMaxSizeReached(ApiError, code=81):
    """The group has as many members as it may have."""


class FencedInstanceId(ApiError, code=82):
    """Another member uses this group.instance.id by now."""


class EligibleLeadersNotAvailable(ApiError, code=83, retriable=True):
    """No replica that may lead the partition is available."""


class ElectionNotNeeded(ApiError, code=84, retriable=True):
    """The partition already has the leader that was asked for."""


class NoReassignmentInProgress(ApiError, code=85):
    """The partition is not being reassigned."""


class GroupSubscribedToTopic(ApiError, code=86):
    """The group still subscribes to the topic, so its offsets stay."""


class InvalidRecord(ApiError, code=87):
    """A record breaks a rule of the topic; the whole batch is refused."""

    def __init__(self, message: str = "", record_errors: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.record_errors = list(record_errors)


class UnstableOffsetCommit(ApiError, code=88, retriable=True):
    """Offsets of a transaction that is not finished yet stand in the way."""


class ThrottlingQuotaExceeded(ApiError, code=89, retriable=True):
    """The quota is used up for now."""

    def __init__(self, message: str = "", throttle_time_ms: int = 0) -> None:
        super().__init__(message)
        self.throttle_time_ms = throttle_time_ms


class ProducerFenced(ApiError, code=90):
    """A newer producer uses the same transactional id."""


class ResourceNotFound(ApiError, code=91):
    """The request names a thing that does not exist."""


class DuplicateResource(ApiError, code=92):
    """The request names the same thing twice."""


class UnacceptableCredential(ApiError, code=93):
    """The credential does not meet the requirements."""


class InconsistentVoterSet(ApiError, code=94):
    """Sender or receiver is not among the voters the other one expects."""


class InvalidUpdateVersion(ApiError, code=95):
    """The feature level cannot be updated to this version."""


class FeatureUpdateFailed(ApiError, code=96):
    """The feature levels could not be updated."""


class PrincipalDeserializationFailure(ApiError, code=97):
    """The forwarded principal could not be read."""


class SnapshotNotFound(ApiError, code=98):
    """There is no such snapshot."""


class PositionOutOfRange(ApiError, code=99):
    """The position lies outside the snapshot."""


class UnknownTopicId(ApiError, code=100, retriable=True):
    """This broker hosts no topic with this id."""


class DuplicateBrokerRegistration(ApiError, code=101):
    """Another live broker is registered under this id."""


class BrokerIdNotRegistered(ApiError, code=102):
    """No broker is registered under this id."""


class InconsistentTopicId(ApiError, code=103, retriable=True):
    """The topic id of the request is not the one of the log."""


class InconsistentClusterId(ApiError, code=104):
    """The request is meant for a cluster with another id."""


class TransactionalIdNotFound(ApiError, code=105):
    """There is no such transactional id."""


class FetchSessionTopicIdError(ApiError, code=106, retriable=True):
    """The fetch session mixes topic names and topic ids."""


class IneligibleReplica(ApiError, code=107):
    """The proposed in-sync set holds a replica that may not join it."""


class NewLeaderElected(ApiError, code=108):
    """The partition was changed as asked, and a new leader was elected with that."""


class OffsetMovedToTieredStorage(ApiError, code=109):
    """The offset is only in the remote tier by now."""


class FencedMemberEpoch(ApiError, code=110):
    """The member's epoch is out of date; it has to give up its partitions and join again."""


class UnreleasedInstanceId(ApiError, code=111):
    """Another member still holds this instance id and has to leave first."""


class UnsupportedAssignor(ApiError, code=112):
    """The coordinator has no such assignor."""


class StaleMemberEpoch(ApiError, code=113):
    """The member's epoch is an old one; it learns the new one by its next heartbeat."""


class MismatchedEndpointType(ApiError, code=114):
    """The request was meant for the other kind of node: broker or controller."""


class UnsupportedEndpointType(ApiError, code=115):
    """This type of endpoint is not supported."""


class UnknownControllerId(ApiError, code=116):
    """There is no controller with this id."""


class UnknownSubscriptionId(ApiError, code=117):
    """The telemetry subscription is not the current one."""


class TelemetryTooLarge(ApiError, code=118):
    """The telemetry payload is larger than the broker accepts."""


class InvalidRegistration(ApiError, code=119):
    """The controller refuses the broker's registration."""


class TransactionAbortable(ApiError, code=120):
    """The transaction failed, but its producer may abort it and go on."""


class InvalidRecordState(ApiError, code=121):
    """The record is not in a state in which it can be acknowledged like this."""


class ShareSessionNotFound(ApiError, code=122, retriable=True):
    """There is no such share session."""


class InvalidShareSessionEpoch(ApiError, code=123, retriable=True):
    """The epoch is not the one the share session expects."""


class FencedStateEpoch(ApiError, code=124):
    """The state epoch of the share group is another one."""


class InvalidVoterKey(ApiError, code=125):
    """The voter is known with another directory id."""


class DuplicateVoter(ApiError, code=126):
    """The node is a voter already."""


class VoterNotFound(ApiError, code=127):
    """The node is not a voter."""


class InvalidRegularExpression(ApiError, code=128):
    """The regular expression is not valid."""


class RebootstrapRequired(ApiError, code=129):
    """What the client knows of the cluster is too old; it has to start from its bootstrap addresses."""


class StreamsInvalidTopology(ApiError, code=130):
    """The streams topology is not valid."""


class StreamsInvalidTopologyEpoch(ApiError, code=131):
    """The epoch of the streams topology is not valid."""


class StreamsTopologyFenced(ApiError, code=132):
    """The epoch of the streams topology is an old one."""


class ShareSessionLimitReached(ApiError, code=133, retriable=True):
    """The broker holds as many share sessions as it may."""
