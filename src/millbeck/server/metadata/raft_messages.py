"""The quorum's questions and answers as Kafka's messages, in both directions.

All of these requests are lists of topics with lists of partitions, of which there is exactly one here, the metadata
log. Whatever else is asked for is INVALID_REQUEST, another cluster's id INCONSISTENT_CLUSTER_ID, both raised as errors.
A leader is named by id and epoch in the partition, and by address beside the topics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from millbeck.kernel.errors import InconsistentClusterId, InvalidRequest
from millbeck.kernel.ids import ZERO_UUID
from millbeck.kernel.names import CLUSTER_METADATA_TOPIC
from millbeck.raft.messages import (
    AddVoterAsk,
    Ask,
    BeginEpochAsk,
    EndEpochAsk,
    EpochEnd,
    FetchAsk,
    FetchReply,
    RemoveVoterAsk,
    Reply,
    SnapshotAsk,
    SnapshotKey,
    SnapshotReply,
    UpdateVoterAsk,
    VersionsAsk,
    VersionsReply,
    VoteAsk,
    VoteReply,
)
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import Voter, VoterEndpoint
from millbeck.server.drivers.metadata_loading import METADATA_TOPIC_ID
from millbeck.wire.messages import (
    add_raft_voter,
    begin_quorum_epoch,
    end_quorum_epoch,
    fetch,
    fetch_snapshot,
    remove_raft_voter,
    update_raft_voter,
    vote,
)
from millbeck.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

PARTITION: Final = 0
KRAFT_VERSION_FEATURE: Final = "kraft.version"


class Question:
    """A request as it goes out: the message, the class of its answer, and the oldest version that can say it."""

    __slots__ = ("message", "response", "version_min")

    def __init__(self, message: object, response: type[Any], version_min: int | None = None) -> None:
        self.message = message
        self.response = response
        self.version_min = version_min


# Asking.


def question(
    ask: Ask, *, cluster_id: str | None, fetch_bytes_max: int, snapshot_bytes_max: int, wait_ms: int
) -> Question:
    match ask:
        case VoteAsk():
            return Question(_vote_request(ask, cluster_id), vote.VoteResponse, 2)
        case BeginEpochAsk():
            return Question(_begin_request(ask, cluster_id), begin_quorum_epoch.BeginQuorumEpochResponse, 1)
        case EndEpochAsk():
            return Question(_end_request(ask, cluster_id), end_quorum_epoch.EndQuorumEpochResponse, 1)
        case FetchAsk():
            return Question(_fetch_request(ask, cluster_id, fetch_bytes_max, wait_ms), fetch.FetchResponse, 17)
        case SnapshotAsk():
            request = _snapshot_request(ask, cluster_id, snapshot_bytes_max)
            return Question(request, fetch_snapshot.FetchSnapshotResponse, 1)
        case VersionsAsk():
            message = ApiVersionsRequest(client_software_name="millbeck", client_software_version="quorum")
            return Question(message, ApiVersionsResponse, 3)
        case AddVoterAsk():
            return Question(_add_request(ask, cluster_id), add_raft_voter.AddRaftVoterResponse, 1)
        case RemoveVoterAsk():
            removal = remove_raft_voter.RemoveRaftVoterRequest(cluster_id, *ask.voter)
            return Question(removal, remove_raft_voter.RemoveRaftVoterResponse)
        case UpdateVoterAsk():
            return Question(_update_request(ask, cluster_id), update_raft_voter.UpdateRaftVoterResponse)


def _vote_request(ask: VoteAsk, cluster_id: str | None) -> vote.VoteRequest:
    partition = vote.VotePartition(
        PARTITION,
        replica_epoch=ask.epoch,
        replica_id=ask.candidate.node_id,
        replica_directory_id=ask.candidate.directory_id,
        voter_directory_id=ask.voter.directory_id,
        last_offset_epoch=ask.log_end.epoch,
        last_offset=ask.log_end.end_offset,
        pre_vote=ask.is_pre_vote,
    )
    topics = [vote.VoteTopic(CLUSTER_METADATA_TOPIC, [partition])]
    return vote.VoteRequest(cluster_id, ask.voter.node_id, topics)


def _begin_request(ask: BeginEpochAsk, cluster_id: str | None) -> begin_quorum_epoch.BeginQuorumEpochRequest:
    partition = begin_quorum_epoch.BeginQuorumEpochPartition(
        PARTITION, voter_directory_id=ask.voter.directory_id, leader_id=ask.leader_id, leader_epoch=ask.epoch
    )
    return begin_quorum_epoch.BeginQuorumEpochRequest(
        cluster_id,
        ask.voter.node_id,
        [begin_quorum_epoch.BeginQuorumEpochTopic(CLUSTER_METADATA_TOPIC, [partition])],
        [begin_quorum_epoch.LeaderEndpoint(each.name, each.host, each.port) for each in ask.endpoints],
    )


def _end_request(ask: EndEpochAsk, cluster_id: str | None) -> end_quorum_epoch.EndQuorumEpochRequest:
    partition = end_quorum_epoch.EndQuorumEpochPartition(
        PARTITION,
        leader_id=ask.leader_id,
        leader_epoch=ask.epoch,
        preferred_candidates=[end_quorum_epoch.ReplicaInfo(*successor) for successor in ask.successors],
    )
    return end_quorum_epoch.EndQuorumEpochRequest(
        cluster_id,
        [end_quorum_epoch.EndQuorumEpochTopic(CLUSTER_METADATA_TOPIC, [partition])],
        [end_quorum_epoch.LeaderEndpoint(each.name, each.host, each.port) for each in ask.endpoints],
    )


def _fetch_request(ask: FetchAsk, cluster_id: str | None, bytes_max: int, wait_ms: int) -> fetch.FetchRequest:
    partition = fetch.FetchPartition(
        PARTITION,
        current_leader_epoch=ask.epoch,
        fetch_offset=ask.offset,
        last_fetched_epoch=ask.last_epoch,
        partition_max_bytes=bytes_max,
        replica_directory_id=ask.replica.directory_id,
        high_watermark=ask.high_watermark,
    )
    return fetch.FetchRequest(
        cluster_id=cluster_id,
        replica_state=fetch.ReplicaState(ask.replica.node_id),
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=bytes_max,
        topics=[fetch.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
    )


def _snapshot_request(ask: SnapshotAsk, cluster_id: str | None, bytes_max: int) -> fetch_snapshot.FetchSnapshotRequest:
    partition = fetch_snapshot.FetchSnapshotPartition(
        PARTITION,
        current_leader_epoch=ask.epoch,
        snapshot_id=fetch_snapshot.SnapshotId(*ask.snapshot),
        position=ask.position,
        replica_directory_id=ask.replica.directory_id,
    )
    topics = [fetch_snapshot.FetchSnapshotTopic(CLUSTER_METADATA_TOPIC, [partition])]
    return fetch_snapshot.FetchSnapshotRequest(cluster_id, ask.replica.node_id, bytes_max, topics)


def _add_request(ask: AddVoterAsk, cluster_id: str | None) -> add_raft_voter.AddRaftVoterRequest:
    return add_raft_voter.AddRaftVoterRequest(
        cluster_id,
        ask.timeout_ms,
        ask.voter.node_id,
        ask.voter.directory_id,
        [add_raft_voter.Listener(each.name, each.host, each.port) for each in ask.voter.endpoints],
        ask.acknowledge_when_committed,
    )


def _update_request(ask: UpdateVoterAsk, cluster_id: str | None) -> update_raft_voter.UpdateRaftVoterRequest:
    return update_raft_voter.UpdateRaftVoterRequest(
        cluster_id,
        ask.epoch,
        ask.voter.node_id,
        ask.voter.directory_id,
        [update_raft_voter.Listener(each.name, each.host, each.port) for each in ask.voter.endpoints],
        update_raft_voter.KRaftVersionFeature(ask.voter.kraft_version_min, ask.voter.kraft_version_max),
    )


# Being answered.


def reply_of(response: Any, ask: Ask, listener_name: str) -> Reply | None:
    """What an answer says; None when it says nothing that belongs to the question."""
    if isinstance(response, ApiVersionsResponse):
        levels = {each.name: each for each in response.supported_features or ()}
        found = levels.get(KRAFT_VERSION_FEATURE)
        if found is None:
            return VersionsReply(error_code=response.error_code)
        return VersionsReply(
            error_code=response.error_code, kraft_version_min=found.min_version, kraft_version_max=found.max_version
        )
    if isinstance(ask, AddVoterAsk | RemoveVoterAsk | UpdateVoterAsk | VersionsAsk):
        return Reply(error_code=response.error_code)
    topics = response.responses if isinstance(response, fetch.FetchResponse) else response.topics
    if response.error_code:
        return None
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    partition = topics[0].partitions[0]
    if isinstance(partition, fetch.FetchedPartition):
        return _fetch_reply(partition, _leader(partition.current_leader, response, ask.epoch, listener_name))
    if isinstance(partition, fetch_snapshot.FetchSnapshotPartitionResult):
        leader = _leader(partition.current_leader, response, ask.epoch, listener_name)
        return SnapshotReply(
            error_code=partition.error_code,
            leader=leader,
            snapshot=SnapshotKey(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
            size_bytes=partition.size,
            position=partition.position,
            data=bytes(partition.unaligned_records),
        )
    leader = _leader(partition, response, ask.epoch, listener_name)
    if isinstance(partition, vote.VotePartitionResult):
        return VoteReply(error_code=partition.error_code, leader=leader, is_granted=partition.vote_granted)
    return Reply(error_code=partition.error_code, leader=leader)


def _leader(named: Any, response: Any, epoch: int, listener_name: str) -> Leader:
    """An answer that names nobody, as when there is no error, is of the epoch in which was asked."""
    if named.leader_id < 0 and named.leader_epoch <= 0:
        return Leader(epoch=epoch)
    places = [each for each in response.node_endpoints if each.node_id == named.leader_id]
    endpoint = VoterEndpoint(name=listener_name, host=places[0].host, port=places[0].port) if places else None
    return Leader(node_id=named.leader_id, epoch=named.leader_epoch, endpoint=endpoint)


def _fetch_reply(partition: fetch.FetchedPartition, leader: Leader) -> FetchReply:
    diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
    return FetchReply(
        error_code=partition.error_code,
        leader=leader,
        high_watermark=partition.high_watermark,
        diverging=EpochEnd(diverging.epoch, diverging.end_offset) if diverging.end_offset >= 0 else None,
        snapshot=SnapshotKey(snapshot.end_offset, snapshot.epoch) if snapshot.end_offset >= 0 else None,
        records=bytes(partition.records or b""),
    )


# Being asked.


def ask_of(request: Any, cluster_id: str) -> Ask:
    """What a request asks. Raises `InconsistentClusterId` and `InvalidRequest`."""
    if cluster_id and request.cluster_id is not None and request.cluster_id != cluster_id:
        raise InconsistentClusterId
    match request:
        case add_raft_voter.AddRaftVoterRequest():
            return AddVoterAsk(
                voter=Voter(
                    node_id=request.voter_id,
                    directory_id=request.voter_directory_id,
                    endpoints=_endpoints(request.listeners),
                ),
                acknowledge_when_committed=request.ack_when_committed,
                timeout_ms=request.timeout_ms,
            )
        case remove_raft_voter.RemoveRaftVoterRequest():
            return RemoveVoterAsk(voter=ReplicaKey(request.voter_id, request.voter_directory_id))
        case update_raft_voter.UpdateRaftVoterRequest():
            versions = request.k_raft_version_feature
            voter = Voter(
                node_id=request.voter_id,
                directory_id=request.voter_directory_id,
                endpoints=_endpoints(request.listeners),
                kraft_version_min=versions.min_supported_version,
                kraft_version_max=versions.max_supported_version,
            )
            return UpdateVoterAsk(epoch=request.current_leader_epoch, voter=voter)
    partition = _only_partition(request)
    match partition:
        case vote.VotePartition():
            return VoteAsk(
                epoch=partition.replica_epoch,
                candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
                log_end=EpochEnd(partition.last_offset_epoch, partition.last_offset),
                is_pre_vote=partition.pre_vote,
                voter=_addressee(request.voter_id, partition.voter_directory_id),
            )
        case begin_quorum_epoch.BeginQuorumEpochPartition():
            return BeginEpochAsk(
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                endpoints=_endpoints(request.leader_endpoints),
                voter=_addressee(request.voter_id, partition.voter_directory_id),
            )
        case end_quorum_epoch.EndQuorumEpochPartition():
            successors = [
                ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in partition.preferred_candidates
            ]
            return EndEpochAsk(
                epoch=partition.leader_epoch,
                leader_id=partition.leader_id,
                endpoints=_endpoints(request.leader_endpoints),
                successors=tuple(successors) or tuple(ReplicaKey(each) for each in partition.preferred_successors),
            )
        case fetch.FetchPartition():
            replica_id = max(request.replica_id, request.replica_state.replica_id)
            return FetchAsk(
                epoch=partition.current_leader_epoch,
                replica=ReplicaKey(replica_id, partition.replica_directory_id),
                offset=partition.fetch_offset,
                last_epoch=partition.last_fetched_epoch,
                # Who does not say what it knows is taken to know everything: it is not answered early because of it.
                high_watermark=partition.high_watermark,
            )
        case fetch_snapshot.FetchSnapshotPartition():
            return SnapshotAsk(
                epoch=partition.current_leader_epoch,
                replica=ReplicaKey(request.replica_id, partition.replica_directory_id),
                snapshot=SnapshotKey(partition.snapshot_id.end_offset, partition.snapshot_id.epoch),
                position=partition.position,
            )
    raise InvalidRequest("This is nothing that the quorum is asked.")


def _addressee(node_id: int, directory_id: bytes) -> ReplicaKey:
    return ReplicaKey(node_id, directory_id if node_id >= 0 else ZERO_UUID)


def _endpoints(listeners: Sequence[Any]) -> tuple[VoterEndpoint, ...]:
    return tuple(VoterEndpoint(name=each.name, host=each.host, port=each.port) for each in listeners)


def _only_partition(request: Any) -> Any:
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        raise InvalidRequest("The quorum has one topic with one partition.")
    topic = request.topics[0]
    partition = topic.partitions[0]
    if isinstance(topic, fetch.FetchTopic):
        index, is_known = (
            partition.partition,
            topic.topic == CLUSTER_METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID,
        )
    elif isinstance(topic, fetch_snapshot.FetchSnapshotTopic):
        index, is_known = partition.partition, topic.name == CLUSTER_METADATA_TOPIC
    else:
        index, is_known = partition.partition_index, topic.topic_name == CLUSTER_METADATA_TOPIC
    if not is_known or index != PARTITION:
        raise InvalidRequest("The quorum's topic is __cluster_metadata, partition 0.")
    return partition


# Answering.


def response_of(request: Any, reply: Reply) -> Any:
    """The response to a request that `ask_of` has understood."""
    leader = reply.leader
    match request:
        case vote.VoteRequest():
            assert isinstance(reply, VoteReply)
            result = vote.VotePartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch, reply.is_granted
            )
            topics = [vote.VoteTopicResult(CLUSTER_METADATA_TOPIC, [result])]
            return vote.VoteResponse(topics=topics, node_endpoints=_nodes(leader, vote.NodeEndpoint))
        case begin_quorum_epoch.BeginQuorumEpochRequest():
            begun = begin_quorum_epoch.BeginQuorumEpochPartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch
            )
            return begin_quorum_epoch.BeginQuorumEpochResponse(
                topics=[begin_quorum_epoch.BeginQuorumEpochTopicResult(CLUSTER_METADATA_TOPIC, [begun])],
                node_endpoints=_nodes(leader, begin_quorum_epoch.NodeEndpoint),
            )
        case end_quorum_epoch.EndQuorumEpochRequest():
            ended = end_quorum_epoch.EndQuorumEpochPartitionResult(
                PARTITION, reply.error_code, leader.node_id, leader.epoch
            )
            return end_quorum_epoch.EndQuorumEpochResponse(
                topics=[end_quorum_epoch.EndQuorumEpochTopicResult(CLUSTER_METADATA_TOPIC, [ended])],
                node_endpoints=_nodes(leader, end_quorum_epoch.NodeEndpoint),
            )
        case fetch.FetchRequest():
            assert isinstance(reply, FetchReply)
            return _fetch_response(reply)
        case fetch_snapshot.FetchSnapshotRequest():
            assert isinstance(reply, SnapshotReply)
            return _snapshot_response(reply)
        case add_raft_voter.AddRaftVoterRequest():
            return add_raft_voter.AddRaftVoterResponse(error_code=reply.error_code, error_message=reply.message or None)
        case remove_raft_voter.RemoveRaftVoterRequest():
            return remove_raft_voter.RemoveRaftVoterResponse(
                error_code=reply.error_code, error_message=reply.message or None
            )
        case update_raft_voter.UpdateRaftVoterRequest():
            place = leader.endpoint
            current = update_raft_voter.CurrentLeader(
                leader.node_id, leader.epoch, place.host if place else "", place.port if place else 0
            )
            return update_raft_voter.UpdateRaftVoterResponse(error_code=reply.error_code, current_leader=current)
    raise InvalidRequest("This is nothing that the quorum is asked.")


def _fetch_response(reply: FetchReply) -> fetch.FetchResponse:
    partition = fetch.FetchedPartition(
        PARTITION,
        error_code=reply.error_code,
        high_watermark=reply.high_watermark,
        current_leader=fetch.LeaderIdAndEpoch(reply.leader.node_id, reply.leader.epoch),
        records=reply.records,
        aborted_transactions=None,
    )
    if reply.diverging is not None:
        partition.diverging_epoch = fetch.EpochEndOffset(*reply.diverging)
    if reply.snapshot is not None:
        partition.snapshot_id = fetch.SnapshotId(*reply.snapshot)
    topic = fetch.FetchableTopicResponse(CLUSTER_METADATA_TOPIC, METADATA_TOPIC_ID, [partition])
    return fetch.FetchResponse(responses=[topic], node_endpoints=_nodes(reply.leader, fetch.NodeEndpoint))


def _snapshot_response(reply: SnapshotReply) -> fetch_snapshot.FetchSnapshotResponse:
    partition = fetch_snapshot.FetchSnapshotPartitionResult(
        PARTITION,
        reply.error_code,
        fetch_snapshot.SnapshotId(*reply.snapshot),
        fetch_snapshot.LeaderIdAndEpoch(reply.leader.node_id, reply.leader.epoch),
        reply.size_bytes,
        reply.position,
        reply.data,
    )
    topic = fetch_snapshot.FetchSnapshotTopicResult(CLUSTER_METADATA_TOPIC, [partition])
    return fetch_snapshot.FetchSnapshotResponse(
        topics=[topic], node_endpoints=_nodes(reply.leader, fetch_snapshot.NodeEndpoint)
    )


def _nodes(leader: Leader, kind: type[Any]) -> list[Any]:
    endpoint = leader.endpoint
    return [] if endpoint is None else [kind(leader.node_id, endpoint.host, endpoint.port)]
