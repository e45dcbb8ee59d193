"""SyncGroup: the leader of a classic group hands out the assignment, the others fetch theirs."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int16, int32, message, string, struct


@struct
class SyncGroupRequestAssignment:
    member_id: str = string()
    assignment: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=14, versions="0-5", flexible="4+")
class SyncGroupRequest:
    """Only the leader lists assignments. Version 5 lets the group check protocol type and name."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="3+", nullable="0+", default=None, doc="The name of a static member."
    )
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(of=SyncGroupRequestAssignment)


@message(kind=Kind.RESPONSE, api_key=14, versions="0-5", flexible="4+")
class SyncGroupResponse:
    """This member's own assignment."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16()
    protocol_type: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    protocol_name: str | None = string(versions="5+", nullable="0+", default=None, ignorable=True)
    assignment: bytes = bytes_()
