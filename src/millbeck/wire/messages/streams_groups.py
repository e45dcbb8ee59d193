"""Streams groups (KIP-1071): StreamsGroupHeartbeat, StreamsGroupDescribe."""

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
    """Heartbeat of a member. Null fields are unchanged since the last heartbeat; the topology is sent on joining."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    endpoint_information_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    topology: Topology | None = nested(of=Topology, nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    process_id: str | None = string(nullable="0+", default=None)
    user_endpoint: Endpoint | None = nested(of=Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] | None = array(of=KeyValue, nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = array(of=TaskOffset, nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array(of=TaskOffset, nullable="0+", default=None)
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
    """The tasks if they changed, and the group's status."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str = string()
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    acceptable_recovery_lag: int = int32()
    task_offset_interval_ms: int = int32()
    status: list[Status] | None = array(of=Status, nullable="0+")
    active_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = array(of=TaskIds, nullable="0+", default=None)
    endpoint_information_epoch: int = int32()
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        of=EndpointToPartitions, nullable="0+", default=None
    )


@message(kind=Kind.REQUEST, api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    """Describe groups by id."""

    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = boolean()


@struct
class DescribedSubtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(of=string)
    repartition_sink_topics: list[str] = array(of=string)
    state_changelog_topics: list[TopicInfo] = array(of=TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(of=TopicInfo)


@struct
class DescribedTopology:
    epoch: int = int32()
    subtopologies: list[DescribedSubtopology] | None = array(of=DescribedSubtopology, nullable="0+", default=None)


@struct
class StreamsAssignment:
    active_tasks: list[TaskIds] = array(of=TaskIds)
    standby_tasks: list[TaskIds] = array(of=TaskIds)
    warmup_tasks: list[TaskIds] = array(of=TaskIds)


@struct
class StreamsGroupMember:
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(of=Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(of=KeyValue)
    task_offsets: list[TaskOffset] = array(of=TaskOffset)
    task_end_offsets: list[TaskOffset] = array(of=TaskOffset)
    assignment: StreamsAssignment = nested(of=StreamsAssignment)
    target_assignment: StreamsAssignment = nested(of=StreamsAssignment)
    is_classic: bool = boolean()


@struct
class DescribedStreamsGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: DescribedTopology | None = nested(of=DescribedTopology, nullable="0+", default=None)
    members: list[StreamsGroupMember] = array(of=StreamsGroupMember)
    authorized_operations: int = int32(default=-2147483648, doc="Bit field by operation; minimum int if not requested.")


@message(kind=Kind.RESPONSE, api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    """Topology, members and tasks of each group."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    groups: list[DescribedStreamsGroup] = array(of=DescribedStreamsGroup)
