"""Topics: CreateTopics, DeleteTopics, CreatePartitions, DeleteRecords."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, int64, message, string, struct, uuid


@struct
class CreatableReplicaAssignment:
    partition_index: int = int32()
    broker_ids: list[int] = array(of=int32, doc="Replicas; the first is the preferred leader.")


@struct
class CreatableTopicConfig:
    name: str = string()
    value: str | None = string(nullable="0+")


@struct
class CreatableTopic:
    name: str = string()
    num_partitions: int = int32(doc="-1 for the broker's default, or when assignments are given.")
    replication_factor: int = int16(doc="-1 for the broker's default, or when assignments are given.")
    assignments: list[CreatableReplicaAssignment] = array(
        of=CreatableReplicaAssignment, doc="Manual replica assignment."
    )
    configs: list[CreatableTopicConfig] = array(of=CreatableTopicConfig)


@message(kind=Kind.REQUEST, api_key=19, versions="2-7", flexible="5+")
class CreateTopicsRequest:
    """Create topics, or with ``validate_only`` only check whether that would succeed."""

    topics: list[CreatableTopic] = array(of=CreatableTopic)
    timeout_ms: int = int32(default=60000)
    validate_only: bool = boolean(doc="Only validate the request.")


@struct
class CreatableTopicConfigs:
    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8(
        default=-1, ignorable=True, doc="1 topic, 2 broker, 3 default broker, 4 static broker file, 5 default."
    )
    is_sensitive: bool = boolean(doc="The value is sensitive and therefore null.")


@struct
class CreatableTopicResult:
    name: str = string()
    topic_id: bytes = uuid(versions="7+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", ignorable=True)
    topic_config_error_code: int = int16(
        versions="5+", tag=0, ignorable=True, doc="Error that prevented returning the configs."
    )
    num_partitions: int = int32(versions="5+", default=-1, ignorable=True)
    replication_factor: int = int16(versions="5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        of=CreatableTopicConfigs, versions="5+", nullable="0+", ignorable=True
    )


@message(kind=Kind.RESPONSE, api_key=19, versions="2-7", flexible="5+")
class CreateTopicsResponse:
    """The created topics. Version 5 adds their configs, version 7 their ids."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    topics: list[CreatableTopicResult] = array(of=CreatableTopicResult)


@struct
class DeleteTopicState:
    name: str | None = string(nullable="0+", default=None)
    topic_id: bytes = uuid()


@message(kind=Kind.REQUEST, api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsRequest:
    """Delete topics by name up to version 5; by name or id from version 6."""

    topics: list[DeleteTopicState] = array(of=DeleteTopicState, versions="6+")
    topic_names: list[str] = array(of=string, versions="0-5", ignorable=True)
    timeout_ms: int = int32()


@struct
class DeletableTopicResult:
    name: str | None = string(nullable="6+")
    topic_id: bytes = uuid(versions="6+", ignorable=True)
    error_code: int = int16()
    error_message: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)


@message(kind=Kind.RESPONSE, api_key=20, versions="1-6", flexible="4+")
class DeleteTopicsResponse:
    """The result for each topic."""

    throttle_time_ms: int = int32(ignorable=True, doc="Throttle time due to a quota violation.")
    responses: list[DeletableTopicResult] = array(of=DeletableTopicResult)


@struct
class CreatePartitionsAssignment:
    broker_ids: list[int] = array(of=int32, doc="Replicas; the first is the preferred leader.")


@struct
class CreatePartitionsTopic:
    name: str = string()
    count: int = int32(doc="New total number of partitions.")
    assignments: list[CreatePartitionsAssignment] | None = array(of=CreatePartitionsAssignment, nullable="0+")


@message(kind=Kind.REQUEST, api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsRequest:
    """Add partitions; with null assignments the controller places the replicas."""

    topics: list[CreatePartitionsTopic] = array(of=CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean(doc="Only validate the request.")


@struct
class CreatePartitionsTopicResult:
    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@message(kind=Kind.RESPONSE, api_key=37, versions="0-3", flexible="2+")
class CreatePartitionsResponse:
    """The result for each topic."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[CreatePartitionsTopicResult] = array(of=CreatePartitionsTopicResult)


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
    """Delete the records before an offset of each partition."""

    topics: list[DeleteRecordsTopic] = array(of=DeleteRecordsTopic)
    timeout_ms: int = int32()


@struct
class DeleteRecordsPartitionResult:
    partition_index: int = int32()
    low_watermark: int = int64(doc="Minimum log start offset of all live replicas.")
    error_code: int = int16()


@struct
class DeleteRecordsTopicResult:
    name: str = string()
    partitions: list[DeleteRecordsPartitionResult] = array(of=DeleteRecordsPartitionResult)


@message(kind=Kind.RESPONSE, api_key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The new low watermark of each partition."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    topics: list[DeleteRecordsTopicResult] = array(of=DeleteRecordsTopicResult)
