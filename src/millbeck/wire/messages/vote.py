"""Vote: a candidate asks to lead the metadata quorum."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class VotePartition:
    partition_index: int = int32()
    replica_epoch: int = int32()
    replica_id: int = int32()
    replica_directory_id: bytes = uuid(versions="1+")
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
    """Version 1 names directories, version 2 can ask without raising the epoch (KIP-996)."""

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
    """Granted or not, with the leader the voter knows."""

    error_code: int = int16()
    topics: list[VoteTopicResult] = array(of=VoteTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Where to find the leaders named above (KIP-951)."
    )
