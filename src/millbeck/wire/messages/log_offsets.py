"""Offsets of a log: ListOffsets, OffsetForLeaderEpoch."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(
        versions="4+", default=-1, ignorable=True, doc="Leader epoch known to the client; -1 is not checked."
    )
    timestamp: int = int64()


@struct
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(of=ListOffsetsPartition)


@message(kind=Kind.REQUEST, api_key=2, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """Find offsets by timestamp, or by a special one: -1 latest, -2 earliest, -3 maximum timestamp (version 7), -4
    earliest local (8), -5 latest tiered (9), -6 earliest pending upload (11)."""

    replica_id: int = int32(doc="-1 for a consumer.")
    isolation_level: int = int8(versions="2+", doc="0 read uncommitted, 1 read committed.")
    topics: list[ListOffsetsTopic] = array(of=ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True, doc="Maximum wait for remote storage.")


@struct
class ListOffsetsPartitionResponse:
    partition_index: int = int32()
    error_code: int = int16()
    timestamp: int = int64(default=-1)
    offset: int = int64(default=-1)
    leader_epoch: int = int32(versions="4+", default=-1, doc="Epoch of the record at the offset.")


@struct
class ListOffsetsTopicResponse:
    name: str = string()
    partitions: list[ListOffsetsPartitionResponse] = array(of=ListOffsetsPartitionResponse)


@message(kind=Kind.RESPONSE, api_key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """One offset and its timestamp for each partition; both -1 if no record is that recent."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[ListOffsetsTopicResponse] = array(of=ListOffsetsTopicResponse)


@struct
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(
        default=-1, ignorable=True, doc="Leader epoch known to the client; -1 is not checked."
    )
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic:
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(of=OffsetForLeaderPartition)


@message(kind=Kind.REQUEST, api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Find the end offsets of leader epochs; version 3 has the replica id."""

    replica_id: int = int32(versions="3+", default=-2, ignorable=True, doc="-1 for a consumer, -2 when unknown.")
    topics: list[OffsetForLeaderTopic] = array(of=OffsetForLeaderTopic)


@struct
class EpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    end_offset: int = int64(default=-1, doc="-1 if the epoch is unknown.")


@struct
class OffsetForLeaderTopicResult:
    topic: str = string()
    partitions: list[EpochEndOffset] = array(of=EpochEndOffset)


@message(kind=Kind.RESPONSE, api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The largest epoch not above the requested one, and its end offset."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[OffsetForLeaderTopicResult] = array(of=OffsetForLeaderTopicResult)
