"""StreamsGroupDescribe: streams groups in full."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, nested, string, struct, uint16


@message(kind=Kind.REQUEST, api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeRequest:
    """By group id."""

    group_ids: list[str] = array(of=string)
    include_authorized_operations: bool = boolean()


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
class Subtopology:
    subtopology_id: str = string()
    source_topics: list[str] = array(of=string)
    repartition_sink_topics: list[str] = array(of=string)
    state_changelog_topics: list[TopicInfo] = array(of=TopicInfo)
    repartition_source_topics: list[TopicInfo] = array(of=TopicInfo)


@struct
class Topology:
    epoch: int = int32()
    subtopologies: list[Subtopology] | None = array(of=Subtopology, nullable="0+")


@struct
class Endpoint:
    host: str = string()
    port: int = uint16()


@struct
class TaskOffset:
    subtopology_id: str = string()
    partition: int = int32()
    offset: int = int64()


@struct
class TaskIds:
    subtopology_id: str = string()
    partitions: list[int] = array(of=int32)


@struct
class Assignment:
    active_tasks: list[TaskIds] = array(of=TaskIds)
    standby_tasks: list[TaskIds] = array(of=TaskIds)
    warmup_tasks: list[TaskIds] = array(of=TaskIds)


@struct
class Member:
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
    assignment: Assignment = nested(of=Assignment)
    target_assignment: Assignment = nested(of=Assignment)
    is_classic: bool = boolean()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    topology: Topology | None = nested(of=Topology, nullable="0+", default=None)
    members: list[Member] = array(of=Member)
    authorized_operations: int = int32(
        default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )


@message(kind=Kind.RESPONSE, api_key=89, versions="0", flexible="0+")
class StreamsGroupDescribeResponse:
    """Topology, members and tasks of each group."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    groups: list[DescribedGroup] = array(of=DescribedGroup)
