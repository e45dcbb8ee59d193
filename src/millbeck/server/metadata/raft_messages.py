"""Convert between the raft state machine's messages and Kafka's wire messages, in both directions.

Most of these requests are lists of topics with lists of partitions; only one partition is valid here, the metadata log.
Any other partition raises INVALID_REQUEST, another cluster's id INCONSISTENT_CLUSTER_ID. The leader's id and epoch are
in the partition, its address is in the node endpoints beside the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millbeck.kernel.errors import InconsistentClusterId, InvalidRequest
from millbeck.kernel.ids import ZERO_UUID
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.raft.messages import (
    AddVoterRequest,
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    Request,
    Response,
    SnapshotKey,
    SnapshotRequest,
    SnapshotResponse,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import Voter, VoterEndpoint
from millbeck.server.metadata.loading import METADATA_TOPIC_ID
from millbeck.wire.messages import fetch as fetch_messages
from millbeck.wire.messages import quorum as quorum_messages
from millbeck.wire.messages.metadata import ApiVersionsRequest, ApiVersionsResponse
from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint

PARTITION: Final = 0
KRAFT_VERSION_FEATURE: Final = "kraft.version"


class OutgoingRequest:
    """An outgoing request: the wire message, its response class, and the lowest usable API version."""

    __slots__ = ("message", "response", "version_min")

    def __init__(self, message: object, response: type[Any], version_min: int | None = None) -> None:
        self.message = message
        self.response = response
        self.version_min = version_min


# Outgoing requests.


def to_wire_request(
    ask: Request, *, cluster_id: str | None, fetch_bytes_max: int, snapshot_bytes_max: int, wait_ms: int
) -> OutgoingRequest:
    match ask:
        case VoteRequest():
            return OutgoingRequest(_vote_request(ask, cluster_id), quorum_messages.VoteResponse, 2)
        case BeginEpochRequest():
            return OutgoingRequest(_begin_request(ask, cluster_id), quorum_messages.BeginQuorumEpochResponse, 1)
        case EndEpochRequest():
            return OutgoingRequest(_end_request(ask, cluster_id), quorum_messages.EndQuorumEpochResponse, 1)
        case FetchRequest():
            return OutgoingRequest(
                _fetch_request(ask, cluster_id, fetch_bytes_max, wait_ms), fetch_messages.FetchResponse, 17
            )
        case SnapshotRequest():
            request = _snapshot_request(ask, cluster_id, snapshot_bytes_max)
            return OutgoingRequest(request, quorum_messages.FetchSnapshotResponse, 1)
        case VersionsRequest():
            message = ApiVersionsRequest(client_software_name="millbeck", client_software_version="quorum")
            return OutgoingRequest(message, ApiVersionsResponse, 3)
        case AddVoterRequest():
            return OutgoingRequest(_add_request(ask, cluster_id), quorum_messages.AddRaftVoterResponse, 1)
        case RemoveVoterRequest():
            removal = quorum_messages.RemoveRaftVoterRequest(cluster_id, *ask.voter)
            return OutgoingRequest(removal, quorum_messages.RemoveRaftVoterResponse)
        case UpdateVoterRequest():
            return OutgoingRequest(_update_request(ask, cluster_id), quorum_messages.UpdateRaftVoterResponse)


def _vote_request(ask: VoteRequest, cluster_id: str | None) -> quorum_messages.VoteRequest:
    partition = quorum_messages.VotePartition(
        PARTITION,
        replica_epoch=ask.epoch,
        replica_id=ask.candidate.node_id,
        replica_directory_id=ask.candidate.directory_id,
        voter_directory_id=ask.voter.directory_id,
        last_offset_epoch=ask.log_end.epoch,
        last_offset=ask.log_end.end_offset,
        pre_vote=ask.is_pre_vote,
    )
    topics = [quorum_messages.VoteTopic(CLUSTER_METADATA_TOPIC, [partition])]
    return quorum_messages.VoteRequest(cluster_id, ask.voter.node_id, topics)


def _begin_request(ask: BeginEpochRequest, cluster_id: str | None) -> quorum_messages.BeginQuorumEpochRequest:
    partition = quorum_messages.BeginQuorumEpochPartition(
        PARTITION, voter_directory_id=ask.voter.directory_id, leader_id=ask.leader_id, leader_epoch=ask.epoch
    )
    return quorum_messages.BeginQuorumEpochRequest(
        cluster_id,
        ask.voter.node_id,
        [quorum_messages.BeginQuorumEpochTopic(CLUSTER_METADATA_TOPIC, [partition])],
        [quorum_messages.LeaderEndpoint(each.name, each.host, each.port) for each in ask.endpoints],
    )


def _end_request(ask: EndEpochRequest, cluster_id: str | None) -> quorum_messages.EndQuorumEpochRequest:
    partition = quorum_messages.EndQuorumEpochPartition(
        PARTITION,
        leader_id=ask.leader_id,
        leader_epoch=ask.epoch,
        preferred_candidates=[quorum_messages.ReplicaInfo(*successor) for successor in ask.successors],
    )
    return quorum_messages.EndQuorumEpochRequest(
        cluster_id,
        [quorum_messages.EndQuorumEpochTopic(CLUSTER_METADATA_TOPIC, [partition])],
        [quorum_messages.LeaderEndpoint(each.name, each.host, each.port) for each in ask.endpoints],
    )


def _fetch_request(
    ask: FetchRequest, cluster_id: str | None, bytes_max: int, wait_ms: int
) -> fetch_messages.FetchRequest:
    partition = fetch_messages.FetchPartition(
        PARTITION,
        current_leader_epoch=ask.epoch,
        fetch_offset=ask.offset,
        last_fetched_epoch=ask.last_epoch,
        partition_max_bytes=bytes_max,
        replica_directory_id=ask.replica.directory_id,
        high_watermark=ask.high_watermark,
    )
    return fetch_messages.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch_messages.ReplicaState(ask.replica.node_id),
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=bytes_max,
        topics=[fetch_messages.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _snapshot_request(
    ask: SnapshotRequest, cluster_id: str | None, bytes_max: int
) -> quorum_messages.FetchSnapshotRequest:
    partition = quorum_messages.FetchSnapshotPartition(
        PARTITION,
        current_leader_epoch=ask.epoch,
        snapshot_id=quorum_messages.SnapshotId(*ask.snapshot),
        position=ask.position,
        replica_directory_id=ask.replica.directory_id,
    )
    topics = [quorum_messages.FetchSnapshotTopic(CLUSTER_METADATA_TOPIC, [partition])]
    return quorum_messages.FetchSnapshotRequest(cluster_id, ask.replica.node_id, bytes_max, topics)


def _add_request(ask: AddVoterRequest, cluster_id: str | None) -> quorum_messages.AddRaftVoterRequest:
    return quorum_messages.AddRaftVoterRequest(
        cluster_id,
        ask.timeout_ms,
        ask.voter.node_id,
        ask.voter.directory_id,
        [quorum_messages.Listener(each.name, each.host, each.port) for each in ask.voter.endpoints],
        ask.acknowledge_when_committed,
    )


def _update_request(ask: UpdateVoterRequest, cluster_id: str | None) -> quorum_messages.UpdateRaftVoterRequest:
    return quorum_messages.UpdateRaftVoterRequest(
        cluster_id,
        ask.epoch,
        ask.voter.node_id,
        ask.voter.directory_id,
        [quorum_messages.Listener(each.name, each.host, each.port) for each in ask.voter.endpoints],
        quorum_messages.KRaftVersionFeature(ask.voter.kraft_version_min, ask.voter.kraft_version_max),
    )


# Responses to outgoing requests.


def from_wire_response(response: Any, ask: Request, listener_name: str) -> Response | None:
    """Convert a response; None when it is an error or has no result for the requested partition."""
    if isinstance(response, ApiVersionsResponse):
        levels = {each.name: each for each in response.supported_features or ()}
        found = levels.get(KRAFT_VERSION_FEATURE)
        if found is None:
            return VersionsResponse(error_code=response.error_code)
        return VersionsResponse(
            error_code=response.error_code, kraft_version_min=found.min_version, kraft_version_max=found.max_version
        )
    if isinstance(ask, AddVoterRequest | RemoveVoterRequest | UpdateVoterRequest | VersionsRequest):
        return Response(error_code=response.error_code)
    topics = response.responses if isinstance(response, fetch_messages.FetchResponse) else response.topics
    if response.error_code:
        return None
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    if isinstance(partition, fetch_messages.FetchedPartition):
        return _fetch_reply(partition, _leader(partition.current_leader, response, ask.epoch, listener_name))
    if isinstance(partition, quorum_messages.FetchSnapshotPartitionResult):
        leader = _leader(partition.current_leader, response, ask.epoch, listener_name)
        return SnapshotResponse(
            error_code=partition.error_code,
            leader=leader,
            snapshot=SnapshotKey(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
            size_bytes=partition.size,
            position=partition.position,
            data=bytes(partition.unaligned_records),
        )
    leader = _leader(partition, response, ask.epoch, listener_name)
    if isinstance(partition, quorum_messages.VotePartitionResult):
        return VoteResponse(error_code=partition.error_code, leader=leader, is_granted=partition.vote_granted)
    return Response(error_code=partition.error_code, leader=leader)


def _leader(named: Any, response: Any, epoch: int, listener_name: str) -> Leader:
    """The leader that a response names; a response without one, as on success, has the epoch of the request."""
    if named.leader_id < 0 and named.leader_epoch <= 0:
        return Leader(epoch=epoch)
    places = [each for each in response.node_endpoints if each.node_id == named.leader_id]
    endpoint = VoterEndpoint(name=listener_name, host=places[0].host, port=places[0].port) if places else None
    return Leader(node_id=named.leader_id, epoch=named.leader_epoch, endpoint=endpoint)


def _fetch_reply(partition: fetch_messages.FetchedPartition, leader: Leader) -> FetchResponse:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return FetchResponse(
        error_code=partition.error_code,
        leader=leader,
        high_watermark=partition.high_watermark,
        diverging=EpochEnd(diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
        snapshot=SnapshotKey(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
        records=bytes(partition.records or b""),
    )


# Incoming requests.


def ask_of(request: Any, cluster_id: str) -> Request:
    """Convert an incoming request. Raises `InconsistentClusterId` and `InvalidRequest`."""
    if cluster_id and request.cluster_id is not None and request.cluster_id != cluster_id:
        raise InconsistentClusterId
    match request:
        case quorum_messages.AddRaftVoterRequest():
            return AddVoterRequest(
                voter=Voter(
                    node_id=request.voter_id,
                    directory_id=request.voter_directory_id,
                    endpoints=_endpoints(request.listeners),
                ),
                acknowledge_when_committed=request.ack_when_committed,
                timeout_ms=request.timeout_ms,
            )
        case quorum_messages.RemoveRaftVoterRequest():
            return RemoveVoterRequest(voter=ReplicaKey(request.voter_id, request.voter_directory_id))
        case quorum_messages.UpdateRaftVoterRequest():
            versions = request.k_raft_version_feature
            voter = Voter(
                node_id=request.voter_id,
                directory_id=request.voter_directory_id,
                endpoints=_endpoints(request.listeners),
                kraft_version_min=versions.min_supported_version,
                kraft_version_max=versions.max_supported_version,
            )
            return UpdateVoterRequest(epoch=request.current_leader_epoch, voter=voter)
    partition = _only_partition(request)
    match partition:
        case quorum_messages.VotePartition():
            return VoteRequest(
                epoch=partition.replica_epoch,
                candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
                log_end=EpochEnd(partition.last_offset_epoch, partition.last_offset),
                is_pre_vote=partition.pre_vote,
                voter=_requested_voter(request.voter_id, partition.voter_directory_id),
            )
        case quorum_messages.BeginQuorumEpochPartition():
            return BeginEpochRequest(
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                endpoints=_endpoints(request.leader_endpoints),
                voter=_requested_voter(request.voter_id, partition.voter_directory_id),
            )
        case quorum_messages.EndQuorumEpochPartition():
            successors = [
                ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates
            ]
            return EndEpochRequest(
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                endpoints=_endpoints(request.leader_endpoints),
                successors=tuple(successors) or tuple(ReplicaKey(each) for each in partition.preferred_successors),
            )
        case fetch_messages.FetchPartition():
            replica_id = max(request.replica_id, request.replica_state.replica_id)
            return FetchRequest(
                epoch=partition.current_leader_epoch,
                replica=ReplicaKey(replica_id, partition.replica_directory_id),
                offset=partition.fetch_offset,
                last_epoch=partition.last_fetched_epoch,
                # A replica that does not send its high watermark gets the field's default, the maximum: its fetch is
                # not completed early because of a new high watermark.
                high_watermark=partition.high_watermark,
            )
        case quorum_messages.FetchSnapshotPartition():
            return SnapshotRequest(
                epoch=partition.current_leader_epoch,
                replica=ReplicaKey(request.replica_id, partition.replica_directory_id),
                snapshot=SnapshotKey(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                position=partition.position,
            )
    raise InvalidRequest("not a request of the metadata quorum")


def _requested_voter(node_id: int, directory_id: bytes) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id if node_id >= 0 else ZERO_UUID)


def _endpoints(listeners: Sequence[Any]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(name=each.name, host=each.host, port=each.port) for each in listeners)


def _only_partition(request: Any) -> Any:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        raise InvalidRequest("The request must have exactly one topic with one partition.")
    topic = request.topics[0]
    partition = topic.partitions[0]
    if isinstance(topic, fetch_messages.FetchTopic):
        index, is_known = (
            partition.partition,
            topic.topic == CLUSTER_METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID,
        )
    elif isinstance(topic, quorum_messages.FetchSnapshotTopic):
        index, is_known = partition.partition, topic.name == CLUSTER_METADATA_TOPIC
    else:
        index, is_known = partition.partition_index, topic.topic_name == CLUSTER_METADATA_TOPIC
    if not is_known or index != PARTITION:
        raise InvalidRequest("The partition must be __cluster_metadata-0.")
    return partition


# Responses to incoming requests.


def to_wire_response(request: Any, reply: Response) -> Any:
    """Convert the response to a request that `ask_of` accepted."""
    leader = reply.leader
    match request:
        case quorum_messages.VoteRequest():
            assert isinstance(reply, VoteResponse)
            result = quorum_messages.VotePartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch, reply.is_granted
            )
            topics = [quorum_messages.VoteTopicResult(CLUSTER_METADATA_TOPIC, [result])]
            return quorum_messages.VoteResponse(
                topics=topics, node_endpoints=_nodes(leader, quorum_messages.NodeEndpoint)
            )
        case quorum_messages.BeginQuorumEpochRequest():
            begun = quorum_messages.BeginQuorumEpochPartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch
            )
            return quorum_messages.BeginQuorumEpochResponse(
                topics=[quorum_messages.BeginQuorumEpochTopicResult(CLUSTER_METADATA_TOPIC, [begun])],
                node_endpoints=_nodes(leader, quorum_messages.NodeEndpoint),
            )
        case quorum_messages.EndQuorumEpochRequest():
            ended = quorum_messages.EndQuorumEpochPartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch
            )
            return quorum_messages.EndQuorumEpochResponse(
                topics=[quorum_messages.EndQuorumEpochTopicResult(CLUSTER_METADATA_TOPIC, [ended])],
                node_endpoints=_nodes(leader, quorum_messages.NodeEndpoint),
            )
        case fetch_messages.FetchRequest():
            assert isinstance(reply, FetchResponse)
            return _fetch_response(reply)
        case quorum_messages.FetchSnapshotRequest():
            assert isinstance(reply, SnapshotResponse)
            return _snapshot_response(reply)
        case quorum_messages.AddRaftVoterRequest():
            return quorum_messages.AddRaftVoterResponse(
                error_code=reply.error_code, error_message=reply.message or None
            )
        case quorum_messages.RemoveRaftVoterRequest():
            return quorum_messages.RemoveRaftVoterResponse(
                error_code=reply.error_code, error_message=reply.message or None
            )
        case quorum_messages.UpdateRaftVoterRequest():
            place = leader.endpoint
            current = quorum_messages.CurrentLeader(
                leader.node_id, leader.epoch, place.host if place else "", place.port if place else 0
            )
            return quorum_messages.UpdateRaftVoterResponse(error_code=reply.error_code, current_leader=current)
    raise InvalidRequest("not a request of the metadata quorum")


def _fetch_response(reply: FetchResponse) -> fetch_messages.FetchResponse:
    partition = fetch_messages.FetchedPartition(
        PARTITION,
        error_code=reply.error_code,
        high_watermark=reply.high_watermark,
        current_leader=LeaderIdAndEpoch(reply.leader.node_id, reply.leader.epoch),
        records=reply.records,
        aborted_transactions=None,
    )
    if reply.diverging is not None:
        partition.diverging_epoch = fetch_messages.EpochEndOffset(*reply.diverging)
    if reply.snapshot is not None:
        partition.snapshot_id = fetch_messages.SnapshotId(*reply.snapshot)
    topic = fetch_messages.FetchableTopicResponse(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    return fetch_messages.FetchResponse(responses=[topic], node_endpoints=_nodes(reply.leader, NodeEndpoint))


def _snapshot_response(reply: SnapshotResponse) -> quorum_messages.FetchSnapshotResponse:
    partition = quorum_messages.FetchSnapshotPartitionResult(
        PARTITION,
        reply.error_code,
        quorum_messages.SnapshotId(*reply.snapshot),
        quorum_messages.LeaderIdAndEpoch(reply.leader.node_id, reply.leader.epoch),
        reply.size_bytes,
        reply.position,
        reply.data,
    )
    topic = quorum_messages.FetchSnapshotTopicResult(CLUSTER_METADATA_TOPIC, [partition])
    return quorum_messages.FetchSnapshotResponse(
        topics=[topic], node_endpoints=_nodes(reply.leader, quorum_messages.NodeEndpoint)
    )


def _nodes(leader: Leader, kind: type[Any]) -> list[Any]:
    endpoint = leader.endpoint
    return [] if endpoint is None else [kind(leader.node_id, endpoint.host, endpoint.port)]
