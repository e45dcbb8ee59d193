"""The records of streams groups in ``__consumer_offsets``, with Kafka's types and fields.

The topology's record and its parts have the layout of the topology in StreamsGroupHeartbeat, so that its structs are
used for both.
"""

from __future__ import annotations

from typing import Any

from millbeck.wire.messages.streams_groups import Endpoint, KeyValue, Subtopology, TaskIds
from millbeck.wire.schema import Kind, array, int8, int32, int64, message, nested, string, struct

GROUP_TYPE = 17
MEMBER_TYPE = 19
TARGET_EPOCH_TYPE = 20
TARGET_MEMBER_TYPE = 21
CURRENT_MEMBER_TYPE = 22
TOPOLOGY_TYPE = 23


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """The group epoch, and the values whose changes raise it: topics, validated topology and assignment configs."""

    epoch: int = int32()
    metadata_hash: int = int64(doc="Hash of the topology's topics; a change bumps the epoch.")
    validated_topology_epoch: int = int32(
        default=-1, tag=0, doc="The topology's epoch if all of its topics exist and fit, else -1."
    )
    last_assignment_configs: list[KeyValue] | None = array(
        of=KeyValue, nullable="0+", tag=1, doc="The assignor's settings; a change bumps the epoch."
    )


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupTopologyKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupTopologyValue:
    """The topology that the first member has sent."""

    epoch: int = int32()
    subtopologies: list[Subtopology] = array(of=Subtopology)


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupMemberMetadataKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupMemberMetadataValue:
    """A member's identity: one thread of the process ``process_id``."""

    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout_ms: int = int32(default=-1)
    topology_epoch: int = int32()
    process_id: str = string()
    user_endpoint: Endpoint | None = nested(of=Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] = array(of=KeyValue)


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupTargetAssignmentMetadataKey:
    group_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMetadataValue:
    assignment_epoch: int = int32(doc="The group epoch that the target was computed for.")
    assignment_timestamp: int = int64(default=0, tag=0, ignorable=True)


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupTargetAssignmentMemberKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """The target assignment of a member. Warm-up tasks are stored, but no assignor assigns any."""

    active_tasks: list[TaskIds] = array(of=TaskIds)
    standby_tasks: list[TaskIds] = array(of=TaskIds)
    warmup_tasks: list[TaskIds] = array(of=TaskIds)


@struct
class HeldTasks:
    subtopology_id: str = string()
    partitions: list[int] = array(of=int32)
    assignment_epochs: list[int] | None = array(
        of=int32,
        nullable="0+",
        tag=0,
        doc="The member epoch at which each was assigned (KIP-1251); of active tasks only.",
    )


@message(kind=Kind.DATA, versions="0", flexible="none")
class StreamsGroupCurrentMemberAssignmentKey:
    group_id: str = string()
    member_id: str = string()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """A member's tasks, the tasks that it must revoke, and its progress toward the target."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32(doc="Also accepted, in case the response with the new epoch was lost.")
    state: int = int8()
    active_tasks: list[HeldTasks] = array(of=HeldTasks)
    standby_tasks: list[HeldTasks] = array(of=HeldTasks)
    warmup_tasks: list[HeldTasks] = array(of=HeldTasks)
    active_tasks_pending_revocation: list[HeldTasks] = array(of=HeldTasks)
    standby_tasks_pending_revocation: list[HeldTasks] = array(of=HeldTasks)
    warmup_tasks_pending_revocation: list[HeldTasks] = array(of=HeldTasks)


StreamsGroupKey = (
    StreamsGroupMetadataKey
    | StreamsGroupTopologyKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
)
StreamsGroupValue = (
    StreamsGroupMetadataValue
    | StreamsGroupTopologyValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
)

DECLARED: tuple[tuple[int, type[Any], type[Any]], ...] = (
    (GROUP_TYPE, StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    (MEMBER_TYPE, StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    (TARGET_EPOCH_TYPE, StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    (TARGET_MEMBER_TYPE, StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    (CURRENT_MEMBER_TYPE, StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    (TOPOLOGY_TYPE, StreamsGroupTopologyKey, StreamsGroupTopologyValue),
)
STREAMS_KEYS = (
    StreamsGroupMetadataKey,
    StreamsGroupTopologyKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupCurrentMemberAssignmentKey,
)
