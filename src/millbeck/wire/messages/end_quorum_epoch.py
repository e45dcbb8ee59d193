"""EndQuorumEpoch: a quorum leader resigns."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct, uint16, uuid


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


@struct
class LeaderEndpoint:
    name: str = string()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.REQUEST, api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochRequest:
    """Successors best first: by id in version 0, with directories from version 1."""

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


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.RESPONSE, api_key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """The voter's view of the epoch."""

    error_code: int = int16()
    topics: list[EndQuorumEpochTopicResult] = array(of=EndQuorumEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Where to find the leaders named above (KIP-951)."
    )
