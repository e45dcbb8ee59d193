"""DescribeQuorum: the state of the metadata quorum."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct, uint16, uuid


@struct
class DescribeQuorumRequestPartition:
    partition_index: int = int32()


@struct
class DescribeQuorumRequestTopic:
    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartition] = array(of=DescribeQuorumRequestPartition)


@message(kind=Kind.REQUEST, api_key=55, versions="0-2", flexible="0+")
class DescribeQuorumRequest:
    """The only topic there is to ask for is the metadata log."""

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
    """Leader, voters and observers as the leader sees them. Version 1 adds times, version 2 nodes and directory ids."""

    error_code: int = int16()
    error_message: str | None = string(versions="2+", nullable="0+", ignorable=True)
    topics: list[DescribeQuorumTopic] = array(of=DescribeQuorumTopic)
    nodes: list[QuorumNode] = array(of=QuorumNode, versions="2+")
