"""Fetch messages. `millbeck.wire.fast_fetch` has the codecs of the hot path."""

from __future__ import annotations

from millbeck.wire.messages.shared import LeaderIdAndEpoch, NodeEndpoint
from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, nested, records, string, struct, uuid


@struct
class ReplicaState:
    replica_id: int = int32(default=-1)
    replica_epoch: int = int64(default=-1)


@struct
class FetchPartition:
    partition: int = int32()
    current_leader_epoch: int = int32(
        versions="9+", default=-1, ignorable=True, doc="Leader epoch known to the client; -1 is not checked."
    )
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32(
        versions="12+", default=-1, doc="Epoch of the last fetched record; -1 if there is none."
    )
    log_start_offset: int = int64(
        versions="5+", default=-1, ignorable=True, doc="The follower's log start; -1 for a consumer."
    )
    partition_max_bytes: int = int32()
    replica_directory_id: bytes = uuid(versions="17+", tag=0, ignorable=True, doc="The directory of a KRaft follower.")
    high_watermark: int = int64(
        versions="18+",
        tag=1,
        default=0x7FFFFFFFFFFFFFFF,
        ignorable=True,
        doc="As known to a KRaft follower (KIP-1166).",
    )


@struct
class FetchTopic:
    topic: str = string(versions="0-12", ignorable=True)
    topic_id: bytes = uuid(versions="13+", ignorable=True)
    partitions: list[FetchPartition] = array(of=FetchPartition)


@struct
class ForgottenTopic:
    topic: str = string(versions="7-12", ignorable=True)
    topic_id: bytes = uuid(versions="13+", ignorable=True)
    partitions: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=1, versions="4-18", flexible="12+")
class FetchRequest:
    """Read each partition from an offset, as a consumer, a follower or a KRaft observer.

    Version 7 adds sessions (KIP-227), 9 leader epochs, 12 divergence detection, 13 topic ids, 15 replica epochs,
    17 directory ids, 18 the high watermark of a KRaft follower.
    """

    cluster_id: str | None = string(
        versions="12+", nullable="0+", tag=0, default=None, ignorable=True, doc="Checked by the metadata quorum."
    )
    replica_id: int = int32(versions="0-14", default=-1, doc="Broker id of a follower, -1 for a consumer.")
    replica_state: ReplicaState = nested(
        of=ReplicaState, versions="15+", tag=1, doc="The follower, from the version in which ``replica_id`` is gone."
    )
    max_wait_ms: int = int32(doc="Maximum wait for ``min_bytes``.")
    min_bytes: int = int32()
    max_bytes: int = int32(default=0x7FFFFFFF, ignorable=True)
    isolation_level: int = int8(ignorable=True, doc="0 read uncommitted, 1 read committed.")
    session_id: int = int32(versions="7+", ignorable=True, doc="0 for no session yet.")
    session_epoch: int = int32(
        versions="7+",
        default=-1,
        ignorable=True,
        doc="0 opens a session, -1 closes it or uses none; otherwise the request counter.",
    )
    topics: list[FetchTopic] = array(of=FetchTopic)
    forgotten_topics_data: list[ForgottenTopic] = array(
        of=ForgottenTopic, versions="7+", doc="Partitions to remove from the session."
    )
    rack_id: str = string(versions="11+", ignorable=True, doc="Rack of the consumer, to select a close replica.")


@struct
class EpochEndOffset:
    epoch: int = int32(default=-1)
    end_offset: int = int64(default=-1)


@struct
class SnapshotId:
    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@struct
class AbortedTransaction:
    producer_id: int = int64()
    first_offset: int = int64()


@struct
class FetchedPartition:
    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64(default=-1, ignorable=True, doc="Every transaction below it has ended.")
    log_start_offset: int = int64(versions="5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset = nested(
        of=EpochEndOffset, versions="12+", tag=0, doc="Set if the follower's log diverges from this one."
    )
    current_leader: LeaderIdAndEpoch = nested(
        of=LeaderIdAndEpoch, versions="12+", tag=1, doc="Set when this broker does not lead the partition."
    )
    snapshot_id: SnapshotId = nested(
        of=SnapshotId,
        versions="12+",
        tag=2,
        doc="Set if a snapshot must be fetched since the metadata log starts later.",
    )
    aborted_transactions: list[AbortedTransaction] | None = array(
        of=AbortedTransaction, nullable="0+", ignorable=True, doc="Null unless read committed is requested."
    )
    preferred_read_replica: int = int32(versions="11+", default=-1, doc="A closer replica to fetch from, or -1.")
    records: bytes | None = records(
        nullable="0+", doc="Batches, the last one possibly truncated; see `millbeck.wire.fast_fetch`."
    )


@struct
class FetchableTopicResponse:
    topic: str = string(versions="0-12", ignorable=True)
    topic_id: bytes = uuid(versions="13+", ignorable=True)
    partitions: list[FetchedPartition] = array(of=FetchedPartition)


@message(kind=Kind.RESPONSE, api_key=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Batches and offsets by partition. A session's response only has partitions with changes."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="7+", ignorable=True)
    session_id: int = int32(versions="7+", doc="0 if no session was created.")
    responses: list[FetchableTopicResponse] = array(of=FetchableTopicResponse)
    node_endpoints: list[NodeEndpoint] = array(
        of=NodeEndpoint, versions="16+", tag=0, doc="Endpoints of the leaders named above (KIP-951)."
    )
