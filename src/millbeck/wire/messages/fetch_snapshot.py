"""FetchSnapshot: read a part of a metadata snapshot."""

from __future__ import annotations

from millbeck.wire.schema import (
    Kind,
    array,
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
class SnapshotId:
    end_offset: int = int64()
    epoch: int = int32()


@struct
class FetchSnapshotPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(doc="The epoch the client believes in; -1 is not checked.")
    snapshot_id: SnapshotId = nested(of=SnapshotId)
    position: int = int64()
    replica_directory_id: bytes = uuid(versions="1+", tag=0, ignorable=True)


@struct
class FetchSnapshotTopic:
    name: str = string()
    partitions: list[FetchSnapshotPartition] = array(of=FetchSnapshotPartition)


@message(kind=Kind.REQUEST, api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotRequest:
    """From a position of the snapshot with that end offset and epoch."""

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


@struct
class NodeEndpoint:
    node_id: int = int32()
    host: str = string()
    port: int = uint16()


@message(kind=Kind.RESPONSE, api_key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """The bytes from there on; version 1 says where leaders listen."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    topics: list[FetchSnapshotTopicResult] = array(of=FetchSnapshotTopicResult)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="1+", tag=0, doc="Where to find the leaders named above (KIP-951)."
    )
