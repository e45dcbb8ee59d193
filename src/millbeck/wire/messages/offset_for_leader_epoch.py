"""OffsetForLeaderEpoch: where a leader epoch ended, so that a reader can see that its log diverged."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@struct
class OffsetForLeaderPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(default=-1, doc="The epoch the client believes in; -1 is not checked.")
    leader_epoch: int = int32()


@struct
class OffsetForLeaderTopic:
    topic: str = string()
    partitions: list[OffsetForLeaderPartition] = array(of=OffsetForLeaderPartition)


@message(kind=Kind.REQUEST, api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochRequest:
    """Version 3 says who asks."""

    replica_id: int = int32(versions="3+", default=-2, ignorable=True, doc="-1 for a consumer, -2 when unknown.")
    topics: list[OffsetForLeaderTopic] = array(of=OffsetForLeaderTopic)


@struct
class EpochEndOffset:
    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1, doc="-1 when the epoch is unknown.")


@struct
class OffsetForLeaderTopicResult:
    topic: str = string()
    partitions: list[EpochEndOffset] = array(of=EpochEndOffset)


@message(kind=Kind.RESPONSE, api_key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The largest epoch not above the one asked for, and the offset after its last record."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[OffsetForLeaderTopicResult] = array(of=OffsetForLeaderTopicResult)
