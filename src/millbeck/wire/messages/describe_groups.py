"""DescribeGroups: classic groups in full."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, bytes_, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsRequest:
    """Version 6 reports an unknown group as an error and not as dead."""

    groups: list[str] = array(of=string)
    include_authorized_operations: bool = boolean(versions="3+")


@struct
class DescribedGroupMember:
    member_id: str = string()
    group_instance_id: str | None = string(
        versions="4+", nullable="0+", default=None, ignorable=True, doc="The name of a static member."
    )
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes = bytes_()
    member_assignment: bytes = bytes_()


@struct
class DescribedGroup:
    error_code: int = int16()
    error_message: str | None = string(versions="6+", nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string(doc="The assignment strategy in use.")
    members: list[DescribedGroupMember] = array(of=DescribedGroupMember)
    authorized_operations: int = int32(
        versions="3+", default=-2147483648, doc="Bit field by operation; the least integer when not asked for."
    )


@message(kind=Kind.RESPONSE, api_key=15, versions="0-6", flexible="5+")
class DescribeGroupsResponse:
    """Groups in the order they were asked for."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    groups: list[DescribedGroup] = array(of=DescribedGroup)
