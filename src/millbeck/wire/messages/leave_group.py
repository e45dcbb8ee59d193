"""LeaveGroup: members go, by themselves or put out by an administrator."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


@struct
class MemberIdentity:
    member_id: str = string(doc="Empty when a static member is removed by name.")
    group_instance_id: str | None = string(nullable="0+", default=None, doc="The name of a static member.")
    reason: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True, doc="Why, for the log.")


@message(kind=Kind.REQUEST, api_key=13, versions="0-5", flexible="4+")
class LeaveGroupRequest:
    """One member up to version 2, any number from version 3."""

    group_id: str = string()
    member_id: str = string(versions="0-2")
    members: list[MemberIdentity] = array(of=MemberIdentity, versions="3+")


@struct
class MemberResponse:
    member_id: str = string()
    group_instance_id: str | None = string(nullable="0+", doc="The name of a static member.")
    error_code: int = int16()


@message(kind=Kind.RESPONSE, api_key=13, versions="0-5", flexible="4+")
class LeaveGroupResponse:
    """Version 3 reports on each member."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16()
    members: list[MemberResponse] = array(of=MemberResponse, versions="3+")
