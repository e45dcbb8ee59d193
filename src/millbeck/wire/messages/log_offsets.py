"""ListOffsets: the offset that belongs to a time, or to the start or end of a log."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct


@struct
class ListOffsetsPartition:
    partition_index: int = int32()
    current_leader_epoch: int = int32(
        versions="4+", default=-1, ignorable=True, doc="The epoch the client believes in; -1 is not checked."
    )
    timestamp: int = int64()


@struct
class ListOffsetsTopic:
    name: str = string()
    partitions: list[ListOffsetsPartition] = array(of=ListOffsetsPartition)


@message(kind=Kind.REQUEST, api_key=2, versions="1-11", flexible="6+")
class ListOffsetsRequest:
    """By time, or by a special timestamp: -1 latest, -2 earliest, -3 largest timestamp (version 7), -4 earliest local
    (8), -5 latest tiered (9), -6 earliest pending upload (11).
    """

    replica_id: int = int32(doc="-1 for a consumer.")
    isolation_level: int = int8(versions="2+", doc="0 reads all records, 1 only those of committed transactions.")
    topics: list[ListOffsetsTopic] = array(of=ListOffsetsTopic)
    timeout_ms: int = int32(versions="10+", ignorable=True, doc="How long to wait for an answer from remote storage.")


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
    """One offset and its timestamp for each partition; both -1 when nothing is that late."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True, doc="How long a quota holds this client back.")
    topics: list[ListOffsetsTopicResponse] = array(of=ListOffsetsTopicResponse)
