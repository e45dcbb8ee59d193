"""StreamsGroupHeartbeat: a member of a streams group is alive (KIP-1071)."""

from __future__ import annotations

from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    message,
    nested,
    string,
    struct,
    uint16,
)


@struct
class KeyValue:
    key: str = string()
    value: str = string()


@struct
class TopicInfo:
    name: str = string()
    partitions: int = int32()
    replication_factor: int = int16()
    topic_configs: list[KeyValue] = array(of=KeyValue)


@struct
class CopartitionGroup:
    source_topics: list[int] = array(of=int16)
    source_topic_regex: list[int] = array(of=int16)
    repartition_source_topics: list[int] = array(of=int16)


@struct
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(of=string)
    source_topic_regex: list[str] = array(of=string)
    state_changelog_topics: list[TopicInfo] = array(of=TopicInfo)
    repartition_sink_topics: list[str] = array(of=string)
    repartition_source_topics: list[TopicInfo] = array(of=TopicInfo)
    copartition_groups: list[CopartitionGroup] = array(of=CopartitionGroup)


@struct
class Topology:
    epoch: int = int32()
    subtopologies: list[Subtopology] = array(of=Subtopology)


@struct
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(of=int32)


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class TaskOffset:
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@message(kind=Kind.REQUEST, api_key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatRequest:
    """Null fields are unchanged since the last heartbeat; the topology is sent on joining."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = nested(of=Topology, nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    standby_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    warmup_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    process_id: str | None = string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = nested(of=Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] | None = array(of=KeyValue, nullable="0+")
    task_offsets: list[TaskOffset] | None = array(of=TaskOffset, nullable="0+")
    task_end_offsets: list[TaskOffset] | None = array(of=TaskOffset, nullable="0+")
    shutdown_application: bool = boolean()


@struct
class Status:
    status_code: int = int8()
    status_detail: str = string()


@struct
class StreamsGroupHeartbeatTopicPartition:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@struct
class EndpointToPartitions:
    user_endpoint: Endpoint = nested(of=Endpoint)
    active_partitions: list[StreamsGroupHeartbeatTopicPartition] = array(of=StreamsGroupHeartbeatTopicPartition)
    standby_partitions: list[StreamsGroupHeartbeatTopicPartition] = array(of=StreamsGroupHeartbeatTopicPartition)


@message(kind=Kind.RESPONSE, api_key=88, versions="0", flexible="0+")
class StreamsGroupHeartbeatResponse:
    """Tasks when they changed, and what is wrong with the group."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(of=Status, nullable="0+")
    active_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    standby_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    warmup_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+")
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(of=EndpointToPartitions, nullable="0+")
