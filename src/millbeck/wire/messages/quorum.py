"""The KRaft quorum: votes, epochs, snapshots, voters."""

from __future__ import annotations

from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    int16,
    int32,
    int64,
    message,
    nested,
    records,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class VotePartition:
    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="1+", ignorable=True)
    voter_directory_id: bytes = uuid(versions="1+", ignorable=True)
    last_offset_epoch: int = int32()
    last_offset: int = int64()
    pre_vote: bool = boolean(versions="2+")


@struct
class VoteTopic:
    topic_name: str = string()
    partitions: list[VotePartition] = array(of=VotePartition)


@message(kind=Kind.REQUEST, api_key=52, versions="0-2", flexible="0+")
class VoteRequest:
    """Request a vote; version 1 has directory ids, version 2 pre-votes (KIP-996)."""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32(versions="1+", default=-1, ignorable=True)
    topics: list[VoteTopic] = array(of=VoteTopic)


@struct
class VotePartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()
    vote_granted: bool = boolean()


@struct
class VoteTopicResult:
    topic_name: str = string()
    partitions: list[VotePartitionResult] = array(of=VotePartitionResult)


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.RESPONSE, api_key=52, versions="0-2", flexible="0+")
class VoteResponse:
    """Whether the vote is granted, and the leader known to the voter."""

    error_code: int = int16()
    topics: list[VoteTopicResult] = array(of=VoteTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )


