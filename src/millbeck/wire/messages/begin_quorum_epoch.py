"""BeginQuorumEpoch: a new quorum leader announces itself."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct, uint16, uuid


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
    """Version 1 names the voter and where the leader listens."""

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


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.RESPONSE, api_key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """The voter's view of the epoch."""

    error_code: int = int16()
    topics: list[BeginQuorumEpochTopicResult] = array(of=BeginQuorumEpochTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Where to find the leaders named above (KIP-951)."
    )
