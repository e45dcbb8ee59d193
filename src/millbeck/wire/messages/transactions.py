"""Producer ids, transactions and their markers, and listing and describing them."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, int64, message, string, struct


@message(kind=Kind.REQUEST, api_key=22, versions="0-6", flexible="2+")
class InitProducerIdRequest:
    """Initialize a producer. In version 3 a producer can request a new epoch of its id (KIP-360). Version 6, unstable
    in Kafka, supports two-phase commit (KIP-939)."""

    transactional_id: str | None = string(nullable="0+", doc="Null for an idempotent producer without transactions.")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64(versions="3+", default=-1, doc="The current id, or -1.")
    producer_epoch: int = int16(versions="3+", default=-1)
    enable2_pc: bool = boolean(versions="6+", doc="Two-phase commit: transactions do not time out.")
    keep_prepared_txn: bool = boolean(versions="6+", doc="Keep an open transaction, to be ended by the caller.")


@message(kind=Kind.RESPONSE, api_key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """The producer id and epoch. Versions 4 and 5 only add error codes."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64(versions="6+", default=-1, doc="Producer id of the kept transaction, or -1.")
    ongoing_txn_producer_epoch: int = int16(versions="6+", default=-1)


@struct
class AddPartitionsToTxnTopic:
    name: str = string()
    partitions: list[int] = array(of=int32)


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    verify_only: bool = boolean()
    topics: list[AddPartitionsToTxnTopic] = array(of=AddPartitionsToTxnTopic)


@message(kind=Kind.REQUEST, api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnRequest:
    """Add partitions to a transaction: from a producer up to version 3; from version 4 from a broker, in batches, to
    add or verify partitions."""

    transactions: list[AddPartitionsToTxnTransaction] = array(of=AddPartitionsToTxnTransaction, versions="4+")
    v3_and_below_transactional_id: str = string(versions="0-3")
    v3_and_below_producer_id: int = int64(versions="0-3")
    v3_and_below_producer_epoch: int = int16(versions="0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = array(of=AddPartitionsToTxnTopic, versions="0-3")


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int = int32()
    partition_error_code: int = int16()


@struct
class AddPartitionsToTxnTopicResult:
    name: str = string()
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = array(of=AddPartitionsToTxnPartitionResult)


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = string()
    topic_results: list[AddPartitionsToTxnTopicResult] = array(of=AddPartitionsToTxnTopicResult)


@message(kind=Kind.RESPONSE, api_key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """The results; from version 4 by transaction."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16(versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(of=AddPartitionsToTxnResult, versions="4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        of=AddPartitionsToTxnTopicResult, versions="0-3"
    )


@message(kind=Kind.REQUEST, api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnRequest:
    """Add a group's offsets to a transaction. Not sent by producers with transaction version 2."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@message(kind=Kind.RESPONSE, api_key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """The outcome for the whole request."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()


@message(kind=Kind.REQUEST, api_key=26, versions="0-5", flexible="3+")
class EndTxnRequest:
    """Commit or abort a transaction. Version 5 requires transaction version 2 (KIP-890)."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@message(kind=Kind.RESPONSE, api_key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """The result; version 5 has the producer id and epoch to continue with."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    producer_id: int = int64(versions="5+", default=-1, ignorable=True)
    producer_epoch: int = int16(versions="5+", default=-1, ignorable=True)


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32(versions="2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


@struct
class TxnOffsetCommitRequestTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(of=TxnOffsetCommitRequestPartition)


@message(kind=Kind.REQUEST, api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitRequest:
    """Commit offsets in a transaction. Version 3 has the group member, version 5 adds the group to the transaction
    implicitly."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32(versions="3+", default=-1)
    member_id: str = string(versions="3+")
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="Instance id of a static member."
    )
    topics: list[TxnOffsetCommitRequestTopic] = array(of=TxnOffsetCommitRequestTopic)


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class TxnOffsetCommitResponseTopic:
    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(of=TxnOffsetCommitResponsePartition)


@message(kind=Kind.RESPONSE, api_key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """The result for each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    topics: list[TxnOffsetCommitResponseTopic] = array(of=TxnOffsetCommitResponseTopic)


@struct
class WritableTxnMarkerTopic:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@struct
class WritableTxnMarker:
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(of=WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8(versions="2+", ignorable=True)


@message(kind=Kind.REQUEST, api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersRequest:
    """Write transaction markers; version 2 has the transaction version."""

    markers: list[WritableTxnMarker] = array(of=WritableTxnMarker)


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: int = int32()
    error_code: int = int16()


@struct
class WritableTxnMarkerTopicResult:
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(of=WritableTxnMarkerPartitionResult)


@struct
class WritableTxnMarkerResult:
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(of=WritableTxnMarkerTopicResult)


@message(kind=Kind.RESPONSE, api_key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """The result by producer, topic and partition."""

    markers: list[WritableTxnMarkerResult] = array(of=WritableTxnMarkerResult)


@message(kind=Kind.REQUEST, api_key=66, versions="0-2", flexible="0+")
class ListTransactionsRequest:
    """List transactions; empty filters match all. Version 1 filters by duration, version 2 by pattern."""

    state_filters: list[str] = array(of=string)
    producer_id_filters: list[int] = array(of=int64)
    duration_filter: int = int64(versions="1+", default=-1)
    transactional_id_pattern: str | None = string(versions="2+", nullable="0+", default=None)


@struct
class ListedTransaction:
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


@message(kind=Kind.RESPONSE, api_key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """One entry per transaction, and the requested states that do not exist."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    unknown_state_filters: list[str] = array(of=string)
    transaction_states: list[ListedTransaction] = array(of=ListedTransaction)


@message(kind=Kind.REQUEST, api_key=65, versions="0", flexible="0+")
class DescribeTransactionsRequest:
    """Describe transactions; sent to the coordinator of each transactional id."""

    transactional_ids: list[str] = array(of=string)


@struct
class DescribeTransactionsTopicResult:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@struct
class TransactionDescription:
    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: list[DescribeTransactionsTopicResult] = array(of=DescribeTransactionsTopicResult)


@message(kind=Kind.RESPONSE, api_key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """State, producer and partitions of each transaction."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    transaction_states: list[TransactionDescription] = array(of=TransactionDescription)


@struct
class DescribeProducersTopic:
    name: str = string()
    partition_indexes: list[int] = array(of=int32)


@message(kind=Kind.REQUEST, api_key=61, versions="0", flexible="0+")
class DescribeProducersRequest:
    """Describe the active producers of partitions; sent to their leaders."""

    topics: list[DescribeProducersTopic] = array(of=DescribeProducersTopic)


@struct
class ProducerState:
    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1, doc="-1 if no transaction is open.")


@struct
class DescribeProducersPartition:
    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(of=ProducerState)


@struct
class DescribeProducersTopicResponse:
    name: str = string()
    partitions: list[DescribeProducersPartition] = array(of=DescribeProducersPartition)


@message(kind=Kind.RESPONSE, api_key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """The producers with state in each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    topics: list[DescribeProducersTopicResponse] = array(of=DescribeProducersTopicResponse)