@struct
class BeginQuorumEpochPartition:
    partition_index: int = int32()
    voter_directory_id: bytes = uuid(versions="1+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginQuorumEpochTopic:
    topic_name: str = string()
    partitions: list[BeginQuorumEpochPartition] = array(of=BeginQuorumEpochPartition)


@struct
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.REQUEST, api_key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochRequest:
    """Announce a new leader; version 1 has the voter and the leader's endpoints."""

    cluster_id: str | None = string(nullable="0+", default=None)
    voter_id: int = int32(versions="1+", default=-1, ignorable=True)
    topics: list[BeginQuorumEpochTopic] = array(of=BeginQuorumEpochTopic)
    leader_endpoints: list[LeaderEndpoint] = array(of=LeaderEndpoint, versions="1+", ignorable=True)


@struct
class BeginQuorumEpochPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class BeginQuorumEpochTopicResult:
    topic_name: str = string()
    partitions: list[BeginQuorumEpochPartitionResult] = array(of=BeginQuorumEpochPartitionResult)


@message(kind=Kind.RESPONSE, api_key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """The voter's view of the epoch."""

    error_code: int = int16()
    topics: list[BeginQuorumEpochTopicResult] = array(of=BeginQuorumEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )


@struct
class ReplicaInfo:
    candidate_id: int = int32()
    candidate_directory_id: bytes = uuid()


@struct
class EndQuorumEpochPartition:
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32()
    preferred_successors: list[int] = array(of=int32, versions="0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = array(of=ReplicaInfo, versions="1+", ignorable=True)


@struct
class EndQuorumEpochTopic:
    topic_name: str = string()
    partitions: list[EndQuorumEpochPartition] = array(of=EndQuorumEpochPartition)


@message(kind=Kind.REQUEST, api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochRequest:
    """Resign as leader. Preferred successors first: by id in version 0, with directory ids from version 1."""

    cluster_id: str | None = string(nullable="0+", default=None)
    topics: list[EndQuorumEpochTopic] = array(of=EndQuorumEpochTopic)
    leader_endpoints: list[LeaderEndpoint] = array(of=LeaderEndpoint, versions="1+", ignorable=True)


@struct
class EndQuorumEpochPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class EndQuorumEpochTopicResult:
    topic_name: str = string()
    partitions: list[EndQuorumEpochPartitionResult] = array(of=EndQuorumEpochPartitionResult)


@message(kind=Kind.RESPONSE, api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """The voter's view of the epoch."""

    error_code: int = int16()
    topics: list[EndQuorumEpochTopicResult] = array(of=EndQuorumEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )


@struct
class SnapshotId:
    end_offset: int = int64()
    epoch: int = int32()


@struct
class FetchSnapshotPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(doc="Leader epoch known to the client; -1 is not checked.")
    snapshot_id: SnapshotId = nested(of=SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid(versions="1+", tag=0, ignorable=True)


@struct
class FetchSnapshotTopic:
    name: str = string()
    partitions: list[FetchSnapshotPartition] = array(of=FetchSnapshotPartition)


@message(kind=Kind.REQUEST, api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    """Fetch part of a snapshot, identified by end offset and epoch."""

    cluster_id: str | None = string(nullable="0+", tag=0, default=None)
    replica_id: int = int32(default=-1)
    max_bytes: int = int32(default=0x7FFFFFFF)
    topics: list[FetchSnapshotTopic] = array(of=FetchSnapshotTopic)


@struct
class LeaderIdAndEpoch:
    leader_id: int = int32()
    leader_epoch: int = int32()


@struct
class FetchSnapshotPartitionResult:
    index: int = int32()
    error_code: int = int16()
    snapshot_id: SnapshotId = nested(of=SnapshotId)
    current_leader: LeaderIdAndEpoch = nested(of=LeaderIdAndEpoch, tag=0)
    size: int = int64()
    position: int = int64()
    unaligned_records: bytes = records()


@struct
class FetchSnapshotTopicResult:
    name: str = string()
    partitions: list[FetchSnapshotPartitionResult] = array(of=FetchSnapshotPartitionResult)


@message(kind=Kind.RESPONSE, api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """The snapshot's bytes from the position on; version 1 has the leader's endpoint."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    topics: list[FetchSnapshotTopicResult] = array(of=FetchSnapshotTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )


@struct
class DescribeQuorumRequestPartition:
    partition_index: int = int32()


@struct
class DescribeQuorumRequestTopic:
    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartition] = array(of=DescribeQuorumRequestPartition)


@message(kind=Kind.REQUEST, api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """Describe the quorum; the topic must be the metadata log."""

    topics: list[DescribeQuorumRequestTopic] = array(of=DescribeQuorumRequestTopic)


@struct
class QuorumReplica:
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64(versions="1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64(versions="1+", default=-1, ignorable=True)


@struct
class DescribeQuorumPartition:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[QuorumReplica] = array(of=QuorumReplica)
    observers: list[QuorumReplica] = array(of=QuorumReplica)


@struct
class DescribeQuorumTopic:
    topic_name: str = string()
    partitions: list[DescribeQuorumPartition] = array(of=DescribeQuorumPartition)


@struct
class QuorumListener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@struct
class QuorumNode:
    node_id: int = int32()
    listeners: list[QuorumListener] = array(of=QuorumListener)


@message(kind=Kind.RESPONSE, api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """Leader, voters and observers as known to the leader. Version 1 adds timestamps, version 2 nodes and directory
    ids."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", ignorable=True)
    topics: list[DescribeQuorumTopic] = array(of=DescribeQuorumTopic)
    nodes: list[QuorumNode] = array(of=QuorumNode, versions="2+")


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.REQUEST, api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterRequest:
    """Add a voter; version 1 can be acknowledged before the change is committed."""

    cluster_id: str | None = string(nullable="0+")
    timeout_ms: int = int32()
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(of=Listener)
    ack_when_committed: bool = boolean(versions="1+", default=True)


@message(kind=Kind.RESPONSE, api_key=80, versions="0-1", flexible="0+")
class AddRaftVoterResponse:
    """The result as an error code."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@message(kind=Kind.REQUEST, api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterRequest:
    """Remove a voter, identified by node and directory."""

    cluster_id: str | None = string(nullable="0+")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()


@message(kind=Kind.RESPONSE, api_key=81, versions="0", flexible="0+")
class RemoveRaftVoterResponse:
    """The result as an error code."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)


@struct
class KRaftVersionFeature:
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(kind=Kind.REQUEST, api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterRequest:
    """Update a voter's endpoints and supported versions; sent to the quorum's leader."""

    cluster_id: str | None = string(nullable="0+")
    current_leader_epoch: int = int32(doc="Leader epoch known to the client; -1 is not checked.")
    voter_id: int = int32()
    voter_directory_id: bytes = uuid()
    listeners: list[Listener] = array(of=Listener)
    k_raft_version_feature: KRaftVersionFeature = nested(of=KRaftVersionFeature)


@struct
class CurrentLeader:
    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    host: str = string()
    port: int = int32()


@message(kind=Kind.RESPONSE, api_key=82, versions="0", flexible="0+")
class UpdateRaftVoterResponse:
    """The leader known to the receiver."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    current_leader: CurrentLeader = nested(of=CurrentLeader, tag=0)
