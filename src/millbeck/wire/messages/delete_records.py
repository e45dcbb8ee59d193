"""DeleteRecords: move the start of logs forward."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, int64, message, string, struct


@struct
class DeleteRecordsPartition:
    partition_index: int = int32()
    offset: int = int64(doc="-1 for the high watermark.")


@struct
class DeleteRecordsTopic:
    name: str = string()
    partitions: list[DeleteRecordsPartition] = array(of=DeleteRecordsPartition)


@message(kind=Kind.REQUEST, api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsRequest:
    """Drop what lies before an offset of each partition."""

    topics: list[DeleteRecordsTopic] = array(of=DeleteRecordsTopic)
    timeout_ms: int = int32()


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = int32()
    low_watermark: int = int64(doc="Smallest log start offset of all live replicas.")
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult:
    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(of=DeleteRecordsPartitionResult)


@message(kind=Kind.RESPONSE, api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """Where each log starts now."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    topics: list[DeleteRecordsTopicResult] = array(of=DeleteRecordsTopicResult)
