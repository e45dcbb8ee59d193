"""JoinGroup: enter a classic group and wait for its next generation."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, bytes_, int16, int32, message, string, struct


@struct
class JoinGroupRequestProtocol:
    name: str = string()
    metadata: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=11, versions="0-9", flexible="6+")
class JoinGroupRequest:
    """Version 4 may be answered with a member id to join again with, version 5 brings static members."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(
        versions="1+",
        default=-1,
        ignorable=True,
        doc="How long to wait for this member when the group rebalances; -1 takes the session timeout.",
    )
    member_id: str = string(doc="Empty on the first attempt.")
    group_instance_id: str | None = string(
        versions="5+", nullable="0+", default=None, doc="The name of a static member."
    )
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(
        of=JoinGroupRequestProtocol, doc="Assignment strategies with the member's metadata for each, best first."
    )
    reason: str | None = string(
        versions="8+", nullable="0+", default=None, ignorable=True, doc="Why the member joins, for the log."
    )


@struct
class JoinGroupResponseMember:
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="5+", nullable="0+", default=None, ignorable=True, doc="The name of a static member."
    )
    metadata: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=11, versions="0-9", flexible="6+")
class JoinGroupResponse:
    """The new generation; the leader alone receives the members. ``protocol_name`` may be null from version 7 only."""

    throttle_time_ms: int = int32(versions="2+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string(versions="7+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean(versions="9+", doc="The leader keeps the assignment that is there (KIP-814).")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(of=JoinGroupResponseMember, doc="Filled in for the leader.")
