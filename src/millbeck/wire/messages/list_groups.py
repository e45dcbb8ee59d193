"""ListGroups: every group this node coordinates."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=16, versions="0-5", flexible="3+")
class ListGroupsRequest:
    """Empty filters let everything pass. Version 4 filters by state, version 5 by type."""

    states_filter: list[str] = array(of=string, versions="4+")
    types_filter: list[str] = array(of=string, versions="5+")


@struct
class ListedGroup:
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(versions="4+", ignorable=True)
    group_type: str = string(versions="5+", ignorable=True)


@message(kind=Kind.RESPONSE, api_key=16, versions="0-5", flexible="3+")
class ListGroupsResponse:
    """One line a group."""

    throttle_time_ms: int = int32(versions="1+", ignorable=True, doc="How long a quota holds this client back.")
    error_code: int = int16()
    groups: list[ListedGroup] = array(of=ListedGroup)
