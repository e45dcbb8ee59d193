"""AddPartitionsToTxn: partitions join a transaction."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct


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
    """From a producer up to version 3. From version 4 a broker speaks for many, to add partitions or to verify."""

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
    """Version 4 reports by transaction."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16(versions="4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = array(of=AddPartitionsToTxnResult, versions="4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = array(
        of=AddPartitionsToTxnTopicResult, versions="0-3"
    )
