"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, DescribeGroups, and the consumer protocol inside."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, bytes_, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """Join a group. Version 4 may be answered with a member id to rejoin with, version 5 adds static members."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(
        versions="1+",
        default=-1,
        ignorable=True,
        doc="Maximum time to wait for this member to rejoin in a rebalance; -1 uses the session timeout.",
    )
    member_id: str = string(doc="Empty on the first attempt.")
    group_instance_id: str | None = string(
        versions="5+", nullable="0+", default=None, doc="Instance id of a static member."
    )
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(
        of=JoinGroupRequestProtocol, doc="Assignors with the member's metadata for each, in order of preference."
    )
    reason: str | None = string(
        versions="8+", nullable="0+", default=None, ignorable=True, doc="Why the member joins, for the log."
    )


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="5+", nullable="0+", default=None, ignorable=True, doc="Instance id of a static member."
    )
    metadata: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; only the leader receives the members. ``protocol_name`` may be null from version 7."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+", doc="The leader keeps the current assignment (KIP-814).")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(of=JoinGroupResponseMember, doc="Only sent to the leader.")


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """Only the leader sends assignments. Version 5 adds protocol type and name, which the group validates."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="Instance id of a static member."
    )
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(of=SyncGroupRequestAssignment)


@message(kind=Kind.RESPONSE, api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """The member's assignment."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    assignment: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=12, versions="0-4", flexible="4+")
class HeartbeatRequest:
    """Heartbeat of a member; version 3 adds static members."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="Instance id of a static member."
    )


@message(kind=Kind.RESPONSE, api_key=12, versions="0-4", flexible="4+")
class HeartbeatResponse:
    """The result as an error code, such as REBALANCE_IN_PROGRESS."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()


@struct
class MemberIdentity:
    member_id: str = string(doc="Empty if a static member is removed by instance id.")
    group_instance_id: str | None = string(nullable="0+", default=None, doc="Instance id of a static member.")
    reason: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True, doc="Why, for the log.")


@message(kind=Kind.REQUEST, api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """Leave a group: one member up to version 2, any number from version 3."""

    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(of=MemberIdentity, versions="3+")


@struct
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", doc="Instance id of a static member.")
    error_code: int = int16()


@message(kind=Kind.RESPONSE, api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """The result, for each member from version 3."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    members: list[MemberResponse] = array(of=MemberResponse, versions="3+")


@message(kind=Kind.REQUEST, api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Describe groups; version 6 reports an unknown group as an error instead of as dead."""

    groups: list[str] = array(of=string)
    include_authorized_operations: bool = boolean(versions="3+")


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="4+", nullable="0+", default=None, ignorable=True, doc="Instance id of a static member."
    )
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


@struct
class DescribedClassicGroup:
    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string(doc="The name of the selected assignor.")
    members: list[DescribedGroupMember] = array(of=DescribedGroupMember)
    authorized_operations: int = int32(
        versions="3+", default=-2147483648, doc="Bit field by operation; minimum int if not requested."
    )


@message(kind=Kind.RESPONSE, api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """Groups in the order of the request."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="Throttle time due to a quota violation.")
    groups: list[DescribedClassicGroup] = array(of=DescribedClassicGroup)


@struct
class ConsumerTopicPartitions:
    topic: str = string()
    partitions: list[int] = array(of=int32)


@message(kind=Kind.DATA, versions="0-3")
class ConsumerProtocolSubscription:
    """A member's subscription, in its JoinGroup metadata. The bytes start with a separate int16 version."""

    topics: list[str] = array(of=string)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
    owned_partitions: list[ConsumerTopicPartitions] = array(
        of=ConsumerTopicPartitions,
        versions="1+",
        ignorable=True,
        doc="Partitions the member owned before, for sticky assignors.",
    )
    generation_id: int = int32(versions="2+", default=-1, ignorable=True, doc="The generation in which it owned them.")
    rack_id: str | None = string(versions="3+", nullable="0+", default=None, ignorable=True)


@message(kind=Kind.DATA, versions="0-3")
class ConsumerProtocolAssignment:
    """A member's assignment, in its SyncGroup response. The bytes start with a separate int16 version."""

    assigned_partitions: list[ConsumerTopicPartitions] = array(of=ConsumerTopicPartitions)
    user_data: bytes | None = bytes_(nullable="0+", default=None)
