"""DeleteGroups: forget groups without members, and their offsets."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsRequest:
    """Groups of any type."""

    groups_names: list[str] = array(of=string)


@struct
class DeletableGroupResult:
    group_id: str = string()
    error_code: int = int16()


@message(kind=Kind.RESPONSE, api_key=42, versions="0-2", flexible="2+")
class DeleteGroupsResponse:
    """The outcome for each group."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[DeletableGroupResult] = array(of=DeletableGroupResult)
