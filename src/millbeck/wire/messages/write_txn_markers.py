"""WriteTxnMarkers: a transaction coordinator ends transactions in their partitions."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, int64, message, string, struct


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
    """Version 2 says which transaction version the markers follow."""

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
    """The outcome by producer, topic and partition."""

    markers: list[WritableTxnMarkerResult] = array(of=WritableTxnMarkerResult)
