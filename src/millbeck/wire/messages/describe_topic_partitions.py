"""DescribeTopicPartitions: topics page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, nested, string, struct, uuid


@struct
class DescribeTopicPartitionsTopic:
    name: str = string()


@struct
class Cursor:
    topic_name: str = string()
    partition_index: int = int32()


@message(kind=Kind.REQUEST, api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsRequest:
    """No topics asks for all. Names are answered in sorted order, beginning at the cursor."""

    topics: list[DescribeTopicPartitionsTopic] = array(of=DescribeTopicPartitionsTopic)
    response_partition_limit: int = int32(default=2000, doc="Most partitions on one page.")
    cursor: Cursor | None = nested(of=Cursor, nullable="0+", default=None, doc="Where to go on; null begins.")


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: list[int] = array(of=int32)
    isr_nodes: list[int] = array(of=int32)
    eligible_leader_replicas: list[int] | None = array(
        of=int32, nullable="0+", default=None, doc="Out of sync, yet holding all committed records."
    )
    last_known_elr: list[int] | None = array(of=int32, nullable="0+", default=None)
    offline_replicas: list[int] = array(of=int32, doc="Replicas whose broker or directory is down.")


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: bytes = uuid()
    is_internal: bool = boolean()
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(of=DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )


@message(kind=Kind.RESPONSE, api_key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """One page; ``next_cursor`` is null after the last."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[DescribeTopicPartitionsResponseTopic] = array(of=DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(of=Cursor, nullable="0+", default=None)
